"""A load stays within a bound of memory; only a merge grows, with the rows it replaces in one table."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from load_child import SCHEMA, write_lines

from omnigraph.graph import Graph

pytestmark = pytest.mark.slow

MIB = 1 << 20
# While Lance commits, it keeps a map of the replaced rows of a table, to carry over the versions that made them.
BYTES_PER_REPLACED_ROW = 100
CHILD = Path(__file__).with_name("load_child.py")


def high_water_mib(mode: str, path: Path, uri: str, lines: int, memory: str) -> int:
    """Load in another process; the most memory it ever had."""
    environment = {**os.environ, "OMNIGRAPH_MEMORY_BYTES": memory}
    command = [sys.executable, str(CHILD), mode, str(path), uri]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    told = json.loads(done.stdout.splitlines()[-1])
    print(f"{mode} {path.stat().st_size / MIB:.0f} MiB: VmHWM {told['high_water_kib'] / 1024:.0f} MiB")
    assert (told["total"], told["warnings"]) == (lines, [])
    return int(told["high_water_kib"]) // 1024


def all_modes(folder: Path, size_bytes: int, memory: str) -> list[int]:
    path, uri = folder / "in.jsonl", str(folder / "g")
    lines = write_lines(str(path), size_bytes)
    Graph.init(uri, SCHEMA)
    found = [high_water_mib(mode, path, uri, lines, memory) for mode in ("append", "merge", "overwrite")]
    assert [p.name for p in Path(folder).iterdir() if "rejects" in p.name] == []
    return found


@pytest.mark.slow
def test_a_load_larger_than_its_memory_spills(tmp_path: Path) -> None:
    """Sixty MiB of rows with an eighth of 16 MiB for spools: nearly all of the input has to lie on disk."""
    assert max(all_modes(tmp_path, 60 * MIB, "16 MiB")) < 600


@pytest.mark.full
@pytest.mark.timeout(7200)
def test_two_gigabytes_load_within_one_gigabyte_of_memory(tmp_path: Path) -> None:
    append, merge, overwrite = all_modes(tmp_path, 2048 * MIB, "512 MiB")
    replaced = Graph.open(str(tmp_path / "g")).snapshot().tables["node:Person"].row_count
    assert max(append, overwrite) < 1024
    assert merge < 1024 + replaced * BYTES_PER_REPLACED_ROW // MIB
