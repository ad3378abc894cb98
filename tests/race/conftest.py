"""One pool of spawned processes for all races: importing Lance is the dear part."""

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from race_helpers import SCHEMA, WRITERS, enter_pool

from omnigraph import Graph


@dataclass(frozen=True)
class Arena:
    """Eight writers that start together, and a reader that looks on until they are done."""

    executor: ProcessPoolExecutor
    stop: Any

    def run(self, worker: Any, each: list[tuple[Any, ...]], watcher: Any = None, watched: str = "") -> tuple[list, Any]:
        """What each writer returned, and what the watcher did; `each` holds the arguments of one writer."""
        self.stop.clear()
        looking: Future[Any] | None = self.executor.submit(watcher, watched) if watcher else None
        running = [self.executor.submit(worker, *arguments) for arguments in each]
        try:
            results = [future.result(timeout=800) for future in running]
        finally:
            self.stop.set()
        return results, looking.result(timeout=60) if looking else None


@pytest.fixture(scope="session")
def arena() -> Iterator[Arena]:
    spawn = multiprocessing.get_context("spawn")
    start, stop = spawn.Barrier(WRITERS), spawn.Event()
    with ProcessPoolExecutor(WRITERS + 1, spawn, initializer=enter_pool, initargs=(start, stop)) as executor:
        yield Arena(executor, stop)


@pytest.fixture
def graph_uri(tmp_path: Path) -> str:
    with Graph.init(str(tmp_path / "graph"), SCHEMA) as graph:
        return graph.uri
