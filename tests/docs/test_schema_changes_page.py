"""The page on changing the schema is followed command by command; only ids may differ."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from test_readme import ROOT, replay, run

PAGE = (ROOT / "docs" / "schema-changes.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_page_on_changing_the_schema_prints_what_it_shows(tmp_path: Path) -> None:
    shown, printed = replay(PAGE, tmp_path)
    assert len(shown) > 40
    assert printed == shown
    [code] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert run([sys.executable, "-c", code], tmp_path).splitlines() == [
        "True True ['add_property']",
        "(0,)",
        "True",
        "[{'m.name': 'ana', 'm.born': None}, {'m.name': 'bo', 'm.born': None}]",
    ]
