"""Reading the manifest: warm reads are cheap at any depth, and every way to a state gives the same state."""

import os

import lance
import pytest
from manifest_helpers import SCHEMA, intent, people, pin, publish

from omnigraph import Graph, NotFound, Settings, Upsert
from omnigraph.manifest.branches import create_manifest_branch
from omnigraph.manifest.rows import Changes, build_rows, to_arrow
from omnigraph.storage import tables
from omnigraph.storage.ledger import append_if_head


@pytest.fixture
def graph(tmp_path) -> Graph:
    return Graph.init(str(tmp_path / "graph"), SCHEMA, settings=Settings(manifest_compact_fragments=10_000))


def grow(graph: Graph, commits: int) -> None:
    for number in range(commits):
        publish(graph, Changes((pin(number + 2, number),)))


class Calls:
    """Counts what a read asks of the file system and of Lance."""

    def __init__(self, monkeypatch) -> None:
        self.exists: list[str] = []
        self.others: list[str] = []
        there, listing, opening = os.access, os.listdir, lance.dataset
        monkeypatch.setattr(os, "access", lambda p, mode: (self.exists.append(str(p)), there(p, mode))[1])
        monkeypatch.setattr(os, "listdir", lambda p: (self.others.append(f"list {p}"), listing(p))[1])
        monkeypatch.setattr(tables.lance, "dataset", lambda *a, **k: (self.others.append("open"), opening(*a, **k))[1])


@pytest.mark.parametrize("depth", [10, pytest.param(100, marks=pytest.mark.slow)])
def test_warm_read_asks_for_two_names_and_nothing_else_at_any_depth(graph: Graph, depth: int, monkeypatch):
    grow(graph, depth)
    known = graph.snapshot()
    with monkeypatch.context() as patched:
        calls = Calls(patched)
        assert graph.snapshot() == known
    newest = known.version
    versions = f"{graph.uri}/__manifest/_versions"
    asked = [f"{versions}/{2**64 - 1 - v:020d}.manifest" for v in (newest + 1, newest)]
    assert calls.exists == asked
    assert calls.others == []


@pytest.mark.parametrize("depth", [10, pytest.param(100, marks=pytest.mark.slow)])
def test_read_after_a_foreign_commit_reads_only_the_new_rows(graph: Graph, depth: int, monkeypatch):
    grow(graph, depth)
    reader = Graph.open(graph.uri, "r")
    publish(graph, Changes((pin(depth + 2, 7),)))
    read: list[int] = []
    reading = tables.Table.read

    def counted(self, *arguments):
        found = reading(self, *arguments)
        read.append(found.num_rows)
        return found

    monkeypatch.setattr(tables.Table, "read", counted)
    assert reader.snapshot().tables["node:Person"].table_version == depth + 2
    assert read == [2]


def test_handle_that_followed_step_by_step_agrees_with_one_opened_afresh(graph: Graph):
    follower = Graph.open(graph.uri, "r")
    for number in range(12):
        publish(graph, Changes((pin(number + 2, number),)) if number % 3 else Changes())
        fresh = Graph.open(graph.uri, "r")
        assert follower.snapshot() == fresh.snapshot() == graph.snapshot()
        assert follower.list_commits() == fresh.list_commits() == graph.list_commits()


def test_state_taken_before_stays_as_it_was_while_the_branch_advances(graph: Graph):
    before = graph.context.manifest.state()
    entries, commits = dict(before.entries), before.commits()
    grow(graph, 5)
    assert dict(before.entries) == entries
    assert before.commits() == commits
    assert before.head == commits[-1]


def test_publisher_that_adopts_its_state_after_another_thread_read_further_stays_whole(graph: Graph):
    """The handle's own publish landed; before it noted so, another thread read a still newer head."""
    store, other = graph.context.manifest, Graph.open(graph.uri)
    before = store.state()
    rows = build_rows(Changes(), intent(), before.head_id, before.head.created_at + 1)
    landed = append_if_head(before.table, to_arrow(rows), {})
    publish(other)
    assert len(store.state().commits()) == 3
    store.adopt(before, landed, rows)
    publish(other)
    publish(other)
    assert graph.list_commits() == other.list_commits()
    assert store.state().head_id == other.head_commit_id_for_branch()


@pytest.mark.parametrize("asked", [0, -1, 99])
def test_graph_version_outside_history_is_not_found(graph: Graph, asked: int):
    with pytest.raises(NotFound, match=f"graph version {asked} not found"):
        graph.snapshot_at_version(asked)


def test_every_graph_version_shows_what_was_head_then(graph: Graph):
    seen = {}
    for name in ("ana", "bob", "cleo"):
        graph.write({"node:Person": Upsert(people(name))})
        seen[graph.snapshot().version] = dict(graph.snapshot().tables)
    later = Graph.open(graph.uri, "r")
    assert {v: dict(later.snapshot_at_version(v).tables) for v in seen} == seen
    for commit in later.list_commits():
        assert later.snapshot_of(commit.graph_commit_id).version == commit.manifest_version


def test_branch_starts_at_its_source_and_goes_its_own_way(graph: Graph):
    grow(graph, 2)
    create_manifest_branch(graph.context.manifest, None, "team/a")
    fork = graph.snapshot()
    publish(graph, Changes((pin(9, 90),)))
    own = publish(graph, Changes((pin(5, 50),)), branch="team/a")
    assert graph.snapshot("team/a").tables["node:Person"].table_version == 5
    assert graph.snapshot().tables["node:Person"].table_version == 9
    assert own.commit.parent_commit_id == fork.graph_commit_id
    assert own.commit.manifest_branch == "team/a"
    branches = [c.manifest_branch for c in Graph.open(graph.uri, "r").list_commits("team/a")]
    assert branches == ["team/a", None, None, None]


def test_missing_branch_is_not_found(graph: Graph):
    with pytest.raises(NotFound, match="branch 'nowhere' not found"):
        graph.snapshot("nowhere")


@pytest.mark.parametrize("depth", [10, pytest.param(100, marks=pytest.mark.slow)])
def test_warm_read_of_a_branch_adds_one_look_at_the_branch_references(graph: Graph, depth: int, monkeypatch):
    create_manifest_branch(graph.context.manifest, None, "draft")
    grow(graph, depth)
    for number in range(depth):
        publish(graph, Changes((pin(number + 2, number),)), branch="draft")
    known = graph.snapshot("draft")
    with monkeypatch.context() as patched:
        calls = Calls(patched)
        assert graph.snapshot("draft") == known
    assert len(calls.exists) == 2
    assert calls.others == []
