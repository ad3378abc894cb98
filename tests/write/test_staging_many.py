"""Upserts and deletes too many for memory give the same table as few do."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from write_scene import change, people, stored, town

from omnigraph.commit.plan import LOAD
from omnigraph.commit.protocol import commit_plan
from omnigraph.engine.write import parted, staging
from omnigraph.engine.write.bench import EmbeddedBench
from omnigraph.engine.write.changes import Annotations, Upsert
from omnigraph.engine.write.changeset import ChangeSet
from omnigraph.engine.write.planning import plan_changeset
from omnigraph.engine.write.spool import RowSpool
from omnigraph.graph import Graph
from omnigraph.manifest.rows import RowEffect
from omnigraph.sets.scratch import Scratch
from omnigraph.settings import Settings

pytestmark = pytest.mark.slow

P = "node:Person"


@pytest.fixture(params=["few", "many", "in parts"])
def graph(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Graph:
    """A town with people in three fragments; staged from memory, streamed from disk, or matched part by part."""
    if request.param != "few":
        monkeypatch.setattr(staging, "_FEW_ROWS", -1)
    if request.param == "in parts":
        monkeypatch.setattr(parted, "_BYTES_PER_ROW", 1 << 40)
    made = town(tmp_path, Settings.resolve(limits_memory_bytes=None if request.param == "few" else 1))
    made.write({P: Upsert(people({f"p{n}": None for n in range(40)}))})
    made.write({P: Upsert(people({f"p{n}": None for n in range(40, 60)}))})
    return made


def histories(graph: Graph) -> dict[str, tuple[int, int]]:
    rows = graph.view().table(P).read(["id", "_rowid", "_row_created_at_version"]).to_pylist()
    return {r["id"]: (r["_rowid"], r["_row_created_at_version"]) for r in rows}


def commit(graph: Graph, *changes: object) -> RowEffect:
    view = graph.view()
    with Scratch(graph.settings) as scratch:
        plan = plan_changeset(
            view, ChangeSet({c.table_key: c for c in changes}), (), LOAD, Annotations(), EmbeddedBench(scratch)
        )
    return commit_plan(graph.context, plan).commit.counts[P]


def test_replaced_rows_keep_their_row_ids_and_the_others_are_new(graph: Graph) -> None:
    before = histories(graph)
    rows = people({"p50": "new@x", "fresh1": None, "p3": "p3@x", "ana": None, "fresh2": None})
    effect = commit(graph, change(graph.view(), P, rows, delete=["p7", "nobody", "cy"]))
    assert effect == RowEffect(inserts=2, updates=3, deletes=2)
    after = histories(graph)
    assert set(after) == (set(before) | {"fresh1", "fresh2"}) - {"p7", "cy"}
    assert {k: v for k, v in after.items() if k in before} == {k: before[k] for k in before if k in after}
    assert dict(stored(graph, P, "id", "email"))["p50"] == "new@x"


def test_rows_of_one_statement_share_a_position_and_none_is_lost(graph: Graph) -> None:
    rows = people({"p1": "1@z", "new1": "2@z", "p2": "3@z", "new2": "4@z"})
    edit = change(graph.view(), P, rows)
    assert edit.rows is not None
    table = edit.rows.table()
    same = table.set_column(table.column_names.index("__position"), "__position", pa.array([1] * 4, pa.int64()))
    edit.rows = RowSpool(same.schema, None).extend(same.to_batches(max_chunksize=3))
    assert commit(graph, edit) == RowEffect(inserts=2, updates=2)
    found = dict(stored(graph, P, "id", "email"))
    assert [found[n] for n in ("p1", "new1", "p2", "new2")] == ["1@z", "2@z", "3@z", "4@z"]


def test_every_row_can_be_replaced_and_every_row_deleted(graph: Graph) -> None:
    everyone = sorted(histories(graph))
    before = histories(graph)
    commit(graph, change(graph.view(), P, people({n: f"{n}@y" for n in reversed(everyone)})))
    assert histories(graph) == before
    assert dict(stored(graph, P, "id", "email")) == {n: f"{n}@y" for n in everyone}
    assert commit(graph, change(graph.view(), P, delete=everyone)).deletes == len(everyone)
    assert stored(graph, P) == []


def test_an_overwrite_and_a_strict_insert_stream_their_rows(graph: Graph) -> None:
    commit(graph, change(graph.view(), P, people({"x": None, "y": None}), replaces_all=True))
    assert stored(graph, P) == [("x",), ("y",)]
    effect = commit(graph, change(graph.view(), P, people({"z": None}), strict_insert=True))
    assert effect == RowEffect(inserts=1)
    assert stored(graph, P) == [("x",), ("y",), ("z",)]
    assert commit(graph, change(graph.view(), P, replaces_all=True)).deletes == 3
    assert stored(graph, P) == []
