"""Staged writes: files first, one commit later, by another process if need be.

1. Staging moves no version. A staged transaction pickles and lands with the effect it was staged for.
2. A transaction has no memory: committed twice it is applied twice.
3. Every version tells who made it: uuid and properties, also after a Restore. A few can only be told by type.
"""

import json
import pickle
from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance.fragment import FragmentMetadata, write_fragments
from lance_helpers import (
    MANIFEST_SCHEMA,
    OP,
    branch,
    by_id,
    commit,
    compact,
    create,
    ids,
    index_names,
    reopen,
    rows,
    stage_append,
    stage_delete,
    stage_index,
    stage_insert,
    stage_overwrite,
    stage_restore,
    stage_row_rewrite,
    stage_table_metadata,
    stage_upsert,
    transaction,
)

Stage = Callable[[lance.LanceDataset], lance.Transaction]
PRESENT = ["a0", "a1", "a2", "b0", "b1", "b2"]
STAGED = {
    "append": (lambda ds: stage_append(ds, "new"), [*PRESENT, "new"]),
    "upsert": (lambda ds: stage_upsert(ds, "a1", "new"), [*PRESENT, "new"]),
    "insert": (lambda ds: stage_insert(ds, "a1", "new"), [*PRESENT, "new"]),
    "row-rewrite": (lambda ds: stage_row_rewrite(ds, {"a1": 9, "new": 9}), [*PRESENT, "new"]),
    "delete": (lambda ds: stage_delete(ds, "id >= 'b1' OR id = 'a1'"), ["a0", "a2", "b0"]),
    "overwrite": (lambda ds: stage_overwrite(ds, "new"), ["new"]),
    "index": (stage_index, PRESENT),
    "table-metadata": (stage_table_metadata, PRESENT),
    "restore": (stage_restore, PRESENT),
}
ALL = pytest.mark.parametrize(("stage", "expected"), list(STAGED.values()), ids=list(STAGED))


@pytest.fixture
def table(tmp_path: Path) -> lance.LanceDataset:
    return create(tmp_path / "table.lance")


@pytest.fixture(params=["main", "branch"])
def place(request, table) -> lance.LanceDataset:
    if request.param == "main":
        return table
    table.create_branch("b")
    return branch(table, "b")


@ALL
def test_staged_write_lands_at_the_next_version_after_pickling(place, stage: Stage, expected: list[str]):
    staged = stage(place)
    assert (reopen(place).version, ids(place)) == (3, PRESENT)
    landed = commit(place, pickle.loads(pickle.dumps(staged)))
    assert (landed.version, place.version) == (4, 3), "a commit answers with a new handle"
    assert ids(place) == expected


@ALL
def test_landed_version_tells_the_uuid_and_properties_of_its_transaction(place, stage: Stage, expected: list[str]):
    staged = stage(place)
    staged.transaction_properties = {"operation_id": "op-1", "step": "2"}
    commit(place, staged)
    recorded = reopen(place).read_transaction(4)
    assert recorded.uuid == staged.uuid
    assert recorded.transaction_properties == {"operation_id": "op-1", "step": "2"}
    assert type(recorded.operation) is type(staged.operation)


def test_properties_of_every_version_are_readable_from_the_head_after_a_restore(table):
    for step in ("1", "2"):
        staged = stage_append(reopen(table), f"new-{step}")
        staged.transaction_properties = {"step": step}
        commit(reopen(table), staged)
    head = reopen(table)
    commit(head, transaction(head, OP.Restore(3), step="undo"))
    found = [reopen(table).read_transaction(v).transaction_properties for v in (4, 5, 6)]
    assert found == [{"step": "1"}, {"step": "2"}, {"step": "undo"}]
    assert ids(table) == PRESENT


def test_transaction_made_by_hand_has_a_uuid_of_its_own(table):
    first, second = (transaction(table, OP.Restore(3)) for _ in range(2))
    assert first.uuid != second.uuid


def test_append_transaction_committed_twice_is_applied_twice(table):
    staged = stage_append(table, "twin")
    commit(table, staged)
    commit(table, staged)
    assert ids(table).count("twin") == 2
    assert [reopen(table).read_transaction(v).uuid for v in (4, 5)] == [staged.uuid, staged.uuid]


@pytest.mark.parametrize(
    "stage",
    [
        pytest.param(lambda ds: stage_upsert(ds, "a1"), id="upsert"),
        pytest.param(lambda ds: stage_row_rewrite(ds, {"a1": 9}), id="row-rewrite"),
        pytest.param(lambda ds: stage_delete(ds, "id = 'a1'"), id="delete"),
    ],
)
def test_transaction_that_touches_stored_rows_is_refused_the_second_time(table, stage: Stage):
    staged = stage(table)
    commit(table, staged)
    with pytest.raises(OSError):
        commit(table, staged)
    assert reopen(table).version == 4


def test_staged_merge_keeps_row_ids_and_stamps_the_landing_version(place):
    before = by_id(place, "_rowid", "_row_created_at_version")
    commit(place, pickle.loads(pickle.dumps(stage_upsert(place, "a1", "new"))))
    after = by_id(place, "_rowid", "_row_created_at_version", "_row_last_updated_at_version")
    assert after["a1"] == (*before["a1"], 4)
    assert after["new"][1:] == (4, 4)
    assert after["b1"] == (*before["b1"], 2)


def test_staged_merge_tells_how_many_rows_it_will_touch(table):
    builder = table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    _, stats = builder.execute_uncommitted(rows("a1", "b2", "new"))
    assert (stats["num_updated_rows"], stats["num_inserted_rows"], stats["num_deleted_rows"]) == (2, 1, 0)


def test_staged_merge_deletes_by_key(table):
    keys = pa.table({"id": ["a1", "missing"]}, schema=pa.schema([MANIFEST_SCHEMA.field("id")]))
    staged, stats = table.merge_insert("id").when_matched_delete().execute_uncommitted(keys)
    assert stats["num_deleted_rows"] == 1
    commit(table, staged)
    assert ids(table) == ["a0", "a2", "b0", "b1", "b2"]


def test_staged_delete_removes_a_fragment_that_loses_every_row(table):
    staged = stage_delete(table, "id IN ('a1', 'b1', 'a2')")
    assert staged.operation.deleted_fragment_ids == [1]
    assert [f.id for f in staged.operation.updated_fragments] == [2]
    commit(table, staged)
    assert ids(table) == ["a0", "b0", "b2"]


def test_fragments_travel_as_json_and_land_as_an_append(place):
    written = write_fragments(rows("x", "y", "z"), place, mode="append", max_rows_per_file=2)
    messages = [json.dumps(fragment.to_json()) for fragment in written]
    fragments = [FragmentMetadata.from_json(message) for message in messages]
    assert [fragment.physical_rows for fragment in fragments] == [2, 1]
    commit(place, transaction(place, OP.Append(fragments)))
    assert ids(place) == [*PRESENT, "x", "y", "z"]


def test_column_staged_fragment_by_fragment_lands_as_one_merge(table):
    merged = [fragment.merge_columns({"twice": "n * 2"}) for fragment in table.get_fragments()]
    staged = transaction(table, OP.Merge([fragment for fragment, _ in merged], merged[0][1]))
    before = by_id(table, "_rowid", "_row_created_at_version")
    assert commit(table, staged).schema.names == ["id", "n", "twice"]
    assert by_id(table, "_rowid", "_row_created_at_version") == before


def test_several_appends_land_as_one_version_by_a_batch_and_nothing_else_does(table):
    batch = lance.LanceDataset.commit_batch
    merged = batch(table, [stage_append(table, "x"), stage_append(table, "y")])
    assert merged["dataset"].version == 4
    assert ids(table) == [*PRESENT, "x", "y"]
    head = reopen(table)
    with pytest.raises(OSError, match="Not supported"):
        batch(head, [stage_append(head, "z"), stage_upsert(head, "a0")])


def test_restore_keeps_rows_row_ids_versions_and_indexes_of_its_version(table):
    commit(table, stage_index(table))
    columns = ("n", "_rowid", "_row_created_at_version", "_row_last_updated_at_version")
    before, pinned = by_id(table, *columns), reopen(table)
    commit(pinned, stage_upsert(pinned, "a1", "gone"))
    commit(reopen(table), stage_overwrite(reopen(table), "z"))
    head = reopen(table)
    commit(head, transaction(head, OP.Restore(pinned.version)))
    assert by_id(table, *columns) == before
    assert index_names(table) == ["n_idx"]


def test_row_id_of_a_row_that_was_restored_away_is_not_given_again(table):
    undone = by_id(commit(table, stage_append(table, "undone")), "_rowid")["undone"]
    table.restore()
    head = reopen(table)
    assert by_id(commit(head, stage_append(head, "next")), "_rowid")["next"] > undone


def test_compaction_is_recorded_as_a_bare_operation_and_a_rewrite_without_properties(table):
    compact(table)
    reserved, rewritten = (reopen(table).read_transaction(v) for v in (4, 5))
    assert type(reserved.operation).__name__ == "BaseOperation", "ReserveFragments has no class in Python"
    assert isinstance(rewritten.operation, OP.Rewrite)
    assert not reserved.transaction_properties
    assert not rewritten.transaction_properties


def test_rewrite_that_remapped_an_index_cannot_be_read_back(tmp_path):
    """TypeError, and nothing else answers with it; the version itself reads well."""
    ds = create(tmp_path / "indexed.lance")
    commit(ds, stage_index(ds, "id", "id_idx"))
    compact(ds)
    head = reopen(ds)
    assert type(head.read_transaction(head.version - 1).operation).__name__ == "BaseOperation"
    with pytest.raises(TypeError, match="RewrittenIndex"):
        head.read_transaction(head.version)
    with pytest.raises(TypeError, match="RewrittenIndex"):
        head.get_transactions(3)
    assert ids(ds) == PRESENT
