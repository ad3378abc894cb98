"""The manifest alone says which branches exist, whatever becomes of the tables that follow it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.base import failpoints
from omnigraph.commit import branches as module
from omnigraph.manifest import layout
from omnigraph.storage.refs import fork_branch_from_state, list_branches
from omnigraph.storage.tables import newest_number

pytestmark = pytest.mark.slow

SCHEMA = "node Person { name: String @key age: I32? }\nnode City { name: String @key }"
P = "node:Person"


class Died(BaseException):
    """A process that stops here."""


def die() -> None:
    raise Died


def add(graph: og.Graph, branch: str | None, *names: str, table: str = P) -> None:
    graph.write({table: og.Append(pa.table({"id": list(names), "name": list(names)}))}, branch=branch)


def people(graph: og.Graph, branch: str | None = None) -> list[str]:
    return sorted(graph.view(branch).table(P).read(["id"]).column("id").to_pylist())


def forks(graph: og.Graph) -> set[str]:
    return set(list_branches(graph.context.ref(graph.snapshot().tables[P].location, None)))


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[og.Graph]:
    made = og.Graph.init(str(tmp_path / "graph"), SCHEMA)
    add(made, None, "ana")
    yield made
    failpoints.disarm_all()


@pytest.mark.parametrize("name", ["  draft ", "Draft", "a.b_c-d", "v1.2/x-y/Z_9", "x" * 128, ".hidden", "-dash"])
def test_a_name_is_trimmed_and_may_hold_letters_digits_dots_dashes_and_underscores(graph: og.Graph, name: str) -> None:
    graph.branch_create(name)
    assert graph.branch_list() == ["main", name.strip()]
    add(graph, name.strip(), "bo")
    assert people(graph, name) == ["ana", "bo"]
    graph.branch_delete(name)
    assert graph.branch_list() == ["main"]


def test_a_load_finds_the_branch_it_made_however_the_name_was_padded(graph: og.Graph, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"type":"Person","data":{"name":"bo"}}\n', encoding="ascii")
    done = graph.load(tmp_path / "in.jsonl", mode="append", branch=" draft ", from_branch=" main ")
    assert (done.branch, done.branch_created, people(graph, "draft")) == ("draft", True, ["ana", "bo"])


def test_main_is_listed_first_and_the_others_sorted(graph: og.Graph) -> None:
    for name in ("zeta", "alpha", "Beta", "team/b", "team/a"):
        graph.branch_create(name)
    assert graph.branch_list() == ["main", "Beta", "alpha", "team/a", "team/b", "zeta"]


def test_making_a_branch_is_no_commit(graph: og.Graph) -> None:
    before = [c.graph_commit_id for c in graph.list_commits()]
    graph.branch_create("draft")
    assert [c.graph_commit_id for c in graph.list_commits("draft")] == before
    assert [c.graph_commit_id for c in graph.list_commits()] == before


def test_an_internal_branch_is_hidden_and_stops_the_making_of_others(graph: og.Graph) -> None:
    manifest = graph.context.manifest.ref()
    fork_branch_from_state(manifest, None, layout.SCHEMA_LOCK_BRANCH, newest_number(manifest))
    assert graph.branch_list() == ["main"]
    with pytest.raises(og.Conflict, match="schema apply is running"):
        graph.branch_create("draft")
    for refused in (graph.branch_delete, graph.sync_branch, graph.snapshot):
        with pytest.raises(og.BadRequest, match="does not allow internal system ref"):
            refused(layout.SCHEMA_LOCK_BRANCH)


def test_a_branch_with_a_pending_write_is_not_deleted(graph: og.Graph) -> None:
    graph.branch_create("draft")
    failpoints.arm("load.post_phase_b_pre_manifest_commit", die)
    with pytest.raises(Died):
        add(graph, "draft", "bo")
    failpoints.disarm_all()
    with pytest.raises(og.Conflict, match="recovery pending"):
        graph.branch_delete("draft")
    again = og.Graph.open(graph.uri)
    again.branch_delete("draft")
    assert again.branch_list() == ["main"]


def test_a_name_never_half_exists_when_its_commit_table_cannot_be_forked(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> None:
        raise og.Unavailable("the store went away", what="store")

    with monkeypatch.context() as broken:
        broken.setattr(module, "fork_commit_table", fails)
        with pytest.raises(og.Unavailable):
            graph.branch_create("draft")
    assert graph.branch_list() == ["main"]
    with pytest.raises(og.NotFound):
        graph.snapshot("draft")
    graph.branch_create("draft")
    assert people(graph, "draft") == ["ana"]


def test_a_fork_that_cannot_be_reclaimed_does_not_bring_its_branch_back(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    graph.branch_create("draft")
    add(graph, "draft", "bo")
    delete = module.delete_branch

    def picky(ref: Any, name: str) -> None:
        if ref.location != layout.MANIFEST:
            raise OSError("the disk is full of eels")
        delete(ref, name)

    with monkeypatch.context() as broken, caplog.at_level(logging.WARNING, "omnigraph.branches"):
        broken.setattr(module, "delete_branch", picky)
        graph.branch_delete("draft")
    assert graph.branch_list() == ["main"]
    assert forks(graph) == {"draft"}
    assert "stays until cleanup: the disk is full of eels" in caplog.text
    with pytest.raises(og.NotFound):
        graph.view("draft")


def test_a_snapshot_taken_before_stays_as_it_was_while_the_branch_advances(graph: og.Graph) -> None:
    graph.branch_create("draft")
    view = graph.view("draft")
    add(graph, "draft", "bo")
    assert view.table(P).read(["id"]).column("id").to_pylist() == ["ana"]


def test_one_handle_serves_several_threads_on_several_branches(graph: og.Graph) -> None:
    names = [f"b{n}" for n in range(4)]
    for name in names:
        graph.branch_create(name)

    def work(name: str) -> list[str]:
        for turn in range(3):
            add(graph, name, f"{name}-{turn}")
        return people(graph, name)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(work, names))
    assert found == [["ana", *(f"{name}-{turn}" for turn in range(3))] for name in names]
    assert people(graph) == ["ana"]


def test_refresh_shows_the_newest_head_of_another_writer(graph: og.Graph) -> None:
    other = og.Graph.open(graph.uri)
    graph.branch_create("draft")
    graph.sync_branch("draft")
    add(other, "draft", "bo")
    graph.refresh()
    assert (people(graph), graph.head_commit_id_for_branch()) == (
        ["ana", "bo"],
        other.snapshot("draft").graph_commit_id,
    )


def test_a_write_prepared_on_an_earlier_branch_of_the_name_is_refused(graph: og.Graph) -> None:
    graph.branch_create("draft")
    add(graph, "draft", "bo")
    view, head = graph.view("draft"), graph.head_commit_id_for_branch("draft")
    graph.branch_delete("draft")
    graph.branch_create("draft")
    rows = pa.table({"id": ["late"], "name": ["late"]})
    with pytest.raises(og.OmniError):
        graph.write({P: og.Append(rows)}, view=view)
    with pytest.raises(og.PreconditionFailed):
        graph.write({P: og.Append(rows)}, branch="draft", if_commit=head)
    assert people(graph, "draft") == ["ana"]
