"""The walk-through of the user page is run as it stands there, and prints what the page says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "merge.md").read_text(encoding="utf-8")
ULID = re.compile(r"\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b")


def steps() -> list[tuple[str, list[str]]]:
    """The commands with the lines shown under each; what follows `<<'END'` belongs to its command."""
    found: list[tuple[str, list[str]]] = []
    reading = False
    for line in "".join(re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)).splitlines():
        if reading:
            found[-1] = (f"{found[-1][0]}\n{line}", [])
            reading = line != "END"
        elif line.startswith("$ "):
            found.append((line[2:], []))
            reading = line.endswith("<<'END'")
        else:
            found[-1][1].append(line)
    return found


@pytest.mark.slow
def test_the_walk_through_prints_what_the_page_shows(tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {"PATH": path, "HOME": str(tmp_path), "LANG": "C.UTF-8"}
    assert len(steps()) > 12
    for command, shown in steps():
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, ""), command
        printed = [ULID.sub("<id>", line.rstrip()) for line in done.stdout.splitlines()]
        assert printed == [ULID.sub("<id>", line) for line in shown], command
