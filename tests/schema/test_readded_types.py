"""A name that was dropped and made again is another table: what was prepared or read on the old one never meets it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from apply_scene import leftovers, rows

import omnigraph as og
from omnigraph.base import failpoints
from omnigraph.catalog.contract import AcceptedSchema
from omnigraph.commit.plan import LOAD, WritePlan
from omnigraph.commit.protocol import commit_plan
from omnigraph.commit.sidecar import encode, sidecar_of
from omnigraph.engine.view import View
from omnigraph.engine.write.changes import Annotations, plan_changes
from omnigraph.manifest import layout
from omnigraph.manifest.store import BranchState
from omnigraph.storage.apply import commit_staged

pytestmark = pytest.mark.slow

A = "node A { name: String @key }\n"
X = "node X { name: String @key  v: I32? @index }\n"
E = "edge E: A -> A\n"
INSERT = "query q($n: String, $v: I32) { insert X { name: $n, v: $v } }"
LATE = 'query q() { insert X { name: "late", v: 9 } }'


@pytest.fixture(autouse=True)
def _disarmed() -> Any:
    yield
    failpoints.disarm_all()


def filled(path: Path, count: int) -> og.Graph:
    graph = og.Graph.init(str(path), A + X)
    fill(graph, "old", count)
    return graph


def fill(graph: og.Graph, name: str, count: int) -> None:
    for number in range(count):
        graph.mutate(INSERT, {"n": f"{name}{number}", "v": number})


def readded(uri: str, count: int, *, hard: bool = False) -> None:
    """X goes, comes again, and gets to the version that it had."""
    other = og.Graph.open(uri)
    other.schema_apply(A, allow_data_loss=hard)
    other.schema_apply(A + X)
    fill(other, "new", count)


def before_its_lock(graph: og.Graph, act: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Have `act` happen when the next write of the handle is prepared and about to take its lock."""
    locks, waiting = graph.context.locks, [act]
    hold = locks.hold

    def held(*given: Any) -> Any:
        if waiting:
            waiting.pop()()
        return hold(*given)

    monkeypatch.setattr(locks, "hold", held)


def whole(uri: str) -> og.Graph:
    """The graph as it is found afterwards, in which nothing is broken or left over."""
    graph = og.Graph.open(uri)
    assert leftovers(graph) == []
    assert og.verify(uri).findings == ()
    return graph


def names(graph: og.Graph, table_key: str = "node:X") -> list[str]:
    return sorted(row["name"] for row in rows(graph, table_key))


def load(graph: og.Graph, mode: Any) -> None:
    path = Path(graph.uri).with_suffix(".jsonl")
    path.write_text(json.dumps({"type": "X", "data": {"name": "late", "v": 9}}) + "\n")
    graph.load(str(path), mode=mode)


def write(graph: og.Graph, change: Any) -> None:
    graph.write({"node:X": change})


ROW = pa.table({"id": ["late"], "name": ["late"]})
REFUSED: dict[str, Callable[[og.Graph], Any]] = {
    "insert": lambda g: g.mutate(LATE, retries=0),
    "update": lambda g: g.mutate('query q() { update X set { v: 8 } where name = "old0" }', retries=0),
    "delete": lambda g: g.mutate('query q() { delete X where name = "old0" }', retries=0),
    "append": lambda g: write(g, og.Append(ROW)),
    "overwrite": lambda g: write(g, og.Overwrite(ROW)),
    "load append": lambda g: load(g, "append"),
    "load merge": lambda g: load(g, "merge"),
    "load overwrite": lambda g: load(g, "overwrite"),
}


@pytest.mark.parametrize("hard", [False, True], ids=["soft", "hard"])
@pytest.mark.parametrize("writer", REFUSED)
def test_a_write_prepared_on_a_dropped_type_is_refused_by_the_one_made_again(
    tmp_path: Path, writer: str, hard: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = filled(tmp_path / "g", 2)
    version = slow.snapshot().tables["node:X"].table_version
    before_its_lock(slow, lambda: readded(slow.uri, 2, hard=hard), monkeypatch)
    with pytest.raises(og.Conflict) as refused:
        REFUSED[writer](slow)
    assert not isinstance(refused.value, og.RecoveryRequired)
    graph = whole(slow.uri)
    assert graph.snapshot().tables["node:X"].table_version == version, "the two were at the same version"
    assert names(graph) == ["new0", "new1"]
    assert [row["v"] for row in rows(graph, "node:X")] == [0, 1]


def test_what_is_told_names_the_type_and_not_two_equal_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = filled(tmp_path / "g", 1)
    before_its_lock(slow, lambda: readded(slow.uri, 1), monkeypatch)
    with pytest.raises(og.ExpectedVersionMismatch, match="node:X was dropped and made again") as refused:
        slow.mutate(LATE, retries=0)
    assert refused.value.table_key == "node:X"


UPKEEP: dict[str, Callable[[og.Graph], Any]] = {
    "optimize": lambda g: g.optimize(),
    "ensure_indices": lambda g: g.ensure_indices(),
    "insert": lambda g: g.mutate(LATE),
}


@pytest.mark.parametrize("writer", UPKEEP)
def test_a_write_that_may_be_repeated_is_prepared_again_on_the_type_made_again(
    tmp_path: Path, writer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = filled(tmp_path / "g", 3)
    before_its_lock(slow, lambda: readded(slow.uri, 3), monkeypatch)
    UPKEEP[writer](slow)
    late = ["late"] if writer == "insert" else []
    assert names(whole(slow.uri)) == [*late, "new0", "new1", "new2"]
    assert names(slow) == [*late, "new0", "new1", "new2"]


def test_a_delete_that_looked_at_an_edge_type_is_refused_by_the_one_made_again(tmp_path: Path) -> None:
    slow = og.Graph.init(str(tmp_path / "g"), A + E)
    slow.mutate('query q() { insert A { name: "a" } insert A { name: "b" } insert A { name: "c" } }')
    slow.mutate('query q() { insert E { from: "a", to: "c" } }')

    def between() -> None:
        other = og.Graph.open(slow.uri)
        other.schema_apply(A)
        other.schema_apply(A + E)
        other.mutate('query q() { insert E { from: "a", to: "b" } }')

    failpoints.arm("stage.files_written", between)
    with pytest.raises(og.ExpectedVersionMismatch, match="edge:E"):
        slow.mutate('query q() { delete A where name = "b" }', retries=0)
    graph = whole(slow.uri)
    assert names(graph, "node:A") == ["a", "b", "c"]
    assert len(rows(graph, "edge:E")) == 1


RENAMES = {
    "renamed": ['node Y @rename_from("X") { name: String @key  v: I32? @index }\n'],
    "renamed and made anew": ['node Y @rename_from("X") { name: String @key  v: I32? @index }\n', "both"],
    "renamed there and back": [
        'node Y @rename_from("X") { name: String @key  v: I32? @index }\n',
        'node X @rename_from("Y") { name: String @key  v: I32? @index }\n',
    ],
}


@pytest.mark.parametrize("how", RENAMES)
def test_a_write_prepared_under_the_old_name_of_a_type_is_refused(
    tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = filled(tmp_path / "g", 1)

    def between() -> None:
        other = og.Graph.open(slow.uri)
        for source in RENAMES[how]:
            other.schema_apply(A + (X + X.replace("X", "Y") if source == "both" else source))
        if "both" in RENAMES[how]:
            fill(other, "new", 1)

    before_its_lock(slow, between, monkeypatch)
    with pytest.raises(og.ExpectedVersionMismatch, match="node:"):
        slow.mutate(LATE, retries=0)
    graph = whole(slow.uri)
    kept = "node:X" if how == "renamed there and back" else "node:Y"
    assert names(graph, kept) == ["old0"]
    assert "node:X" not in graph.snapshot().tables or names(graph) == (["new0"] if kept == "node:Y" else ["old0"])


def prepared(graph: og.Graph) -> WritePlan:
    return plan_changes(graph.view(), {"node:X": og.Append(ROW)}, LOAD, Annotations())


def test_a_plan_kept_over_many_versions_lands_on_none_of_them(tmp_path: Path) -> None:
    slow = filled(tmp_path / "g", 2)
    plan = prepared(slow)
    other = og.Graph.open(slow.uri)
    other.schema_apply(A)
    other.schema_apply(A + X)
    for count in range(3):
        with pytest.raises(og.ExpectedVersionMismatch):
            commit_plan(slow.context, plan)
        fill(other, f"new{count}", 1)
    assert names(whole(slow.uri)) == ["new00", "new10", "new20"]


@pytest.mark.parametrize("ids", [True, False], ids=["today", "without ids"])
def test_an_interrupted_write_to_a_dropped_type_is_not_finished_on_the_one_made_again(
    tmp_path: Path, ids: bool
) -> None:
    """A sidecar says where its table lies. One that says nothing of commits is judged by that alone."""
    graph = filled(tmp_path / "g", 1)
    plan = prepared(graph)
    told = json.loads(encode(sidecar_of(plan, graph.head_commit_id_for_branch(), 1)))
    readded(graph.uri, 1)
    for step in plan.effects[0].steps:
        assert commit_staged(step).error is None  # type: ignore[arg-type]
    if not ids:
        for name in ("graph_commit_id", "parent_commit_id", "branch_incarnation", "lock_token"):
            del told[name]
        del told["tables"][0]["transactions"]
    graph.context.objects.put(layout.sidecar_key(plan.operation_id), json.dumps(told).encode())
    after = og.Graph.open(graph.uri)
    assert names(after) == ["new0"]
    assert after.operation(plan.operation_id).status == "rolled_back"
    assert names(whole(graph.uri)) == ["new0"]


STRICT = "node X { name: String @key  v: I32 }\n"
QUERY = "query q() { match { $x: X } return { $x.name, $x.v } }"


@pytest.mark.parametrize("reads", ["query", "view", "view_at", "branch"])
def test_a_read_takes_its_schema_and_its_tables_from_one_moment(tmp_path: Path, reads: str) -> None:
    graph = og.Graph.init(str(tmp_path / "g"), A + STRICT)
    graph.mutate('query q() { insert X { name: "old", v: 1 } }')
    if reads == "branch":
        graph.branch_create("b")
    reader, other = og.Graph.open(graph.uri), og.Graph.open(graph.uri)
    looked, keeper = reader._schema.accepted, reader._schema
    moves = [True]

    def accepted(state: BranchState) -> AcceptedSchema:
        found = looked(state)
        if moves and moves.pop():
            if reads == "branch":
                other.branch_delete("b")
            other.schema_apply(A)
            other.schema_apply(A + STRICT)
            other.mutate('query q() { insert X { name: "new", v: 7 } }')
            # As another thread that uses the handle would do.
            reader.context.manifest.state()
        return found

    keeper.accepted = accepted  # type: ignore[method-assign]
    if reads == "query":
        assert reader.query(QUERY).rows == [{"x.name": "new", "x.v": 7}]
        return
    view: View = {
        "view": lambda: reader.view(),
        "view_at": lambda: reader.view_at(reader.snapshot()),
        "branch": lambda: reader.view("b"),
    }[reads]()
    now = other.view()
    assert view.catalog == now.catalog
    assert view.entry("node:X").location == now.entry("node:X").location, "the catalog is of another type of that name"


def test_threads_of_one_handle_never_see_a_name_half_as_the_old_type_and_half_as_the_new(tmp_path: Path) -> None:
    graph = og.Graph.init(str(tmp_path / "g"), A + STRICT)
    done, wrong = threading.Event(), list[Any]()

    def read() -> None:
        while not done.is_set():
            try:
                wrong.extend(row for row in graph.query(QUERY).rows if row["x.v"] is None)
            except og.TypeCheckError:
                continue
            except BaseException as error:
                wrong.append(error)
                return

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    other = og.Graph.open(graph.uri)
    for number in range(6):
        other.mutate(INSERT, {"n": f"x{number}", "v": number})
        other.schema_apply(A)
        other.schema_apply(A + STRICT)
    done.set()
    for reader in readers:
        reader.join(60)
    assert wrong == []
