"""What interrupted work leaves behind, made by processes that die, and what cleanup does about it."""

from __future__ import annotations

import json
import os
import shutil
from datetime import timedelta

import pyarrow as pa
import pytest
from upkeep_children import create_and_die, delete_and_die, write_and_die
from upkeep_scene import NOW, both, die, grow_old, ids, kept, removed, rows, sweep

import omnigraph as og
from graph_places import DISK, Home, Place
from omnigraph.base.errors import Conflict, Drift
from omnigraph.base.ids import new_ulid
from omnigraph.commit.fences import fence_of
from omnigraph.engine.upkeep.cleanup import cleanup
from omnigraph.manifest import layout
from omnigraph.storage.ledger import create_now
from omnigraph.storage.refs import delete_branch, fork_branch_from_state, list_branches, read_branch
from omnigraph.storage.tables import newest_number, open_table

LEFT = layout.table_location("node", "Left")
RIGHT = layout.table_location("node", "Right")

pytestmark = pytest.mark.slow


def forks(home: Home, location: str = LEFT) -> list[str]:
    return sorted(list_branches(home.open("r").context.ref(location, None)))


def read_everything(graph: og.Graph) -> dict[str, list[str]]:
    """Every row of every table of every commit of every branch."""
    found = {}
    for branch in graph.branch_list():
        for commit in graph.list_commits(branch):
            snapshot = graph.snapshot_of(commit.graph_commit_id)
            for key, entry in snapshot.tables.items():
                table = open_table(graph.context.ref(entry.location, entry.table_branch), entry.table_version)
                found[f"{branch} {commit.graph_commit_id} {key}"] = sorted(table.read(["id"])["id"].to_pylist())
    return found


def test_an_idle_graph_has_no_leftovers_and_every_commit_stays_readable(place: Place, home: Home) -> None:
    graph = home.open()
    graph.branch_create("draft")
    graph.write(both("a"), branch="draft")
    graph.write({"node:Left": og.Delete(("first",))})
    graph.ensure_indices()
    before, files = read_everything(graph), place.listing(home.uri)
    grow_old(place, home.uri)
    done = sweep(home)
    assert (done.orphans_removed, done.orphans_kept) == ((), ())
    assert all(table.error is None for table in done.tables)
    assert {n for n in files if not n.startswith("_graph_commit")} <= set(place.listing(home.uri))
    assert read_everything(home.open()) == before


def test_files_staged_by_a_killed_writer_go_when_they_are_old_and_not_before(place: Place, home: Home) -> None:
    clean = set(place.listing(home.uri))
    die(write_and_die, home, "stage.files_written", None, "lost")
    staged = {n for n in set(place.listing(home.uri)) - clean if n.startswith("nodes/")}
    assert staged
    young = sweep(home, home.settings.staging_grace)
    assert (removed(young, "staged files"), staged - set(place.listing(home.uri))) == ([], set())
    grow_old(place, home.uri)
    done = sweep(home)
    assert removed(done, "staged files")
    assert not staged & set(place.listing(home.uri))
    assert ids(home.open()) == ["first"]


DOCS = """
node Doc {
  name: String @key
  text: String? @index
  vec: Vector(4)? @index
  body: Blob?
}
"""


@pytest.mark.parametrize("where", [DISK])
def test_indexes_of_every_kind_deletions_and_blobs_stay_and_lance_agrees_on_the_rest(place: Place, tmp_path) -> None:
    home = Home(place.fresh(), place.settings)
    graph = home.init(DOCS)
    for turn in range(2):
        docs = [
            {"name": f"d{turn}{i}", "text": f"hello {i}", "vec": [i, 1, 2, 3], "body": f"base64:{'QUJD' * size}"}
            for i, size in enumerate((1, 50_000, 2_000_000))
        ]
        file = tmp_path / f"{turn}.jsonl"
        file.write_text("\n".join(json.dumps({"type": "Doc", "data": doc}) for doc in docs))
        graph.load(str(file), mode="append")
    graph.write({"node:Doc": og.Delete(("d00",))})
    before = sorted(graph.export())
    location = graph.snapshot().tables["node:Doc"].location
    lost = [f"{location}/{name}" for name in ("data/lost.lance", "_indices/abc/x.lance", "_deletions/0-1-2.arrow")]
    for key in lost:
        graph.context.objects.put(key, b"x")
    dataset = open_table(graph.context.ref(location, None), None).dataset
    told = dataset.explain_cleanup_old_versions(
        older_than=timedelta(days=9_999), delete_unverified=True, include_files=True
    )
    # Lance names data and index files; staged deletions it leaves for ever.
    assert sorted(f"/{c.path}" for c in told.candidate_files) == sorted(f"{home.uri}/{key}" for key in lost[:2])
    grow_old(place, home.uri)
    files = set(place.listing(home.uri))
    sweep(home)
    assert {n for n in files - set(place.listing(home.uri)) if not n.startswith("_graph_commit")} == set(lost)
    assert sorted(home.open().export()) == before
    assert open_table(graph.context.ref(location, None), None).find(["d11"]).num_rows == 1


def test_a_preview_names_the_same_and_touches_nothing(place: Place, home: Home) -> None:
    home.open().branch_create("gone")
    home.open().write(both("a"), branch="gone")
    die(delete_and_die, home, "branch_delete.post_manifest", "gone")
    die(write_and_die, home, "stage.files_written", None, "lost")
    grow_old(place, home.uri)
    before = place.listing(home.uri)
    told = cleanup(home.open("r").context, 1_000, None, False, NOW)
    assert place.listing(home.uri) == before
    assert not told.confirm
    done = sweep(home)
    assert (removed(done), done.tables) == (removed(told), told.tables)
    assert removed(cleanup(home.open("r").context, 1_000, None, False, NOW)) == []


def test_forks_of_a_branch_whose_deletion_died_are_dropped(place: Place, home: Home) -> None:
    graph = home.open()
    graph.branch_create("gone")
    graph.write(both("a"), branch="gone")
    head = newest_number(graph.context.ref(LEFT, "gone"))
    die(delete_and_die, home, "branch_delete.post_manifest", "gone")
    assert forks(home) == forks(home, layout.COMMITS) == ["gone"]
    done = sweep(home)
    assert removed(done, "fork") == [f"{p}/tree/gone" for p in sorted([LEFT, RIGHT])]
    assert removed(done, "commit-graph branch") == [f"{layout.COMMITS}/tree/gone"]
    assert forks(home) == forks(home, layout.COMMITS) == []
    assert fence_of(home.open().context.objects, "gone")[LEFT] >= head
    again = home.open()
    again.branch_create("gone")
    again.write(both("b"), branch="gone")
    assert ids(again, "gone") == ["b", "first"]


def test_a_name_that_is_blocked_by_stale_forks_is_free_after_cleanup(place: Place, home: Home) -> None:
    graph = home.open()
    graph.branch_create("draft")
    graph.write(both("a"), branch="draft")
    die(delete_and_die, home, "branch_delete.post_manifest", "draft")
    graph = home.open()
    graph.branch_create("draft")
    with pytest.raises(Conflict, match="run omnigraph cleanup"):
        graph.write(both("b"), branch="draft")
    done = sweep(home)
    assert removed(done, "stale fork") == [f"{p}/tree/draft" for p in sorted([LEFT, RIGHT])]
    graph.write(both("b"), branch="draft")
    assert ids(graph, "draft") == ["b", "first"]


def test_a_fork_left_before_its_first_commit_stays_and_is_used(place: Place, home: Home) -> None:
    home.open().branch_create("draft")
    die(write_and_die, home, "fork.post_create", "draft", "lost")
    assert forks(home) == ["draft"]
    grow_old(place, home.uri)
    done = sweep(home)
    assert (removed(done, "fork"), removed(done, "stale fork")) == ([], [])
    home.open().write(both("b"), branch="draft")
    assert ids(home.open(), "draft") == ["b", "first"]


def test_a_branch_whose_creation_died_stays_a_branch(place: Place, home: Home) -> None:
    die(create_and_die, home, "branch_create.post_manifest", "young")
    assert removed(sweep(home)) == []
    graph = home.open()
    graph.write(both("a"), branch="young")
    assert ids(graph, "young") == ["a", "first"]


def test_a_branch_whose_deletion_died_before_it_began_stays_whole(place: Place, home: Home) -> None:
    graph = home.open()
    graph.branch_create("draft")
    graph.write(both("a"), branch="draft")
    die(delete_and_die, home, "branch_delete.pre_manifest", "draft")
    assert removed(sweep(home)) == []
    assert ids(home.open(), "draft") == ["a", "first"]


def test_orphans_of_orphans_go_children_first(place: Place, home: Home) -> None:
    graph = home.open()
    graph.branch_create("low")
    graph.write(both("a"), branch="low")
    graph.branch_create_from("low", "high")
    graph.write(both("b"), branch="high")
    for name in ("high", "low"):
        delete_branch(graph.context.manifest.ref(), name)
    done = sweep(home)
    dropped = [r.path for r in done.orphans_removed if r.path.startswith(LEFT)]
    assert dropped == [f"{LEFT}/tree/high", f"{LEFT}/tree/low"]
    assert (forks(home), kept(done)) == ([], {})


def test_an_orphan_with_a_living_child_is_kept_and_named(place: Place, home: Home) -> None:
    graph = home.open()
    graph.branch_create("low")
    graph.write(both("a"), branch="low")
    graph.branch_create_from("low", "high")
    graph.write({"node:Left": og.Append(rows("b"))}, branch="high")
    ref = graph.context.manifest.ref()
    # The manifest would refuse this; a foreign hand did not ask it.
    graph.context.objects.delete(f"{ref.location}/_refs/branches/low.json")
    done = cleanup(home.open().context, 1_000, None, True, NOW)
    assert "still reads it" in kept(done)[f"{RIGHT}/tree/low"]
    assert f"{LEFT}/tree/low" in kept(done)
    assert forks(home, RIGHT) == ["low"]
    assert forks(home, LEFT) == ["high", "low"]


def test_a_fork_that_lance_refuses_to_delete_is_kept_with_its_reason(place: Place, home: Home) -> None:
    graph = home.open()
    graph.branch_create("gone")
    graph.write(both("a"), branch="gone")
    main = open_table(graph.context.ref(LEFT, None), None).dataset
    main.tags.create("mark", ("gone", newest_number(graph.context.ref(LEFT, "gone"))))
    die(delete_and_die, home, "branch_delete.post_manifest", "gone")
    done = sweep(home)
    assert "Ref conflict" in kept(done)[f"{LEFT}/tree/gone"]
    assert removed(done, "fork") == [f"{RIGHT}/tree/gone"]
    assert all(table.error is None for table in done.tables)
    main.tags.delete("mark")
    assert removed(sweep(home), "fork") == [f"{LEFT}/tree/gone"]


def test_a_fork_of_a_live_branch_made_from_elsewhere_is_stale(place: Place, home: Home) -> None:
    graph = home.open()
    graph.branch_create("child")
    first = newest_number(graph.context.ref(LEFT, None))
    fork_branch_from_state(graph.context.ref(LEFT, None), None, "child", first - 1)
    assert removed(sweep(home), "stale fork") == [f"{LEFT}/tree/child"]
    assert forks(home) == []


def test_the_files_of_a_half_deleted_fork_go_and_those_of_branches_below_it_stay(place: Place, home: Home) -> None:
    graph = home.open()
    graph.branch_create("team")
    graph.write(both("a"), branch="team")
    die(delete_and_die, home, "branch_delete.post_manifest", "team")
    graph = home.open()
    graph.context.objects.delete(f"{LEFT}/_refs/branches/team.json")
    graph.branch_create("team/x")
    graph.write(both("b"), branch="team/x")
    done = sweep(home)
    assert removed(done, "files of a deleted fork") == [f"{LEFT}/tree/team"]
    assert removed(done, "fork") == [f"{RIGHT}/tree/team"]
    assert kept(done) == {}
    left = [n for n in place.listing(home.uri) if "/tree/team/" in n]
    assert left
    assert all("/tree/team/x/" in n for n in left)
    assert ids(home.open(), "team/x") == ids(home.open(), "team/x", "node:Right") == ["b", "first"]


def test_an_orphan_whose_folder_lies_inside_a_living_fork_is_left_alone(place: Place, home: Home) -> None:
    graph = home.open()
    graph.branch_create("team/data")
    graph.write(both("a"), branch="team/data")
    die(delete_and_die, home, "branch_delete.post_manifest", "team/data")
    graph = home.open()
    graph.branch_create("team")
    graph.write(both("b"), branch="team")
    done = sweep(home)
    assert "lie inside those of branch 'team'" in kept(done)[f"{LEFT}/tree/team/data"]
    assert ids(home.open(), "team") == ["b", "first"]


def test_a_table_that_was_never_registered_goes_when_it_is_old(place: Place, home: Home) -> None:
    ctx = home.open().context
    create_now(ctx.ref("nodes/0123456789abcdef", None), pa.schema([pa.field("id", pa.string())]), None)
    young = sweep(home)
    assert "lately" in kept(young)["nodes/0123456789abcdef"]
    grow_old(place, home.uri)
    assert removed(sweep(home), "unregistered table") == ["nodes/0123456789abcdef"]
    assert not [n for n in place.listing(home.uri) if "0123456789abcdef" in n]


def test_tables_of_old_runs_go(place: Place, home: Home) -> None:
    ctx = home.open().context
    for name in ("_graph_runs.lance", "_graph_run_actors.lance"):
        create_now(ctx.ref(name, None), pa.schema([pa.field("id", pa.string())]), None)
    assert removed(sweep(home), "legacy table") == ["_graph_run_actors.lance", "_graph_runs.lance"]


def test_a_staging_folder_without_a_heartbeat_goes_when_it_is_old(place: Place, home: Home) -> None:
    ctx, operation = home.open().context, new_ulid()
    ctx.objects.put(f"__staging/{operation}/part", b"x")
    assert removed(sweep(home)) == []
    grow_old(place, home.uri)
    assert removed(sweep(home), "staging folder") == [f"__staging/{operation}"]


def test_leases_of_names_that_are_no_branches_go_and_those_of_branches_stay(place: Place, home: Home) -> None:
    graph = home.open()
    for name in ("gone", "draft"):
        graph.branch_create(name)
        graph.write(both("a"), branch=name)
    graph.branch_delete("gone")
    before = {n for n in place.listing(home.uri) if n.startswith("__locks/")}
    done = sweep(home)
    wanted = [] if place.name == DISK else [f"__locks/{layout.lock_name('gone')}.json"]
    assert removed(done, "lock") == wanted
    assert {n for n in place.listing(home.uri) if n.startswith("__locks/")} == before - set(wanted)
    home.open().write(both("b"), branch="draft")


def test_cleanup_refuses_while_a_sidecar_is_pending(place: Place, home: Home) -> None:
    die(write_and_die, home, "load.post_phase_a_pre_phase_b", None, "lost")
    ctx = home.open("r").context
    with pytest.raises(Conflict, match="recovery pending: __recovery/"):
        cleanup(ctx, 1_000, None, True, NOW)
    assert removed(sweep(home)) == []  # opening it for writing settled the sidecar


def test_cleanup_refuses_drift_on_main(place: Place, home: Home) -> None:
    graph = home.open()
    open_table(graph.context.ref(LEFT, None), None).dataset.delete("id = 'first'")
    with pytest.raises(Drift):
        cleanup(graph.context, 1_000, None, True, NOW)


@pytest.mark.parametrize("where", [DISK])
def test_cleanup_refuses_when_a_live_branch_cannot_be_read(place: Place, home: Home) -> None:
    graph = home.open()
    graph.branch_create("draft")
    graph.write(both("a"), branch="draft")
    shutil.rmtree(os.path.join(home.uri, "__manifest/tree/draft/_versions"))
    with pytest.raises(Conflict, match="could not classify live branch 'draft'"):
        sweep(home)
    assert read_branch(graph.context.ref(LEFT, None), "draft") is not None
