"""Rows replaced by our own Update: offsets leave the old fragments, new files carry the old row ids.

Staged upserts and deletes rely on it:
  1. A replaced row keeps `_rowid` and `_row_created_at_version`; an inserted one gets a fresh id.
  2. Filters answer the same with and without an index, before and after index upkeep and compaction.
  3. Two rewrites of one fragment from the same version do not both land.
"""

import pickle
from collections.abc import Callable
from pathlib import Path

import lance
import lance.fragment
import pytest
from lance_helpers import (
    OP,
    branch,
    by_id,
    carry_row_ids,
    commit,
    compact,
    create,
    found_by,
    fragment_ids,
    ids,
    index_names,
    reopen,
    rows,
    stage_append,
    stage_row_rewrite,
    stage_upsert,
    transaction,
    try_commit,
)

pytestmark = pytest.mark.slow

Act = Callable[[lance.LanceDataset], object]
VERSIONS = ("_rowid", "_row_created_at_version", "_row_last_updated_at_version")
# Fragment 0 loses one of two rows, fragment 1 both, fragment 2 none.
UPSERTS, DELETES = {"a0": 5, "new": 5, "a1": 6}, ["b1"]
AFTER = {"a0": 5, "a1": 6, "a2": 0, "b0": 0, "b2": 0, "new": 5}
FILTERS = {
    "id = 'a0'": ["a0"],
    "id = 'a1'": ["a1"],
    "id = 'b1'": [],
    "id = 'new'": ["new"],
    "id = 'b0'": ["b0"],
    "id IN ('a0', 'b1', 'a2', 'new')": ["a0", "a2", "new"],
    "id >= 'b'": ["b0", "b2", "new"],
    "n = 0": ["a2", "b0", "b2"],
    "n = 5": ["a0", "new"],
    "n = 6": ["a1"],
    "n > 0": ["a0", "a1", "new"],
    "n = 0 AND id < 'b'": ["a2"],
}


@pytest.fixture
def table(tmp_path: Path) -> lance.LanceDataset:
    """Three fragments {a_i, b_i} with n = 0, and a BTREE on each column."""
    ds = create(tmp_path / "table.lance")
    for column in ("id", "n"):
        ds.create_scalar_index(column, "BTREE", name=f"{column}_idx")
    return reopen(ds)


def optimize(ds: lance.LanceDataset) -> None:
    reopen(ds).optimize.optimize_indices()


def rebuild(ds: lance.LanceDataset) -> None:
    for column in ("id", "n"):
        reopen(ds).create_scalar_index(column, "BTREE", name=f"{column}_idx", replace=True)


def assert_filters_agree(ds: lance.LanceDataset) -> None:
    assert index_names(ds) == ["id_idx", "n_idx"]
    for where, expected in FILTERS.items():
        assert "ScalarIndexQuery" in reopen(ds).scanner(filter=where).explain_plan(True), where
        assert found_by(ds, where, indexed=False) == expected, where
        assert found_by(ds, where, indexed=True) == expected, where


def test_row_id_sequence_is_public_and_the_native_module_is_no_package():
    assert lance.fragment.RowIdSequence.__module__ == "lance.fragment"
    with pytest.raises(ModuleNotFoundError):
        __import__("lance.lance.fragment")


def test_staging_a_rewrite_moves_nothing(table):
    stage_row_rewrite(table, UPSERTS, DELETES)
    assert reopen(table).version == table.version
    assert ids(table) == ["a0", "a1", "a2", "b0", "b1", "b2"]


@pytest.mark.parametrize("rows_per_file_max", [1, 2, 1024])
def test_rewritten_row_keeps_its_id_and_creation_and_takes_the_landing_version(table, rows_per_file_max: int):
    before = by_id(table, *VERSIONS)
    staged = stage_row_rewrite(table, UPSERTS, DELETES, rows_per_file_max=rows_per_file_max)
    landed = commit(table, pickle.loads(pickle.dumps(staged)))
    assert landed.version == table.version + 1
    after = by_id(table, *VERSIONS)
    assert by_id(table, "n") == AFTER
    for key in ("a0", "a1"):
        assert after[key] == (*before[key][:2], landed.version)
    for key in ("a2", "b0", "b2"):
        assert after[key] == before[key]
    row_id, created, updated = after["new"]
    assert row_id not in {value[0] for value in before.values()}
    assert created == updated == landed.version
    assert 1 not in fragment_ids(table), "a fragment without rows is removed"


@pytest.mark.parametrize("rows_per_file_max", [1, 1024])
@pytest.mark.parametrize(
    "upkeep",
    [
        pytest.param([], id="as-landed"),
        pytest.param([optimize], id="optimized"),
        pytest.param([compact], id="compacted"),
        pytest.param([optimize, compact], id="optimized-then-compacted"),
        pytest.param([compact, optimize], id="compacted-then-optimized"),
        pytest.param([rebuild], id="rebuilt"),
        pytest.param([rebuild, compact], id="rebuilt-then-compacted"),
    ],
)
def test_index_and_scan_find_the_same_rewritten_rows(table, upkeep: list[Act], rows_per_file_max: int):
    commit(table, stage_row_rewrite(table, UPSERTS, DELETES, rows_per_file_max=rows_per_file_max))
    versions = by_id(table, *VERSIONS)
    for act in upkeep:
        act(table)
    assert_filters_agree(table)
    assert by_id(table, *VERSIONS) == versions


@pytest.mark.parametrize("between", [None, optimize, compact], ids=["at-once", "optimized", "compacted"])
def test_row_rewritten_again_and_again_is_found_only_by_its_last_value(table, between: Act | None):
    before = by_id(table, *VERSIONS)
    for value in (1, 2, 0, 5):
        head = reopen(table)
        commit(head, stage_row_rewrite(head, {"a0": value}))
        if between:
            between(table)
    head = reopen(table)
    landed = commit(head, stage_row_rewrite(head, {"a1": 6, "new": 5}, ["b1"]))
    assert_filters_agree(table)
    assert by_id(table, *VERSIONS)["a0"][:2] == before["a0"][:2]
    assert by_id(table, *VERSIONS)["a1"] == (*before["a1"][:2], landed.version)


def test_rewrite_and_merge_insert_leave_the_same_rows_and_row_ids(tmp_path):
    """Our form and Lance's own differ in how they find rows, not in what they leave."""
    ours, theirs = create(tmp_path / "ours.lance"), create(tmp_path / "theirs.lance")
    commit(ours, stage_row_rewrite(ours, {"a0": 9, "a1": 9, "new": 9}))
    commit(theirs, stage_upsert(theirs, "a0", "a1", "new", n=9))
    assert by_id(ours, "n", *VERSIONS) == by_id(theirs, "n", *VERSIONS)


def test_rewrite_that_only_deletes_may_empty_the_table_and_ids_stay_taken(table):
    taken = set(by_id(table, "_rowid").values())
    emptied = commit(table, stage_row_rewrite(table, {}, ids(table)))
    assert (emptied.count_rows(), emptied.has_stable_row_ids) == (0, True)
    commit(emptied, stage_row_rewrite(emptied, {"a0": 1}))
    assert found_by(table, "id = 'a0'", indexed=True) == ["a0"]
    assert taken.isdisjoint(by_id(table, "_rowid").values())


def test_rewrite_that_only_inserts_equals_an_append(table):
    landed = commit(table, stage_row_rewrite(table, {"x": 1, "y": 2}))
    assert by_id(table, *VERSIONS)["y"] == (7, landed.version, landed.version)
    assert found_by(table, "n > 0", indexed=True) == ["x", "y"]


def test_rewrite_on_a_branch_with_inherited_rows_and_indexes_stays_there(table):
    before = by_id(table, *VERSIONS)
    table.create_branch("b")
    fork = branch(table, "b")
    landed = commit(fork, stage_row_rewrite(fork, UPSERTS, DELETES))
    assert by_id(fork, "n") == AFTER
    assert by_id(fork, *VERSIONS)["a0"] == (*before["a0"][:2], landed.version)
    assert_filters_agree(fork)
    rebuild(fork)
    compact(fork)
    assert_filters_agree(fork)
    assert by_id(table, *VERSIONS) == before


def test_rewrite_is_undone_by_a_restore_with_row_ids_versions_and_indexes(table):
    before = by_id(table, "n", *VERSIONS)
    commit(table, stage_row_rewrite(table, UPSERTS, DELETES))
    table.restore()
    assert by_id(table, "n", *VERSIONS) == before
    assert found_by(table, "n = 0", indexed=True) == sorted(before)
    assert found_by(table, "id = 'new'", indexed=True) == []


def test_rewrite_lands_over_an_append_and_takes_the_later_version(table):
    staged = stage_row_rewrite(table, UPSERTS, DELETES)
    commit(table, stage_append(table, "other"))
    landed = commit(table, staged)
    assert landed.version == table.version + 2
    stored = by_id(table, *VERSIONS)
    assert by_id(table, "n") == {**AFTER, "other": 0}
    assert (stored["a0"][2], stored["new"][1]) == (landed.version, landed.version)
    assert len({value[0] for value in stored.values()}) == len(stored)


@pytest.mark.parametrize("rival", [{"a0": 7}, {"b0": 7}], ids=["same-row", "other-row-of-the-fragment"])
def test_of_two_rewrites_of_one_fragment_exactly_one_lands(table, rival: dict[str, int]):
    first, second = stage_row_rewrite(table, {"a0": 5}), stage_row_rewrite(table, rival)
    commit(table, first)
    outcome = try_commit(table, second)
    assert outcome.conflict
    assert outcome.retryable
    assert by_id(table, "n")["a0"] == 5


def test_rewrites_of_different_fragments_both_land(table):
    first, second = stage_row_rewrite(table, {"a0": 5}), stage_row_rewrite(table, {"a1": 6, "new": 5}, ["b1"])
    commit(table, first)
    commit(table, second)
    assert_filters_agree(table)
    assert len(set(by_id(table, "_rowid").values())) == len(AFTER)


def test_same_new_key_inserted_by_two_rewrites_is_doubled(table):
    """Uniqueness is ours to keep: the landed version is compared with the expected one."""
    first, second = stage_row_rewrite(table, {"twin": 1}), stage_row_rewrite(table, {"twin": 2})
    commit(table, first)
    assert commit(table, second).version == table.version + 2
    assert ids(table).count("twin") == 2


def test_more_row_ids_than_rows_and_repeated_row_ids_are_refused(table):
    staged = lance.fragment.write_fragments(rows("x"), table, mode="append")
    staged[0].row_id_meta = lance.fragment.RowIdSequence([0, 1]).to_inline_metadata()
    operation = OP.Update(new_fragments=list(staged), update_mode="rewrite_rows")
    assert try_commit(table, transaction(table, operation)).refused
    with pytest.raises(ValueError):
        carry_row_ids(lance.fragment.write_fragments(rows("x", "y"), table, mode="append"), [3, 3])
