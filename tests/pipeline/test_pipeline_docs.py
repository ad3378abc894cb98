"""The example of the user page is run as it stands there, and prints what the page says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "pipeline.md"

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def block(language: str) -> str:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[0]


def test_the_example_of_the_page_prints_what_the_page_shows(folder):
    Path("raw").mkdir()
    files = {"schema.pg": "pg", "raw/people.csv": "csv", "raw/teams.jsonl": "json", "pipeline.yaml": "yaml"}
    for name, language in files.items():
        Path(name).write_text(block(language))
    shown = block("console").splitlines()
    commands = [line[2:] for line in shown if line.startswith("$ ")]
    assert len(commands) == 3
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    printed: list[str] = []
    for command in commands:
        done = subprocess.run(
            ["bash", "-c", command], capture_output=True, text=True, check=False, env={**os.environ, "PATH": path}
        )
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        printed += [f"$ {command}", *done.stdout.splitlines()]
    assert printed == shown
    assert "warning: quality rule 'believable_age' does not hold" in done.stderr
    assert "<title>pipeline.yaml: committed</title>" in Path("out/report.html").read_text()
