"""The README's walk-through is replayed, command by command; what it prints is what the README says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ULID = re.compile(r"\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b")


README = (ROOT / "README.md").read_text(encoding="utf-8")
BEFORE_SPARK, ON_SPARK = README.split("## From a lake on Spark")


def walk_through(text: str) -> list[tuple[str, list[str]]]:
    """The commands of the console blocks with the lines printed under each."""
    steps: list[tuple[str, list[str]]] = []
    for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL):
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


def replay(text: str, folder: Path) -> tuple[list[str], list[str]]:
    """What the page shows and what is printed when its commands are run."""
    shown, printed = [], []
    for command, expected in walk_through(text):
        done = run(["bash", "-c", command], folder)
        shown += [f"$ {command}", *expected]
        printed += [f"$ {command}", *done.splitlines()]
    return without_ids(shown), without_ids(printed)


def run(command: list[str], folder: Path) -> str:
    environment = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "JAVA_TOOL_OPTIONS": os.environ["JAVA_TOOL_OPTIONS"],
    }
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stderr}"
    assert done.stderr == "", f"{command} also said: {done.stderr}"
    return done.stdout


@dataclass(frozen=True)
class Replay:
    """The folder the commands were run in, what the page shows and what they printed."""

    folder: Path
    shown: list[str]
    printed: list[str]


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> Replay:
    folder = tmp_path_factory.mktemp("readme")
    return Replay(folder, *replay(BEFORE_SPARK, folder))


@pytest.mark.slow
def test_the_walk_through_prints_what_the_readme_shows(walked: Replay) -> None:
    assert len(walk_through(BEFORE_SPARK)) >= 6
    assert walked.printed == walked.shown


@pytest.mark.slow
@pytest.mark.spark
def test_the_lake_of_the_readme_lands_as_shown_and_is_read_as_frames(walked: Replay) -> None:
    folder = walked.folder
    shown, printed = replay(ON_SPARK, folder)
    assert printed == shown
    assert "<title>pipeline.yaml: committed</title>" in (folder / "report.html").read_text(encoding="utf-8")
    [code] = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    answer = run([sys.executable, "-c", code], folder).splitlines()
    assert {"|octavia|    2|", "| ursula|    1|"} <= set(answer)
    assert answer[-1] == "2"


def test_every_path_the_readme_names_exists() -> None:
    named = re.findall(r"\]\(([\w./-]+)\)", README) + re.findall(r"src/omnigraph/[\w.]+", README)
    assert [n for n in named if not (ROOT / n).exists()] == []
