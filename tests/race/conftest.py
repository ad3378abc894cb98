"""One pool of processes for all races."""

from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from race_helpers import CREWS, SCHEMA, Ground, enter_pool

from graph_places import S3, DiskPlace, Place, S3Place
from processes import FORKED


@dataclass(frozen=True)
class Arena:
    """Writers that start together, and a reader that looks on until they are done."""

    executor: ProcessPoolExecutor
    stop: Any

    def run(self, worker: Any, each: list[tuple[Any, ...]], watcher: Any = None) -> tuple[list, Any]:
        """What each writer returned, and what the watcher did; `each` holds the arguments of one writer."""
        self.stop.clear()
        looking: Future[Any] | None = self.executor.submit(watcher, each[0][0]) if watcher else None
        running = [self.executor.submit(worker, *arguments) for arguments in each]
        try:
            results = [future.result(timeout=800) for future in running]
        finally:
            self.stop.set()
        return results, looking.result(timeout=60) if looking else None


@pytest.fixture(scope="session")
def arena() -> Iterator[Arena]:
    gates, stop = {crew: FORKED.Barrier(crew) for crew in CREWS.values()}, FORKED.Event()
    with ProcessPoolExecutor(max(gates) + 1, FORKED, initializer=enter_pool, initargs=(gates, stop)) as executor:
        yield Arena(executor, stop)


@pytest.fixture
def place(where: str, tmp_path: Path, request: pytest.FixtureRequest) -> Place:
    return S3Place(request.getfixturevalue("s3_server")) if where == S3 else DiskPlace(tmp_path)


@pytest.fixture
def ground(where: str, place: Place) -> Iterator[Ground]:
    """A new graph in the place the test names, for the writers that place is given."""
    found = Ground(place.fresh(), place.settings, CREWS[where])
    found.init(SCHEMA).close()
    yield found
    place.remove(found.uri)
