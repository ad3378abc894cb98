"""Row ids and row version columns, on which diffs, merges and change feeds stand.

1. A row keeps `_rowid` and `_row_created_at_version` through update, upsert and compaction.
2. `_row_last_updated_at_version` is the version of the commit that changed the row, and of no other.
3. A deleted and re-inserted key is a new row. An overwrite makes new rows and keeps the flag.
"""

from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance.fragment import write_fragments
from lance_helpers import (
    MANIFEST_SCHEMA,
    OP,
    attempt,
    branch,
    by_id,
    commit,
    compact,
    create,
    fragment_ids,
    ids,
    reopen,
    rows,
    stage_append,
    stage_delete,
    stage_index,
    stage_overwrite,
    stage_restore,
    stage_table_metadata,
    stage_upsert,
    transaction,
)

Act = Callable[[lance.LanceDataset], object]
PRESENT = ["a0", "a1", "a2", "b0", "b1", "b2"]
IDENTITY = ("_rowid", "_row_created_at_version")
VERSIONS = (*IDENTITY, "_row_last_updated_at_version")


@pytest.fixture
def table(tmp_path: Path) -> lance.LanceDataset:
    return create(tmp_path / "table.lance")


def execute_upsert(ds: lance.LanceDataset) -> None:
    ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows("a1", n=9))


def upsert_with_index(ds: lance.LanceDataset) -> None:
    ds.create_scalar_index("id", "BTREE", name="id_idx")
    execute_upsert(reopen(ds))


def upsert_some_columns(ds: lance.LanceDataset) -> None:
    ds.add_columns(pa.field("extra", pa.int64()))
    reopen(ds).merge_insert("id").when_matched_update_all().execute(rows("a1", n=9))


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda ds: ds.update({"n": "9"}, where="id = 'a1'"), id="update"),
        pytest.param(execute_upsert, id="merge-insert"),
        pytest.param(lambda ds: commit(ds, stage_upsert(ds, "a1")), id="staged-merge-insert"),
        pytest.param(upsert_with_index, id="merge-insert-with-index"),
        pytest.param(upsert_some_columns, id="merge-insert-of-some-columns"),
    ],
)
def test_row_keeps_its_id_and_creation_version_through(table, change: Act):
    before = by_id(table, *VERSIONS)
    change(reopen(table))
    head = reopen(table).version
    row_id, created, _ = before["a1"]
    assert by_id(table, "n", *VERSIONS)["a1"] == (9, row_id, created, head)
    assert by_id(table, *IDENTITY) == {key: value[:2] for key, value in before.items()}
    unchanged = {key: value for key, value in by_id(table, *VERSIONS).items() if key != "a1"}
    assert unchanged == {key: value for key, value in before.items() if key != "a1"}


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(compact, id="compaction"),
        pytest.param(lambda ds: commit(ds, stage_append(ds, "c")), id="append"),
        pytest.param(lambda ds: commit(ds, stage_delete(ds, "id = 'b0'")), id="delete"),
        pytest.param(lambda ds: commit(ds, stage_index(ds)), id="create-index"),
        pytest.param(lambda ds: commit(ds, stage_table_metadata(ds)), id="table-metadata"),
        pytest.param(lambda ds: commit(ds, stage_restore(ds)), id="restore"),
        pytest.param(lambda ds: ds.add_columns(pa.field("extra", pa.int64())), id="add-empty-column"),
        pytest.param(lambda ds: ds.drop_columns(["n"]), id="drop-column"),
        pytest.param(lambda ds: ds.alter_columns({"path": "n", "name": "m"}), id="rename-column"),
    ],
)
def test_other_rows_keep_all_three_version_columns_through(table, change: Act):
    commit(table, stage_upsert(table, "a1"))
    before = by_id(table, *VERSIONS)
    change(reopen(table))
    after = by_id(table, *VERSIONS)
    assert {key: after[key] for key in before if key in after} == {key: before[key] for key in before if key in after}
    assert set(before) - set(after) <= {"b0"}


def test_column_added_with_values_counts_as_an_update_of_every_row(table):
    """Even where no old value changed: a change feed must not take schema changes for data changes."""
    before = by_id(table, *IDENTITY)
    table.add_columns({"extra": "n + 1"})
    assert by_id(table, *IDENTITY) == before
    assert set(by_id(table, "_row_last_updated_at_version").values()) == {reopen(table).version}


def test_row_versions_survive_compaction_after_updates_and_deletes(table):
    commit(table, stage_upsert(table, "a0", "c"))
    reopen(table).delete("id = 'b1'")
    before = by_id(table, "n", *VERSIONS)
    compact(table)
    assert len(fragment_ids(table)) == 1
    assert by_id(table, "n", *VERSIONS) == before


def test_row_that_is_deleted_and_inserted_again_is_a_new_row(table):
    old = by_id(table, *VERSIONS)["a1"]
    reopen(table).delete("id = 'a1'")
    landed = commit(reopen(table), stage_append(reopen(table), "a1"))
    row_id, created, updated = by_id(table, *VERSIONS)["a1"]
    assert row_id not in {old[0], *[value[0] for key, value in by_id(table, *VERSIONS).items() if key != "a1"]}
    assert created == updated == landed.version


def test_row_id_of_a_deleted_row_is_never_given_again(table):
    taken = set(by_id(table, "_rowid").values())
    reopen(table).delete("true")
    commit(reopen(table), stage_append(reopen(table), "new-0", "new-1"))
    assert taken.isdisjoint(by_id(table, "_rowid").values())


def test_rows_of_a_rebased_append_carry_the_version_they_landed_at(table):
    staged = stage_append(table, "late")
    commit(table, stage_append(table, "first"))
    landed = commit(table, staged)
    assert landed.version == table.version + 2
    assert by_id(table, *VERSIONS)["late"][1:] == (landed.version, landed.version)
    assert len(set(by_id(table, "_rowid").values())) == 8


def test_row_versions_on_a_branch_are_the_branch_versions(table):
    table.create_branch("b")
    fork = branch(table, "b")
    landed = commit(fork, stage_upsert(fork, "a1", "new"))
    assert by_id(fork, *VERSIONS)["a1"][1:] == (2, landed.version)
    assert by_id(fork, *VERSIONS)["new"][1:] == (landed.version, landed.version)
    compact(fork)
    assert by_id(fork, *VERSIONS)["new"][1:] == (landed.version, landed.version)
    assert by_id(table, *VERSIONS)["a1"][1:] == (2, 2)


def test_branch_and_main_give_the_same_row_id_to_different_rows(table):
    """A row id identifies a row on one branch only; keys identify rows across branches."""
    table.create_branch("b")
    fork = branch(table, "b")
    commit(fork, stage_append(fork, "on-branch"))
    commit(table, stage_append(table, "on-main"))
    assert by_id(fork, "_rowid")["on-branch"] == by_id(table, "_rowid")["on-main"]


def test_stage_overwrite_preserves_stable_row_ids(table):
    taken = set(by_id(table, "_rowid").values())
    staged = stage_overwrite(table, "a0", "z")
    assert ids(table) == PRESENT, "staging moved nothing"
    landed = commit(table, staged)
    assert landed.has_stable_row_ids
    stored = by_id(table, *VERSIONS)
    assert {key: value[1:] for key, value in stored.items()} == dict.fromkeys(("a0", "z"), (landed.version,) * 2)
    assert taken.isdisjoint(value[0] for value in stored.values())

    emptied = commit(landed, transaction(landed, OP.Overwrite(MANIFEST_SCHEMA, [])))
    assert emptied.has_stable_row_ids
    assert emptied.count_rows() == 0

    refilled = commit(emptied, stage_append(emptied, "a0"))
    row_id, created, _ = by_id(table, *VERSIONS)["a0"]
    assert created == refilled.version
    assert row_id not in taken | {value[0] for value in stored.values()}


def test_overwrite_drops_indexes_and_keeps_table_metadata(table):
    commit(table, stage_index(table))
    reopen(table).update_metadata({"k": "v"})
    landed = commit(reopen(table), stage_overwrite(reopen(table), "z"))
    assert landed.describe_indices() == []
    assert landed.metadata == {"k": "v"}


def test_table_created_from_a_staged_empty_overwrite_has_stable_row_ids(tmp_path):
    uri = str(tmp_path / "new.lance")
    staged = lance.Transaction(0, OP.Overwrite(MANIFEST_SCHEMA, []), transaction_properties={"op": "1"})
    made = lance.LanceDataset.commit(uri, staged, max_retries=0, detached=False, enable_stable_row_ids=True)
    assert (made.version, made.has_stable_row_ids, made.count_rows()) == (1, True, 0)
    assert made.read_transaction(1).uuid == staged.uuid
    assert made.read_transaction(1).transaction_properties == {"op": "1"}


def test_table_created_by_a_rival_meanwhile_does_not_take_a_second_creation(tmp_path):
    """Neither creation is refused silently into the other's place: the loser is told."""
    uri = str(tmp_path / "new.lance")
    first, second = (lance.Transaction(0, OP.Overwrite(MANIFEST_SCHEMA, [])) for _ in range(2))
    lance.LanceDataset.commit(uri, first, max_retries=0, enable_stable_row_ids=True)
    outcome = attempt(lambda: lance.LanceDataset.commit(uri, second, max_retries=0, enable_stable_row_ids=True))
    assert outcome.refused
    assert lance.dataset(uri).read_transaction(1).uuid == first.uuid


def test_table_created_with_the_flag_on_the_fragments_alone_lacks_stable_row_ids(tmp_path):
    uri = str(tmp_path / "new.lance")
    staged = write_fragments(rows("a"), uri, mode="create", return_transaction=True, enable_stable_row_ids=True)
    assert not lance.LanceDataset.commit(uri, staged, max_retries=0).has_stable_row_ids


@pytest.mark.parametrize("where", ["_row_last_updated_at_version > 3", "_row_created_at_version < 2 AND n = 9"])
def test_version_columns_can_be_filtered_on(table, where: str):
    commit(table, stage_upsert(table, "a0"))
    assert reopen(table).to_table(columns=["id"], filter=where)["id"].to_pylist() == ["a0"]


def test_rows_are_taken_by_row_id_in_the_order_asked(table):
    commit(table, stage_upsert(table, "a1"))
    compact(table)
    row_ids = by_id(table, "_rowid")
    wanted = ["b2", "a1", "a0"]
    taken = reopen(table)._take_rows([row_ids[key] for key in wanted], columns=["id"])
    assert taken["id"].to_pylist() == wanted
    by_filter = reopen(table).to_table(columns=["id"], filter=f"_rowid IN ({row_ids['a1']}, {row_ids['b2']})")
    assert sorted(by_filter["id"].to_pylist()) == ["a1", "b2"]
