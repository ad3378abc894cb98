"""The example of the user page is run as it stands there, and prints what the page says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "infer.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_example_of_the_page_prints_what_the_page_shows(folder):
    for name, text in re.findall(r"```csv (\S+)\n(.*?)```", PAGE, re.DOTALL):
        Path(name).write_text(text)
    shown = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)[0].splitlines()
    commands = [line[2:] for line in shown if line.startswith("$ ")]
    assert len(commands) == 2
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    printed: list[str] = []
    for command in commands:
        done = subprocess.run(
            ["bash", "-c", command], capture_output=True, text=True, check=False, env={**os.environ, "PATH": path}
        )
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        printed += [f"$ {command}", *done.stdout.splitlines()]
    assert printed == shown
