"""Columns are renamed, dropped and added without a row being read, and each row stays the row it was."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from storage_helpers import land

from omnigraph.storage import evolve
from omnigraph.storage.columns import Columns, read_message, write_message
from omnigraph.storage.evolve import stage_columns, stage_note
from omnigraph.storage.ledger import create_now
from omnigraph.storage.places import open_root
from omnigraph.storage.stage import IndexKind, IndexSpec, StagedWrite, Stamp, stage_append, stage_delete, stage_index
from omnigraph.storage.tables import Table, TableRef, open_table

STORED = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("tags", pa.list_(pa.string())),
        pa.field("age", pa.int32(), metadata={"omnigraph:property_id": "3"}),
        pa.field("vec", pa.list_(pa.float32(), 2)),
        pa.field("note", pa.string()),
    ]
)
FACTS = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
SAME = {name: name for name in STORED.names}


def _rows(*ids: str) -> pa.Table:
    made = [{"id": i, "tags": [i], "age": n, "vec": [1.0, n], "note": f"of {i}"} for n, i in enumerate(ids)]
    return pa.Table.from_pylist(made, schema=STORED)


def _stamp() -> Stamp:
    return Stamp("01OPERATION", "node:T", "0")


def _commit(*steps: StagedWrite) -> Table:
    return [land(step) for step in steps][-1]


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Two fragments, a deleted row in the first, indexes on two columns."""
    made = create_now(TableRef(open_root(str(tmp_path)), "t"), STORED)
    made = _commit(stage_append(made, _rows("a", "b", "c"), _stamp()))
    made = _commit(stage_append(made, _rows("d", "e"), _stamp()))
    made = _commit(stage_delete(made, ["b"], _stamp()))
    return _commit(stage_index(made, [IndexSpec("age", IndexKind.BTREE), IndexSpec("id", IndexKind.BTREE)], _stamp()))


def _facts(table: Table) -> list[dict[str, Any]]:
    return table.read(["id", *FACTS]).sort_by("id").to_pylist()


def _wanted(*fields: pa.Field) -> pa.Schema:
    return pa.schema(fields)


def test_everything_at_once_is_two_versions_and_no_row_was_changed(table: Table) -> None:
    wanted = _wanted(
        STORED.field("id"),
        pa.field("country", pa.string(), nullable=False, metadata={"omnigraph:property_id": "9"}),
        pa.field("level", pa.int64(), nullable=False),
        pa.field("links", pa.list_(pa.int64())),
        STORED.field("tags").with_name("labels"),
        STORED.field("vec"),
    )
    literals = {"country": pa.scalar("NO"), "level": pa.scalar(7, pa.int64())}
    continues = {"id": "id", "labels": "tags", "vec": "vec"}
    steps = stage_columns(table, wanted, continues, literals, _stamp())
    assert [s.read_version for s in steps] == [table.version, table.version + 1]
    assert open_table(table.ref, None).version == table.version, "staging moved the table"
    after = _commit(*steps)
    assert after.schema.names == wanted.names
    assert _facts(after) == _facts(table)
    told = after.read().sort_by("id").to_pylist()
    assert told[0] == {"id": "a", "country": "NO", "level": 7, "links": None, "labels": ["a"], "vec": [1.0, 0.0]}
    assert [row["id"] for row in told] == ["a", "c", "d", "e"]
    assert {row["country"] for row in told} == {"NO"}
    assert after.schema.field("country").metadata == {b"omnigraph:property_id": b"9"}
    assert after.find(["d"], ["level"]).to_pylist() == [{"level": 7}]


def test_a_renamed_column_keeps_its_number_its_rows_and_its_metadata(table: Table) -> None:
    wanted = pa.schema([f.with_name("years") if f.name == "age" else f for f in STORED])
    steps = stage_columns(table, wanted, {**{n: n for n in wanted.names if n != "years"}, "years": "age"}, {}, _stamp())
    after = _commit(*steps)
    before = Columns.of(table.dataset.lance_schema)
    assert Columns.of(after.dataset.lance_schema).number_of("years") == before.number_of("age")
    assert after.schema.field("years").metadata == {b"omnigraph:property_id": b"3"}
    assert after.read(["years"]).column("years").to_pylist() == table.read(["age"]).column("age").to_pylist()
    assert _facts(after) == _facts(table)
    assert sorted(after.index_states()) == ["id_btree_idx"], "an index goes by the old name of its column"


def test_two_columns_may_change_their_names_with_each_other(table: Table) -> None:
    swap = {"note": "id", "id": "note"}
    wanted = pa.schema([f.with_name(swap.get(f.name, f.name)) for f in STORED])
    after = _commit(*stage_columns(table, wanted, {swap.get(n, n): n for n in STORED.names}, {}, _stamp()))
    assert set(after.read(["note"]).column("note").to_pylist()) == {"a", "c", "d", "e"}
    assert set(after.read(["id"]).column("id").to_pylist()) == {"of a", "of c", "of d", "of e"}


def test_a_name_that_comes_back_finds_nothing_of_the_column_that_had_it(table: Table) -> None:
    without = pa.schema([f for f in STORED if f.name not in ("note", "age")])
    dropped = _commit(*stage_columns(table, without, {n: n for n in without.names}, {}, _stamp()))
    assert dropped.schema.names == without.names
    assert sorted(dropped.index_states()) == ["id_btree_idx"]
    again = _commit(*stage_columns(dropped, STORED, {n: n for n in without.names}, {}, _stamp()))
    assert again.read(["note", "age"]).to_pylist() == [{"note": None, "age": None}] * 4
    assert sorted(again.index_states()) == ["id_btree_idx"]
    assert _facts(again) == _facts(table)


def test_rows_written_later_and_restored_versions_fit(table: Table) -> None:
    wanted = pa.schema([*STORED, pa.field("level", pa.int64(), nullable=False)])
    after = _commit(*stage_columns(table, wanted, SAME, {"level": pa.scalar(1, pa.int64())}, _stamp()))
    later = _rows("f").append_column(wanted.field("level"), pa.array([5], pa.int64()))
    more = _commit(stage_append(after, later, _stamp()))
    assert dict(zip(*more.read(["id", "level"]).to_pydict().values(), strict=True))["f"] == 5
    assert more.count_rows() == 5


def test_an_empty_table_gets_its_columns_in_one_version(tmp_path: Path) -> None:
    made = create_now(TableRef(open_root(str(tmp_path)), "t"), STORED)
    wanted = pa.schema([*STORED, pa.field("level", pa.int64(), nullable=False)])
    (step,) = stage_columns(made, wanted, SAME, {"level": pa.scalar(1, pa.int64())}, _stamp())
    after = _commit(step)
    assert after.schema.equals(wanted)
    assert after.count_rows() == 0


def test_columns_of_literals_that_are_dropped_again_take_their_files_with_them(table: Table) -> None:
    wanted = pa.schema([*STORED, pa.field("level", pa.int64(), nullable=False)])
    filled = _commit(*stage_columns(table, wanted, SAME, {"level": pa.scalar(1, pa.int64())}, _stamp()))
    assert {len(f.files) for f in filled.fragments()} == {2}
    other = pa.schema([*STORED, pa.field("other", pa.int64())])
    after = _commit(*stage_columns(filled, other, SAME, {}, _stamp()))
    assert {len(f.files) for f in after.fragments()} == {1}
    assert after.read(["other"]).column("other").null_count == 4


def test_only_the_files_a_change_brings_are_its_own(table: Table) -> None:
    wanted = pa.schema([*STORED, pa.field("level", pa.int64(), nullable=False)])
    shape, fill = stage_columns(table, wanted, SAME, {"level": pa.scalar(1, pa.int64())}, _stamp())
    assert shape.files == ()
    assert fill.files is not None
    assert len(fill.files) == 2
    assert all(os.path.exists(f"{table.ref.uri}/{file}") for file in fill.files)


def test_the_files_of_literals_do_not_wait_for_each_other(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock of the branch is held meanwhile, and a store takes its time for each."""
    both, started = threading.Barrier(2), evolve.LanceFileWriter

    def writer(*given: Any, **named: Any) -> Any:
        both.wait(30)
        return started(*given, **named)

    monkeypatch.setattr(evolve, "LanceFileWriter", writer)
    wanted = _wanted(*STORED, pa.field("rank", pa.int32(), nullable=False))
    changed = _commit(*stage_columns(table, wanted, SAME, {"rank": pa.scalar(7, pa.int32())}, _stamp()))
    assert len(changed.fragments()) == 2
    assert changed.read(["id", "rank"]).column("rank").to_pylist() == [7] * 4


def test_a_note_is_a_version_with_the_same_rows(table: Table) -> None:
    after = _commit(stage_note(table, {"omnigraph:name": "node:U"}, _stamp()))
    assert after.version == table.version + 1
    assert after.read().equals(table.read())
    assert _facts(after) == _facts(table)


def test_messages_are_written_as_they_were_read(table: Table) -> None:
    _, (_, *messages) = table.dataset.lance_schema.__reduce__()[:2]
    assert len(messages) == 6
    assert [write_message(read_message(m)) for m in messages] == messages
