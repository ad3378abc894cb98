"""What a warm read asks of the disk: one look for a newer head, whatever the history; and nothing else."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pyarrow as pa
import pytest
from cost_child import MARK, TIMES

import omnigraph as og
from omnigraph.settings import Settings

pytestmark = pytest.mark.slow
HERE = Path(__file__).with_name("cost_child.py")
_BELOW = re.compile(r"^\d+ +(\w+)\((.*)$")


def why_not() -> str | None:
    if shutil.which("strace") is None:
        return "CALLS ARE NOT COUNTED: strace is not installed (apt-get install strace)"
    tried = subprocess.run(["strace", "-qq", "-e", "trace=none", "true"], capture_output=True, text=True)
    return None if tried.returncode == 0 else f"CALLS ARE NOT COUNTED: strace may not trace: {tried.stderr}"


def grown(place: Path, depth: int) -> og.Graph:
    """A hundred people in a ring, and a history that long."""
    graph = og.Graph.init(
        str(place),
        "node Person { name: String @key  age: I32? }\nedge Follows: Person -> Person",
        settings=Settings(storage_durability="os"),
    )
    names = [f"p{n}" for n in range(100)]
    ring = pa.table({"from": names, "to": [*names[1:], names[0]]})
    people = pa.table({"name": names, "age": pa.array(range(100), pa.int32())})
    graph.load_frames({"Person": people, "Follows": ring}, mode="append")
    for n in range(depth - len(graph.list_commits())):
        graph.mutate(f'query m() {{ update Person set {{ age: {n} }} where name = "p50" }}')
    return graph


def calls(place: Path, log: Path) -> dict[str, list[str]]:
    """What each part of the child asked of files below the graph, by the name of the part."""
    command = ["strace", "-f", "-qq", "--seccomp-bpf", "-s", "400", "-e", "trace=file,desc", "-y", "-o", str(log)]
    subprocess.run([*command, sys.executable, str(HERE), str(place)], check=True, timeout=120)
    found: dict[str, list[str]] = defaultdict(list)
    part = None
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        if MARK in line:
            kind, _, name = line.partition(f"{MARK}-")[2].partition('"')[0].partition("-")
            part = name if kind == "begin" else None
        elif part is not None and str(place) in line and (call := _BELOW.match(line)):
            found[part].append(f"{call[1]} {call[2].replace(str(place), '')}")
    return found


@pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
@pytest.mark.parametrize("depth", [10, 40, pytest.param(1_000, marks=pytest.mark.full)])
def test_a_warm_read_looks_for_a_newer_head_and_touches_no_other_storage(tmp_path: Path, depth: int) -> None:
    place = tmp_path / "graph"
    grown(place, depth)

    found = calls(place, tmp_path / "calls")

    for part in ("point", "hop", "settled"):
        print(f"depth {depth}, {part}: {len(found[part]) / TIMES:.1f} calls a read")
        assert [call.split()[0] for call in found[part]] == ["access"] * 2 * TIMES, found[part]
        assert all("/__manifest/_versions/" in call for call in found[part]), found[part]
    for part in ("branch", "branch-point"):
        print(f"depth {depth}, {part}: {len(found[part]) / TIMES:.1f} calls a read")
        assert sum(call.startswith("openat") for call in found[part]) == TIMES, "which life of the branch it is"
        assert not any("/nodes/" in call or "/edges/" in call for call in found[part]), found[part]
    assert any("/nodes/" in call for call in found["after-a-commit"]), "the rows that changed are read"
    assert not any("/edges/" in call for call in found["after-a-commit"]), "edges that did not change are not"
