"""The examples of the user page are run as they stand there, and print what the page says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "embeddings.md").read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def _files() -> None:
    for name, text in re.findall(r"```\w+ (\S+\.\w+)\n(.*?)```", PAGE, re.DOTALL):
        Path(name).write_text(text)


@pytest.mark.slow
def test_the_example_of_the_page_prints_what_the_page_shows():
    (shown,) = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    script = "".join(f"printf '%s\\n' {line!r}\n{line[2:]}\n" for line in shown.splitlines() if line.startswith("$ "))
    done = subprocess.run(
        ["bash", "-e", "-c", script], capture_output=True, text=True, check=False, env={**os.environ, "PATH": path}
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == shown


def test_the_python_of_the_page_runs(monkeypatch, capsys):
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(code, {})
    assert capsys.readouterr().out == "2\n"
