"""The README's walk-through is replayed, command by command; what it prints is what the README says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ULID = re.compile(r"\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b")


def walk_through() -> list[tuple[str, list[str]]]:
    """The commands of the README's console blocks with the lines printed under each."""
    steps: list[tuple[str, list[str]]] = []
    for block in re.findall(r"```console\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL):
        end: str | None = None
        for line in block.splitlines():
            if end is not None:
                command, printed = steps[-1]
                steps[-1] = (f"{command}\n{line}", printed)
                end = None if line == end else end
            elif steps and steps[-1][0].endswith("\\"):
                steps[-1] = (f"{steps[-1][0]}\n{line}", steps[-1][1])
            elif line.startswith("$ "):
                steps.append((line[2:], []))
                here = re.search(r"<<'(\w+)'", line)
                end = here[1] if here else None
            else:
                steps[-1][1].append(line)
    return steps


def without_ids(lines: list[str]) -> list[str]:
    """Each commit id replaced by the order in which it first appears."""
    seen: dict[str, str] = {}
    return [ULID.sub(lambda m: seen.setdefault(m[0], f"<id {len(seen) + 1}>"), line.rstrip()) for line in lines]


@pytest.mark.slow
def test_the_walk_through_prints_what_the_readme_shows(tmp_path: Path) -> None:
    environment = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "LANG": "C.UTF-8",
    }
    steps = walk_through()
    assert len(steps) >= 6
    shown, printed = [], []
    for command, expected in steps:
        done = subprocess.run(
            ["bash", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        assert done.stderr == "", f"{command} also said: {done.stderr}"
        shown += [f"$ {command}", *expected]
        printed += [f"$ {command}", *done.stdout.splitlines()]
    assert without_ids(printed) == without_ids(shown)


def test_every_path_the_readme_names_exists() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    named = re.findall(r"\]\(([\w./-]+)\)", text) + re.findall(r"src/omnigraph/[\w.]+", text)
    assert [n for n in named if not (ROOT / n).exists()] == []
