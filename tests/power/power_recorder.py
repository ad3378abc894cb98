"""Runs orders in a child under strace and tells, for each, what it did to its disk and in which order."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from power_disk import Disk, Image
from power_trace import CALLS, DATA_BYTES_MAX, MARK, Event, Kind, parse

_PROGRAM = Path(__file__).with_name("power_child.py")
_WAIT_S_MAX = 60


@dataclass(frozen=True)
class Recording:
    """A disk before, what happened to it, and what the child answered."""

    before: Image
    events: tuple[Event, ...]
    said: str

    def and_then(self, later: Recording, upto: int) -> Recording:
        """Another process that went on from where this one died; what this one had not synced still is unsynced."""
        return Recording(self.before, (*self.events[:upto], *later.events), later.said)

    def disk_at(self, upto: int) -> Disk:
        disk = Disk(self.before)
        for event in self.events[:upto]:
            disk.play(event)
        return disk


def why_not() -> str | None:
    """Why nothing can be recorded here, or None."""
    if shutil.which("strace") is None:
        return "POWER CUTS ARE NOT TESTED: strace is not installed (apt-get install strace)"
    tried = subprocess.run(["strace", "-qq", "-e", "trace=none", "true"], capture_output=True, text=True)
    return None if tried.returncode == 0 else f"POWER CUTS ARE NOT TESTED: strace may not trace: {tried.stderr}"


def image_of(folder: Path) -> Image:
    found: Image = {}
    for path in folder.rglob("*"):
        found[str(path.relative_to(folder))] = None if path.is_dir() else path.read_bytes()
    return found


def put(image: Mapping[str, bytes | None], folder: Path) -> Path:
    """Write an image out as real files."""
    folder.mkdir()
    for path, data in image.items():
        if data is None:
            (folder / path).mkdir(parents=True, exist_ok=True)
    for path, data in image.items():
        if data is not None:
            (folder / path).write_bytes(data)
    return folder


class Recorder:
    """One traced child for all orders: starting one takes longer than most of them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._trace = folder / "trace"
        calls = ",".join(f"?{c}" for c in CALLS)
        command = ["strace", "-f", "-y", "-qq", "--seccomp-bpf", "-s", str(DATA_BYTES_MAX), "-o", str(self._trace)]
        self._child = subprocess.Popen(
            [*command, "-e", f"trace={calls}", "-e", "signal=none", sys.executable, str(_PROGRAM)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "LANCE_LOG": "error", "PYTHONPATH": str(_PROGRAM.parents[1] / "crash")},
        )
        self._numbers = itertools.count()
        self._read_upto = 0

    def record(self, before: Image, order: dict[str, Any], graph: str = "g") -> Recording:
        """Do the order on a fresh disk; the replay of its trace must give exactly the files it left."""
        number = next(self._numbers)
        folder = put(before, self._folder / f"disk-{number}")
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write(json.dumps({"path": str(folder / graph), "settings": {}, **order}) + "\n")
        self._child.stdin.flush()
        said = self._child.stdout.readline().strip()
        assert said, f"the traced child died of {order}"
        events = parse(self._lines(number), str(folder))
        begin = next(i for i, e in enumerate(events) if e.path == f"{number}/begin")
        kept = tuple(_named(e, number) for e in events[begin + 1 : -1])
        recording = Recording(before, kept, said)
        assert recording.disk_at(len(kept)).live() == image_of(folder), "the trace does not tell what the disk became"
        shutil.rmtree(folder)
        return recording

    def close(self) -> None:
        self._child.communicate(timeout=_WAIT_S_MAX)

    def _lines(self, number: int) -> list[str]:
        """The lines of one order; strace may write the last ones a moment after the child went on."""
        last, deadline = f"{MARK}/{number}/end".encode(), time.monotonic() + _WAIT_S_MAX
        while time.monotonic() < deadline:
            with self._trace.open("rb") as file:
                file.seek(self._read_upto)
                data = file.read()
            at = data.find(last)
            end = data.find(b"\n", at) if at >= 0 else -1
            if end >= 0:
                self._read_upto += end + 1
                return data[: end + 1].decode("latin-1").splitlines()
            time.sleep(0.01)
        raise AssertionError(f"strace did not write the end of order {number}")


def _named(event: Event, number: int) -> Event:
    """A mark by its own name, without the number of the order."""
    return Event(Kind.MARK, event.path.removeprefix(f"{number}/")) if event.kind is Kind.MARK else event
