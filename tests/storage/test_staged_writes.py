"""Every kind of staged write, on main and on a branch: nothing moves before its commit, and then exactly as told."""

from pathlib import Path

import pyarrow as pa
import pytest
from storage_helpers import (
    BTREE,
    CASES,
    SCHEMA,
    STAMP,
    START,
    Case,
    content,
    histories,
    land,
    newest,
    people,
    rows,
)

from omnigraph import KeyConflict
from omnigraph.storage.apply import Answer, commit_staged, landed, read_slot, restore
from omnigraph.storage.failures import CommitLost
from omnigraph.storage.places import open_root
from omnigraph.storage.stage import (
    Stamp,
    stage_append,
    stage_compaction,
    stage_create,
    stage_index,
    stage_upsert,
)
from omnigraph.storage.tables import TableRef, open_table, table_exists

pytestmark = pytest.mark.slow


@pytest.fixture(params=[None, "draft", "team/a"], ids=["main", "branch", "nested-branch"])
def table(request, tmp_path: Path):
    return people(tmp_path, request.param)


@pytest.fixture(params=CASES, ids=lambda c: c.name)
def case(request) -> Case:
    return request.param


def test_staging_moves_nothing(table, case: Case):
    main = open_table(table.ref.main, None)
    case.stage(table)
    assert newest(table) == table.version
    assert newest(main) == main.version
    assert content(open_table(table.ref, None)) == START


def test_commit_lands_at_exactly_the_planned_version_with_the_planned_content(table, case: Case):
    staged = case.stage(table)
    after = land(staged)
    assert (staged.read_version, staged.versions) == (table.version, case.versions)
    assert newest(table) == after.version == table.version + case.versions
    assert content(after) == case.after
    assert staged.rows_after == after.count_rows() == len(case.after)
    assert (staged.inserts, staged.updates, staged.deletes) == case.effect


def test_commit_keeps_row_ids_and_creating_versions_of_rows_that_stay(table, case: Case):
    before = histories(table)
    staged = case.stage(table)
    after = histories(land(staged))
    assert len({row_id for row_id, _ in after.values()}) == len(after)
    if case.kept:
        assert {k: after[k] for k in after if k in before} == {k: before[k] for k in after if k in before}
    new = {created for key, (_, created) in after.items() if key not in before or not case.kept}
    assert new <= {staged.read_version + staged.versions}


def test_commit_on_a_branch_leaves_main_and_the_old_version_alone(table, case: Case):
    land(case.stage(table))
    assert content(open_table(table.ref, table.version)) == START
    if table.ref.branch is not None:
        main = open_table(table.ref.main, None)
        assert content(main) == START
        assert main.version == table.version


def test_landing_is_recognised_by_its_stamp(table, case: Case):
    staged = case.stage(table)
    land(staged)
    slot = read_slot(staged.ref, table.version + 1)
    assert slot is not None
    assert slot.readable
    if case.name != "compaction":
        assert (slot.uuid, slot.operation_id, slot.step) == (staged.uuid, STAMP.operation_id, "0")
    else:
        assert slot.is_maintenance
        assert slot.operation_id is None


def test_stale_commit_never_lands_in_its_planned_slot(table, case: Case):
    """Another write took the slot; Lance may refuse or move the commit, the slot tells the truth."""
    staged = case.stage(table)
    land(stage_append(table, rows({"other": 99}), Stamp("01HZZZZZZZZZZZZZZZZZZZZZZY", "node:People", "0")))
    answer = commit_staged(staged)
    assert not landed(staged, table.version, answer)
    assert not landed(staged, table.version, Answer())


def test_staged_write_committed_twice_is_applied_once(table, case: Case):
    staged = case.stage(table)
    land(staged)
    answer = commit_staged(staged)
    assert landed(staged, table.version, answer)
    assert landed(staged, table.version, Answer())
    assert content(open_table(table.ref, table.version + staged.versions)) == case.after


def test_restore_gives_the_content_of_the_pin_a_new_version(table, case: Case):
    before = histories(table)
    moved = land(case.stage(table))
    version = restore(table.ref, table.version, STAMP)
    assert version == moved.version + 1
    restored = open_table(table.ref, None)
    assert content(restored) == START
    assert histories(restored) == before
    assert read_slot(table.ref, version).operation == "Restore"


# ---- one by one


def test_append_of_a_stored_id_is_a_key_conflict_that_names_it(table):
    with pytest.raises(KeyConflict) as refused:
        stage_append(table, rows({"x": 1, "p1": 1, "p0": 0}), STAMP)
    assert (refused.value.ids, refused.value.count) == (("p0", "p1"), 2)
    assert newest(table) == table.version


def test_idle_compaction_stages_nothing(table):
    compacted = land(stage_compaction(table, STAMP))
    assert stage_compaction(compacted, STAMP) is None


def test_upsert_of_more_rows_than_a_filter_takes_finds_the_stored_ones(table):
    many = {f"p{i}": i + 1000 for i in range(1500)}
    staged = stage_upsert(table, rows(many), STAMP)
    assert (staged.inserts, staged.updates) == (1492, 8)
    before = histories(table)
    after = land(staged)
    assert content(after) == many
    assert {k: histories(after)[k] for k in START} == before


def test_new_table_exists_once_its_staged_creation_is_committed(tmp_path: Path):
    ref = TableRef(open_root(str(tmp_path)), "nodes/new")
    staged = stage_create(ref, SCHEMA, STAMP)
    assert not table_exists(ref)
    assert landed(staged, 0, commit_staged(staged))
    created = open_table(ref, None)
    assert (created.version, created.count_rows(), created.has_stable_row_ids) == (1, 0, True)
    assert created.schema == SCHEMA


def test_creation_that_comes_second_does_not_land(tmp_path: Path):
    ref = TableRef(open_root(str(tmp_path)), "nodes/new")
    first, second = stage_create(ref, SCHEMA, STAMP), stage_create(ref, pa.schema([pa.field("q", pa.int8())]), STAMP)
    assert landed(first, 0, commit_staged(first))
    assert not landed(second, 0, commit_staged(second))
    assert open_table(ref, 1).schema == SCHEMA


def test_stale_upsert_of_the_same_row_is_refused_by_lance(table):
    staged = stage_upsert(table, rows({"p1": 100}), STAMP)
    land(stage_upsert(table, rows({"p1": 200}), STAMP))
    assert isinstance(commit_staged(staged).error, CommitLost)
    assert content(open_table(table.ref, None))["p1"] == 200


def test_index_built_again_replaces_the_one_of_its_name(table):
    once = land(stage_index(table, [BTREE], STAMP))
    twice = land(stage_index(once, [BTREE], STAMP))
    assert [i.name for i in twice.dataset.describe_indices()] == ["n_btree_idx"]
    assert content(twice) == START
