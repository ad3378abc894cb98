"""The example of the user page is run as it stands there, and prints what the page says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "history.md").read_text(encoding="utf-8")
_COMMIT = re.compile(r"\b01[0-9A-HJKMNP-TV-Z]{24}\b")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT[0-9:.]+Z")


def same_everywhere(lines: list[str]) -> list[str]:
    """Without what is new in every run."""
    return [_TIME.sub("TIME", _COMMIT.sub("COMMIT", line)) for line in lines]


@pytest.mark.slow
def test_the_example_of_the_page_prints_what_the_page_shows(tmp_path: Path) -> None:
    for name, text in re.findall(r"```(?:pg|json) (\S+)\n(.*?)```", PAGE, re.DOTALL):
        (tmp_path / name).write_text(text)
    shown = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)[0].splitlines()
    commands = [line[2:] for line in shown if line.startswith("$ ")]
    assert len(commands) == 9
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    plain = {name: value for name, value in os.environ.items() if not name.startswith("OMNIGRAPH_")}
    printed: list[str] = []
    for command in commands:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            env={**plain, "PATH": path},
        )
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        printed += [f"$ {command}", *done.stdout.splitlines()]
    assert same_everywhere(printed) == same_everywhere(shown)


def test_the_python_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import omnigraph as og

    monkeypatch.chdir(tmp_path)
    schema, people = (text for _, text in re.findall(r"```(?:pg|json) (\S+)\n(.*?)```", PAGE, re.DOTALL))
    Path("people.jsonl").write_text(people)
    graph = og.Graph.init("library", schema)
    graph.load("people.jsonl", mode="append")
    graph.branch_create("draft")
    graph.mutate('query q() { delete Person where name = "bob" }', branch="draft")
    code = re.findall(r"```python\n(import omnigraph.*?)```", PAGE, re.DOTALL)[0]
    exec(compile(code, "history.md", "exec"), {})
