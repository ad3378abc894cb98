"""Old versions: which go, which stay, and that whatever is kept is readable as a whole."""

from __future__ import annotations

from datetime import timedelta

import pytest
from upkeep_children import clean_and_die
from upkeep_scene import NOW, both, die, grow_old, ids, removed, rows, sweep

import omnigraph as og
from graph_places import DISK, Home, Place
from omnigraph.base.errors import BadRequest, Reclaimed
from omnigraph.base.ids import new_ulid
from omnigraph.commit.staging import StagingPin, staging_heartbeat
from omnigraph.engine.upkeep import seen
from omnigraph.engine.upkeep.cleanup import cleanup
from omnigraph.engine.upkeep.keep import Limits, doomed_versions, kept_commits
from omnigraph.manifest.lineage import GraphCommit
from omnigraph.storage.tables import TableRef, open_table

pytestmark = pytest.mark.slow

LONG = timedelta(days=300)


def commit(number: int, branch: str | None = None) -> GraphCommit:
    return GraphCommit(f"c{number}", branch, number, created_at=number * 1_000_000)


def names(commits: list[GraphCommit]) -> list[str]:
    return [c.graph_commit_id for c in commits]


def read_commit(graph: og.Graph, commit_id: str) -> dict[str, list[str]]:
    """Every row of a commit, by table."""
    snapshot = graph.snapshot_of(commit_id)
    found = {}
    for key, entry in snapshot.tables.items():
        table = open_table(graph.context.ref(entry.location, entry.table_branch), entry.table_version, key)
        found[key] = sorted(table.read(["id"]).column("id").to_pylist())
    return found


def read_all(graph: og.Graph) -> dict[str, dict[str, list[str]] | None]:
    """Every commit of every branch as a reader gets it; None for one that was reclaimed."""
    found: dict[str, dict[str, list[str]] | None] = {}
    for branch in graph.branch_list():
        for told in graph.list_commits(branch):
            try:
                found[told.graph_commit_id] = read_commit(graph, told.graph_commit_id)
            except Reclaimed:
                found[told.graph_commit_id] = None
    return found


@pytest.fixture
def history(home: Home) -> og.Graph:
    """Main with six commits, `draft` started from the third with two of its own."""
    graph = home.open()
    graph.write(both("a"))
    graph.branch_create("draft")
    graph.write(both("x"), branch="draft")
    graph.write({"node:Left": og.Upsert(rows("x", "y"))}, branch="draft")
    graph.write({"node:Left": og.Delete(("a",))})
    graph.ensure_indices()
    graph.write({"node:Right": og.Upsert(rows("first", "b"))})
    return graph


def main_ids(graph: og.Graph, branch: str | None = None) -> list[str]:
    return [c.graph_commit_id for c in reversed(graph.list_commits(branch))]


def test_the_newest_commits_of_every_branch_stay_and_older_ones_are_refused(place: Place, history: og.Graph) -> None:
    before = read_all(history)
    main, draft = main_ids(history), main_ids(history, "draft")
    kept = {*main[-2:], *draft[-2:], draft[2]}
    done = cleanup(history.context, 2, None, True)
    assert done.versions_removed > 0
    assert done.bytes_removed > 0
    after = read_all(og.Graph.open(history.uri, settings=history.settings))
    assert {i for i, found in after.items() if found is not None} >= kept
    assert {i: after[i] for i in kept} == {i: before[i] for i in kept}
    assert all(found is None or found == before[i] for i, found in after.items())
    assert after[main[0]] is None
    assert list(after) == list(before)  # every commit is still listed


def test_a_second_run_finds_nothing_and_writes_go_on(place: Place, home: Home, history: og.Graph) -> None:
    cleanup(history.context, 1, None, True)
    again = cleanup(home.open().context, 1, None, True)
    assert (again.versions_removed, again.orphans_kept) == (0, ())
    graph = home.open()
    graph.write(both("new"))
    graph.write(both("new"), branch="draft")
    graph.branch_create("late")
    graph.write(both("late"), branch="late")
    graph.ensure_indices()
    assert ids(graph) == ["first", "new"]
    assert graph.view().table("node:Left").find(["new"]).num_rows == 1
    assert ids(graph, "draft") == ["a", "first", "new", "x", "y"]
    assert ids(graph, "late") == ["first", "late", "new"]


def test_a_preview_counts_the_same_and_touches_nothing(place: Place, home: Home, history: og.Graph) -> None:
    before = place.listing(home.uri)
    told = cleanup(home.open("r").context, 1, None, False)
    assert place.listing(home.uri) == before
    done = cleanup(history.context, 1, None, True)
    assert (done.tables, done.orphans_removed) == (told.tables, told.orphans_removed)
    assert done.versions_removed > 0


def test_either_limit_keeps_a_commit(home: Home, history: og.Graph) -> None:
    before = read_all(history)
    for limits in ((1, LONG), (100, timedelta(0)), (None, LONG), (100, None)):
        assert cleanup(history.context, *limits, True).versions_removed == 0
    assert read_all(home.open()) == before
    assert cleanup(history.context, None, timedelta(0), True).versions_removed > 0


@pytest.mark.parametrize("where", [DISK])
def test_a_tagged_commit_stays_readable(home: Home, history: og.Graph) -> None:
    first = main_ids(history)[1]
    before = read_commit(history, first)
    history.context.objects.put("__tags/v1.json", f'{{"name": "v1", "graph_commit_id": "{first}"}}'.encode())
    cleanup(history.context, 1, None, True)
    assert read_commit(home.open(), first) == before
    history.context.objects.put("__tags/v2.json", b"{")
    assert {t.error for t in cleanup(history.context, 1, None, True).tables if t.table_key.startswith("node:")} == {
        "tag __tags/v2.json cannot be read"
    }
    history.context.objects.delete("__tags/v2.json")
    history.context.objects.delete("__tags/v1.json")
    cleanup(history.context, 1, None, True)
    with pytest.raises(Reclaimed):
        read_commit(home.open(), first)


def test_what_a_living_load_reads_stays(home: Home, history: og.Graph) -> None:
    old = history.snapshot_of(main_ids(history)[1])
    before = read_commit(history, main_ids(history)[1])
    with staging_heartbeat(history.context, new_ulid(), None, None) as beat:
        beat.pin([StagingPin(k, e.location, e.table_branch, e.table_version) for k, e in old.tables.items()])
        cleanup(history.context, 1, None, True)
        assert read_commit(home.open(), main_ids(history)[1]) == before
    cleanup(history.context, 1, None, True)
    with pytest.raises(Reclaimed):
        read_commit(home.open(), main_ids(history)[1])


def test_what_was_a_head_since_a_living_load_started_stays_though_it_named_nothing_yet(home: Home) -> None:
    graph = home.open()
    with staging_heartbeat(graph.context, new_ulid(), None, None):
        head = graph.head_commit_id_for_branch()
        for name in ("a", "b", "c"):
            graph.write(both(name))
        cleanup(graph.context, 1, None, True)
        assert read_commit(home.open(), head or "")["node:Left"] == ["first"]


def test_versions_of_the_manifest_are_never_taken(place: Place, home: Home, history: og.Graph) -> None:
    def manifest() -> set[str]:
        return {n for n in place.listing(home.uri) if n.startswith("__manifest/")}

    before = manifest()
    cleanup(history.context, 1, None, True, NOW)
    assert before <= manifest()
    assert len(history.list_commits()) == 6


def test_a_limit_is_required_and_must_make_sense(home: Home) -> None:
    graph = home.open()
    for keep, older in ((None, None), (0, None), (None, timedelta(days=-1))):
        with pytest.raises(BadRequest):
            graph.cleanup(keep, older)
    with pytest.raises(BadRequest, match="read-only"):
        home.open("r").cleanup(1, confirm=True)


def test_a_table_that_cannot_be_judged_is_told_and_the_others_go_on(
    place: Place, home: Home, history: og.Graph
) -> None:
    location = history.snapshot().tables["node:Left"].location
    ctx = history.context
    ctx.objects.put(f"{location}/_versions/{(1 << 64) - 1 - 2:020d}.manifest", b"torn")
    done = {t.table_key: t for t in cleanup(ctx, 1, None, True).tables}
    assert done["node:Left"].error
    assert done["node:Left"].old_versions_removed == 0
    assert done["node:Right"].old_versions_removed > 0
    assert ids(home.open()) == ["first"]


def test_limits_count_from_the_head_and_by_age() -> None:
    chain = [commit(n) for n in range(1, 6)]
    at = 6_000_000
    assert names(kept_commits(chain, None, Limits(2, None), at)) == ["c4", "c5"]
    assert names(kept_commits(chain, None, Limits(None, timedelta(seconds=2)), at)) == ["c5"]
    assert names(kept_commits(chain, None, Limits(1, timedelta(seconds=3)), at)) == ["c4", "c5"]
    assert names(kept_commits(chain, None, Limits(1, None), at, tagged={"c2"})) == ["c2", "c5"]


def test_the_commit_a_branch_started_from_is_kept() -> None:
    chain = [commit(1), commit(2), commit(3, "b"), commit(4, "b")]
    assert names(kept_commits(chain, "b", Limits(1, None), 9)) == ["c2", "c4"]
    assert names(kept_commits(chain[:2], "b", Limits(1, None), 9)) == ["c2"]


def test_what_was_a_head_when_a_load_started_or_later_is_kept() -> None:
    chain = [commit(n) for n in range(1, 6)]
    assert names(kept_commits(chain, None, Limits(1, None), 9, since_us=3_500_000)) == ["c3", "c4", "c5"]


def test_nothing_above_what_a_branch_records_goes_nor_the_first_version_of_a_fork() -> None:
    assert doomed_versions(range(1, 9), {3}, {2}, 6, is_fork=False) == [1, 4, 5]
    assert doomed_versions(range(4, 9), set(), set(), 6, is_fork=True) == [5]
    assert doomed_versions(range(1, 9), set(), set(), 0, is_fork=False) == []


def test_what_a_cleanup_left_that_died_after_the_versions_goes_with_age(
    place: Place, home: Home, history: og.Graph
) -> None:
    location = history.snapshot().tables["node:Right"].location
    history.context.objects.delete(f"{location}/_versions/{(1 << 64) - 1 - 2:020d}.manifest")
    assert removed(sweep(home, home.settings.staging_grace)) == []
    grow_old(place, home.uri)
    assert removed(sweep(home), "staged files") == [location]
    assert ids(home.open(), None, "node:Right") == ["a", "b", "first"]
    assert all(found is not None for i, found in read_all(home.open()).items() if i != main_ids(history)[1])


def test_a_cleanup_that_dies_halfway_leaves_every_kept_commit_whole(
    place: Place, home: Home, history: og.Graph
) -> None:
    before, main = read_all(history), main_ids(history)
    die(clean_and_die, home, "cleanup.versions_removed")
    after = read_all(home.open())
    assert all(found is None or found == before[i] for i, found in after.items())
    assert after[main[-1]] == before[main[-1]]
    assert any(found is None for found in after.values())
    cleanup(home.open().context, 1, None, True)
    grow_old(place, home.uri)
    assert removed(sweep(home), "staged files")
    assert read_commit(home.open(), main[-1]) == before[main[-1]]
    assert ids(home.open(), "draft") == ["a", "first", "x", "y"]


@pytest.mark.parametrize("where", [DISK])
def test_commits_between_the_looks_of_cleanup_are_no_drift(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whenever it has read the pins, another commit lands before it reads the heads."""
    graph, other, real = home.open(), home.open(), seen.head_version
    written = iter(range(100))

    def head_version(ref: TableRef, known: int) -> int:
        other.write(both(f"w{next(written)}"))
        return real(ref, known)

    monkeypatch.setattr(seen, "head_version", head_version)
    assert graph.cleanup(keep=1, confirm=True).tables
    assert next(written) >= 4, "it looked twice at both tables"
