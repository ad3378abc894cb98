"""Types that were dropped: readable at every commit that is kept, and gone with the last of them."""

from __future__ import annotations

import pytest
from test_collect import main_ids, read_all, read_commit
from upkeep_children import clean_and_die
from upkeep_scene import SCHEMA, both, die, ids, rows

import omnigraph as og
from graph_places import Home, Place
from omnigraph.base import failpoints
from omnigraph.base.failpoints import FailpointHit
from omnigraph.base.ids import new_ulid
from omnigraph.commit.staging import StagingPin, staging_heartbeat
from omnigraph.engine.upkeep.keep import doomed_versions
from omnigraph.storage.tables import has_version, table_exists

pytestmark = pytest.mark.slow

LEFT, RIGHT = (line + "\n" for line in SCHEMA.strip().splitlines())


def later(home: Home, times: int = 1) -> None:
    graph = home.open()
    for turn in range(times):
        graph.write({"node:Left": og.Upsert(rows(f"later{turn}"))})


def files(place: Place, home: Home, location: str) -> list[str]:
    return [name for name in place.listing(home.uri) if name.startswith(f"{location}/")]


@pytest.fixture
def location(home: Home) -> str:
    """Where the rows of Right lie; it has a past of three commits."""
    graph = home.open()
    graph.write(both("second"))
    graph.write({"node:Right": og.Upsert(rows("third"))})
    return graph.snapshot().tables["node:Right"].location


def test_a_dropped_type_is_whole_at_kept_commits_and_goes_with_the_last(
    place: Place, home: Home, location: str
) -> None:
    before = read_all(home.open())
    newest = main_ids(home.open())[-1]
    home.open().schema_apply(LEFT)
    later(home)
    home.open().cleanup(3, confirm=True)
    assert read_commit(home.open(), newest) == before[newest]
    done = {t.table_key: t for t in home.open().cleanup(2, confirm=True).tables}
    assert (done["node:Right"].old_versions_removed, done["node:Right"].error) == (1, None)
    assert files(place, home, location) == []
    with pytest.raises(og.Reclaimed):
        read_commit(home.open(), newest)
    again = home.open().cleanup(2, confirm=True)
    assert (again.versions_removed, again.bytes_removed, again.orphans_kept) == (0, 0, ())
    assert og.verify(home.uri, settings=home.settings).findings == ()


@pytest.mark.parametrize("point", ["schema_apply.pre_reclaim", "schema_apply.mid_reclaim"])
def test_what_an_interrupted_hard_drop_left_goes_with_cleanup(
    place: Place, home: Home, location: str, point: str
) -> None:
    graph = home.open()
    failpoints.arm(point, failpoints.fail)
    with pytest.raises(FailpointHit):
        graph.schema_apply(LEFT, allow_data_loss=True)
    failpoints.disarm_all()
    assert files(place, home, location)
    told = home.open("r").cleanup(1)
    done = home.open().cleanup(1, confirm=True)
    assert files(place, home, location) == []
    assert (done.tables, done.orphans_removed) == (told.tables, told.orphans_removed)
    assert done.bytes_removed > 0
    assert og.verify(home.uri, settings=home.settings).findings == ()
    assert ids(home.open()) == ["first", "second"]


def test_the_place_of_a_dropped_type_is_never_used_again(place: Place, home: Home, location: str) -> None:
    home.open().schema_apply(LEFT)
    later(home)
    home.open().cleanup(1, confirm=True)
    graph = home.open()
    graph.schema_apply(LEFT + RIGHT)
    graph.write({"node:Right": og.Append(rows("new"))})
    assert graph.snapshot().tables["node:Right"].location != location
    home.open().cleanup(1, confirm=True)
    assert ids(home.open(), None, "node:Right") == ["new"]
    assert files(place, home, location) == []


def test_a_tag_and_a_living_load_keep_what_they_need_of_a_dropped_type(place: Place, home: Home, location: str) -> None:
    graph = home.open()
    first, second, newest = main_ids(graph)[-3:]
    before = read_all(graph)
    graph.tag_create("kept", second)
    old = graph.snapshot_of(first).tables["node:Right"]
    graph.schema_apply(LEFT)
    later(home)
    with staging_heartbeat(home.open().context, new_ulid(), None, None) as beat:
        beat.pin([StagingPin("node:Right", old.location, old.table_branch, old.table_version)])
        home.open().cleanup(1, confirm=True)
        ref = home.open().context.ref(location, None)
        assert has_version(ref, old.table_version)
    home.open().cleanup(1, confirm=True)
    assert not has_version(ref, old.table_version)
    now = home.open()
    assert read_commit(now, second) == before[second]
    with pytest.raises(og.Reclaimed):
        read_commit(now, newest)
    home.open().tag_delete("kept")
    home.open().cleanup(1, confirm=True)
    assert files(place, home, location) == []


def test_a_type_that_was_only_renamed_keeps_its_rows(place: Place, home: Home, location: str) -> None:
    home.open().schema_apply(LEFT + RIGHT.replace("Right", 'Other @rename_from("Right")'))
    later(home, 2)
    home.open().cleanup(1, confirm=True)
    graph = home.open()
    assert graph.snapshot().tables["node:Other"].location == location
    assert ids(graph, None, "node:Other") == ["first", "second", "third"]


def test_a_branch_made_before_the_cleanup_is_whole_after_it(place: Place, home: Home, location: str) -> None:
    graph = home.open()
    graph.schema_apply(LEFT)
    graph.branch_create("draft")
    graph.write({"node:Left": og.Append(rows("drafted"))}, branch="draft")
    later(home)
    home.open().cleanup(1, confirm=True)
    assert files(place, home, location) == []
    assert ids(home.open(), "draft") == ["drafted", "first", "second"]
    assert og.verify(home.uri, settings=home.settings).findings == ()


def test_what_a_cleanup_left_that_died_in_a_dropped_type_goes_with_the_next(
    place: Place, home: Home, location: str
) -> None:
    home.open().schema_apply(LEFT)
    later(home)
    # It dies once in each of the two tables, with the versions gone and the files there.
    for _ in range(2):
        die(clean_and_die, home, "cleanup.versions_removed")
    assert files(place, home, location)
    assert not table_exists(home.open().context.ref(location, None))
    home.open().cleanup(1, confirm=True)
    assert files(place, home, location) == []
    assert ids(home.open()) == ["first", "later0", "second"]


def test_of_a_dropped_table_only_what_is_pinned_or_forked_stays() -> None:
    assert doomed_versions(range(1, 9), {3}, {2}, None, is_fork=False) == [1, 4, 5, 6, 7, 8]
    assert doomed_versions([], set(), set(), None, is_fork=False) == []
