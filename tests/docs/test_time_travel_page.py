"""The page on time travel is followed command by command; only ids and ages may differ."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from test_readme import ROOT, replay, run

PAGE = (ROOT / "docs" / "time-travel.md").read_text(encoding="utf-8")
AGE = re.compile(r"\d+[smhd] ago")


@pytest.mark.slow
def test_the_page_on_time_travel_prints_what_it_shows(tmp_path: Path) -> None:
    shown, printed = replay(PAGE, tmp_path)
    assert len(shown) > 40
    assert [AGE.sub("AGE", line) for line in printed] == [AGE.sub("AGE", line) for line in shown]
    [code] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert run([sys.executable, "-c", code], tmp_path).splitlines() == [
        "[{'sku': 'cup', 'price': 4}]",
        "2",
        "['dearer clay']",
        "['spring-list']",
    ]
