"""Puts a writing process to sleep and wakes it, and watches what readers see meanwhile."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Any

from s3_scene import Scene, shown

import omnigraph as og
from graph_places import unusual
from omnigraph.base.ids import new_ulid
from omnigraph.settings import Settings

ANSWER_S_MAX = 60


class Sleeper:
    """A process that writes on command; while it sleeps it lives, so nobody may call it gone."""

    def __init__(self) -> None:
        program = [sys.executable, str(Path(__file__).with_name("sleeper_child.py"))]
        self._process = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._line() == b"ready\n"

    @property
    def pid(self) -> int:
        return self._process.pid

    def begin(
        self, uri: str, settings: Settings, name: str, stop: str = "", skew_s: int = 0, blind: bool = False
    ) -> str:
        """Start a write of one row per table; returns its operation id."""
        operation_id = new_ulid()
        command: dict[str, Any] = {
            "settings": unusual(settings),
            "uri": uri,
            "operation_id": operation_id,
            "name": name,
            "stop": stop,
            "skew_s": skew_s,
            "blind": blind,
        }
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command).encode() + b"\n")
        self._process.stdin.flush()
        return operation_id

    def put_to_sleep(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)
        self.wait_until_asleep()

    def wait_until_asleep(self) -> None:
        _, status = os.waitpid(self.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status), "the writer ended instead of falling asleep"

    def wake(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def answer(self) -> dict[str, str]:
        """What the writer was told in the end."""
        return dict(json.loads(self._line()))

    def end(self) -> None:
        self._process.kill()
        self._process.wait()

    def _line(self) -> bytes:
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], ANSWER_S_MAX)
        assert ready, "the writer does not answer"
        return self._process.stdout.readline()


class Watcher:
    """A reader that looks at both tables again and again; `states` are the different things it saw, in order."""

    def __init__(self, scene: Scene) -> None:
        self.states: list[dict[str, list[str]]] = []
        self.failures: list[Exception] = []
        self._graph = og.Graph.open(scene.uri, "r", settings=scene.direct.settings)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Watcher:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(0.02):
            try:
                seen = shown(self._graph)
            except Exception as error:
                self.failures.append(error)
                continue
            if not self.states or self.states[-1] != seen:
                self.states.append(seen)
