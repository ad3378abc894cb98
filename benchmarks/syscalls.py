"""Storage calls per commit as the operating system sees them: a child runs under strace between two marks."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

TRACED = (
    "openat,link,linkat,rename,renameat,renameat2,unlink,unlinkat,stat,newfstatat,statx,access,faccessat2,"
    "getdents64,fsync,fdatasync,mkdir"
)
_LINE = re.compile(r"^\d+\s+(?:<\.\.\. )?(\w+)(?:\(| resumed)(.*)$")


def calls_per_commit(graph: Path, tables: int, commits: int = 20) -> dict[str, float] | None:
    """Calls on files of the graph per commit, by kind; None where strace is not installed."""
    strace = shutil.which("strace")
    if strace is None:
        return None
    with tempfile.TemporaryDirectory() as scratch:
        log = Path(scratch) / "calls"
        child = [sys.executable, "-m", "benchmarks.syscalls", str(graph), str(tables), str(commits)]
        command = [strace, "-f", "-qq", "-y", "-e", f"trace={TRACED}", "-o", str(log), *child]
        subprocess.run(command, check=True, capture_output=True)
        return {kind: n / commits for kind, n in sorted(_counted(log, str(graph)).items())}


def _counted(log: Path, graph: str) -> Counter[str]:
    counts: Counter[str] = Counter()
    inside = False
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        if "omnigraph-mark-begin" in line or "omnigraph-mark-end" in line:
            inside = "begin" in line
            continue
        matched = _LINE.match(line)
        if inside and matched and graph in line:
            counts[_kind(matched[1], matched[2])] += 1
    return counts


def _kind(call: str, arguments: str) -> str:
    if call == "openat":
        if "O_DIRECTORY" in arguments:
            return "list"
        return "create" if "O_CREAT" in arguments else "read"
    kinds = {
        "link": "link/rename",
        "linkat": "link/rename",
        "rename": "link/rename",
        "renameat": "link/rename",
        "renameat2": "link/rename",
        "unlink": "delete",
        "unlinkat": "delete",
        "fsync": "sync",
        "fdatasync": "sync",
        "getdents64": "list-page",
        "mkdir": "mkdir",
    }
    return kinds.get(call, "look")


def _child(graph: str, tables: int, commits: int) -> None:
    import os

    import omnigraph as og
    from benchmarks.commit import Ours

    ours = Ours.__new__(Ours)
    ours.graph, ours.count = og.Graph.open(graph), og.Graph.open(graph).snapshot().version + 1_000_000
    for _ in range(3):
        ours.write(tables)
    os.path.exists("/omnigraph-mark-begin")
    for _ in range(commits):
        ours.write(tables)
    os.path.exists("/omnigraph-mark-end")


if __name__ == "__main__":
    _child(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
