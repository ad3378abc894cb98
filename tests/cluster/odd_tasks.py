"""Tasks that do their work and then misbehave. They travel by value, so that no executor has to import them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_WAIT_S_MAX = 200
# Tasks over buckets, of which any may be empty.
_MAY_WRITE_NOTHING = ("match", "thin")


@dataclass(frozen=True)
class Odd:
    """Does what `do` does, files and all, then behaves in its `way` before it answers.

    held: waits for the file `open`, so that somebody can end it first; a task that found nothing to write does not.
    twin: the first partition waits until a second copy of it has done the same work.
    fails: the first attempt at each partition is lost after its work; never: every attempt is.
    """

    do: Callable[..., Any]
    name: str
    way: str
    folder: str

    def __call__(self, *arguments: Any, **more: Any) -> Any:
        done = self.do(*arguments, **more)
        if done or self.name not in _MAY_WRITE_NOTHING:
            getattr(self, f"_{self.way}")()
        return done

    def _held(self) -> None:
        Path(self.folder, f"{self.name}-{os.getpid()}").touch()
        _wait_for(Path(self.folder, "open"))

    def _twin(self) -> None:
        stage, partition = _place()
        if partition == 0 and self._is_first():
            _wait_for(Path(self.folder, f"{self.name}-{stage}-0-again"))

    def _fails(self) -> None:
        if self._is_first():
            raise RuntimeError("lost after its work")

    def _never(self) -> None:
        raise RuntimeError("lost after its work")

    def _is_first(self) -> bool:
        stage, partition = _place()
        name = f"{self.name}-{stage}-{partition}"
        try:
            os.close(os.open(f"{self.folder}/{name}", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            Path(self.folder, f"{name}-again").touch()
            return False
        return True


def _place() -> tuple[int, int]:
    """The stage and partition of this task: the same for every attempt at it and every copy of it."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    return context.stageId(), context.partitionId()


def _wait_for(path: Path) -> None:
    deadline = time.monotonic() + _WAIT_S_MAX
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
