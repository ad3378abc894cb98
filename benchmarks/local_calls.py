"""Storage calls per commit on a local disk: a child runs under strace between two marks.

System calls are folded into what a store would be asked for: a temporary file, its data and its link into place are one
`put`; an open for reading is a `get`, one that finds nothing a `head`; files opened only to be synced count as `sync`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

TRACED = "openat,link,linkat,rename,renameat,renameat2,unlink,unlinkat,newfstatat,access,fsync,fdatasync"
MARK = "omnigraph-mark"
PROBE = "probe"
_CALL = re.compile(r"^\d+\s+(\w+)\((.*)\)\s+= (.*)$")
_RESUMED = re.compile(r"^(\d+)\s+<\.\.\. \w+ resumed>(.*)$")
_UNFINISHED = re.compile(r"^(\d+)\s+(.*) <unfinished \.\.\.>$")
_TEMPORARY = re.compile(r"\.tmp|#\d")
_STORE_CALLS = ("put", "get", "head", "list", "delete")


def calls_per_commit(who: str, place: Path, commits: int = 50, durability: str = "full") -> dict[str, float] | None:
    """Calls on files below `place` per commit, by kind; None where strace is not installed."""
    strace = shutil.which("strace")
    if strace is None:
        return None
    with tempfile.TemporaryDirectory() as scratch:
        log = Path(scratch) / "calls"
        child = [sys.executable, "-m", "benchmarks.local_calls", who, str(place), str(commits)]
        command = [strace, "-f", "-qq", "-y", "-s", "400", "-e", f"trace={TRACED}", "-o", str(log), *child]
        environment = {**os.environ, "OMNIGRAPH_DURABILITY": durability}
        subprocess.run(command, check=True, capture_output=True, env=environment)
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return {kind: n / commits for kind, n in counted(lines, str(place)).items()}


def shown(calls: dict[str, float] | None) -> str:
    if calls is None:
        return "strace is not installed"
    kinds = ", ".join(f"{kind} {calls.get(kind, 0):.1f}" for kind in _STORE_CALLS)
    lance = f"{calls.get(PROBE, 0):.1f} of them Lance's look for the newest version"
    return f"{store_calls(calls):5.1f} ({kinds}; {lance}; {calls.get('sync', 0):.1f} syncs)"


def store_calls(calls: dict[str, float]) -> float:
    return sum(calls.get(kind, 0) for kind in _STORE_CALLS)


def counted(lines: Iterable[str], place: str) -> Counter[str]:
    counts: Counter[str] = Counter()
    inside = False
    for line in _joined(lines):
        if MARK in line:
            inside = f"{MARK}-begin" in line
            continue
        found = _CALL.match(line)
        if inside and found and place in line:
            meaning = _meaning(found[1], found[2], found[3])
            counts.update(meaning)
            if "latest_version_hint" in line or (found[1] == "openat" and "head" in meaning):
                counts[PROBE] += sum(meaning.values())
    return Counter({kind: max(n, 0) for kind, n in counts.items()})


def _joined(lines: Iterable[str]) -> Iterable[str]:
    """Calls that strace printed in two halves, because threads interleave, as one line each."""
    halves: dict[str, str] = {}
    for line in lines:
        if half := _UNFINISHED.match(line):
            halves[half[1]] = f"{half[1]} {half[2]}"
        elif rest := _RESUMED.match(line):
            yield halves.pop(rest[1], rest[1]) + rest[2]
        else:
            yield line


def _meaning(call: str, arguments: str, answer: str) -> dict[str, int]:
    is_folder = "O_DIRECTORY" in arguments or "S_IFDIR" in arguments
    match call:
        case "openat" if "O_CREAT" in arguments or "O_RDWR" in arguments:
            return {}
        case "openat" if answer.startswith("-1"):
            return {"head": 1}
        case "openat":
            return {"list": 1} if is_folder else {"get": 1}
        case "newfstatat" if is_folder or "AT_EMPTY_PATH" in arguments or "__locks" in arguments:
            return {}
        case "newfstatat" | "access":
            return {"head": 1}
        case "fsync" | "fdatasync":
            return {"sync": 1, **_opened_for_sync(arguments)}
        case "unlink" | "unlinkat":
            return {} if _TEMPORARY.search(arguments) else {"delete": 1}
    return {"put": 1}


def _opened_for_sync(arguments: str) -> dict[str, int]:
    if _TEMPORARY.search(arguments):
        return {}
    is_file = re.search(r"\.(lance|manifest|txn|arrow|bin|json)>", arguments) is not None
    return {"get" if is_file else "list": -1}


def _child(who: str, place: str, commits: int) -> None:
    from benchmarks.commit import Floor, Ours
    from benchmarks.soak import Writer
    from benchmarks.writes import BranchWriter

    writer = {"floor": Floor, "ours": Ours, "branch": BranchWriter, "soak": Writer}[who].reopened(place)
    for _ in range(3):
        writer.write(1)
    os.path.exists(f"/{MARK}-begin")
    for _ in range(commits):
        writer.write(1)
    os.path.exists(f"/{MARK}-end")


if __name__ == "__main__":
    _child(sys.argv[1], sys.argv[2], int(sys.argv[3]))
