"""Readers of one commit, in processes of their own, while others write, optimize and clean up."""

from __future__ import annotations

import pytest
from upkeep_children import keep_small, read_commits, write_numbered
from upkeep_scene import SCHEMA, WAIT_S, ids

from graph_places import DISK, S3, Place, home_in
from processes import FORKED

pytestmark = pytest.mark.slow
READERS = 2


@pytest.mark.parametrize("where", [DISK, pytest.param(S3, marks=pytest.mark.full)])
@pytest.mark.parametrize("commits", [60, pytest.param(600, marks=pytest.mark.full)])
def test_a_reader_gets_every_row_of_its_commit_or_hears_that_it_is_gone(place: Place, commits: int) -> None:
    home = home_in(place)
    home.init(SCHEMA)
    done, told = FORKED.Event(), FORKED.Queue()
    processes = [
        FORKED.Process(target=write_numbered, args=(home, commits, done)),
        FORKED.Process(target=keep_small, args=(home, done, told)),
        *(FORKED.Process(target=read_commits, args=(home, seed, done, told)) for seed in range(READERS)),
    ]
    try:
        for process in processes:
            process.start()
        said = [told.get(timeout=WAIT_S) for _ in processes[1:]]
        for process in processes:
            process.join(WAIT_S)
        assert [process.exitcode for process in processes] == [0] * len(processes)
    finally:
        for process in processes:
            process.kill()
    assert [what for what in said if what[0] == "wrong"] == []
    assert sum(counts["whole"] for kind, counts in said if kind == "read") >= READERS
    assert dict(said)["removed"] > 0, "nothing was collected meanwhile"
    assert len(ids(home.open("r"))) == commits
    place.remove(home.uri)
