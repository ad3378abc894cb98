"""Commits that arrive late: their writer slept, timed out or was undone meanwhile.

1. Prepared at v, a commit lands at exactly v+1 as long as nobody touched the table.
2. A Restore refuses every late change of rows, layout or indexes; a late UpdateConfig or Restore lands even then.
3. Over an append or a metadata change late commits land further on: "no error" does not tell the position.
"""

from collections.abc import Callable
from pathlib import Path

import lance
import pytest
from lance.optimize import Compaction
from lance_helpers import (
    OP,
    attempt,
    branch,
    by_id,
    commit,
    create,
    ids,
    insert_once,
    plan_compaction,
    reopen,
    stage_append,
    stage_delete,
    stage_index,
    stage_insert,
    stage_overwrite,
    stage_restore,
    stage_row_rewrite,
    stage_strict_append,
    stage_table_metadata,
    stage_upsert,
    transaction,
    try_commit,
)

Stage = Callable[[lance.LanceDataset], lance.Transaction]
PRESENT = ["a0", "a1", "a2", "b0", "b1", "b2"]
DATA = {
    "append": lambda ds: stage_append(ds, "late"),
    "upsert": lambda ds: stage_upsert(ds, "a1", "late"),
    "insert": lambda ds: stage_insert(ds, "late"),
    "row-rewrite": lambda ds: stage_row_rewrite(ds, {"a1": 9, "late": 9}),
    "delete": lambda ds: stage_delete(ds, "id = 'a1'"),
    "index": stage_index,
}
STRICT = {
    "overwrite": lambda ds: stage_overwrite(ds, "late"),
    "strict-append": lambda ds: stage_strict_append(ds, "late"),
}
UNFENCED = {"table-metadata": stage_table_metadata, "restore": stage_restore}


def each(**stages: Stage) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("stage", [pytest.param(stage, id=name) for name, stage in stages.items()])


@pytest.fixture
def table(tmp_path: Path) -> lance.LanceDataset:
    return create(tmp_path / "table.lance")


@each(**DATA, **STRICT, **UNFENCED)
def test_late_commit_to_an_untouched_table_lands_at_the_planned_version(table, stage: Stage):
    staged = stage(table)
    assert commit(reopen(table), staged).version == table.version + 1
    assert reopen(table).read_transaction(table.version + 1).uuid == staged.uuid


@pytest.mark.parametrize("on_branch", [False, True], ids=["main", "branch"])
@each(**DATA, **STRICT)
def test_restore_refuses_a_late(table, stage: Stage, on_branch: bool):
    if on_branch:
        table.create_branch("b")
    place = branch(table, "b") if on_branch else table
    staged = stage(place)
    commit(place, stage_restore(place))
    outcome = try_commit(place, staged)
    assert outcome.conflict
    assert outcome.retryable is (type(staged.operation) is OP.Overwrite)
    assert (reopen(place).version, ids(place)) == (place.version + 1, PRESENT)


def test_restore_refuses_a_late_publish_and_a_late_compaction(table):
    rewrites = plan_compaction(table)
    commit(table, stage_restore(table))
    assert "Incompatible transaction" in str(attempt(lambda: insert_once(table, "late")).error)
    compaction = attempt(lambda: Compaction.commit(table, rewrites))
    assert compaction.refused
    assert not compaction.conflict
    assert ids(table) == PRESENT


@each(**UNFENCED)
def test_restore_does_not_refuse_a_late(table, stage: Stage):
    staged = stage(table)
    head = commit(table, stage_restore(table))
    commit(head, stage_append(head, "acknowledged"))
    commit(table, staged)
    restored = isinstance(staged.operation, OP.Restore)
    assert ("acknowledged" in ids(table)) is not restored


@each(**DATA)
@pytest.mark.parametrize(
    "meanwhile",
    [
        pytest.param(lambda ds: stage_append(ds, "other"), id="append"),
        pytest.param(stage_table_metadata, id="table-metadata"),
    ],
)
def test_late_change_lands_one_version_further_over_a_foreign(table, meanwhile: Stage, stage: Stage):
    staged = stage(table)
    commit(table, meanwhile(table))
    others = set(ids(table)) - set(PRESENT)
    assert commit(table, staged).version == table.version + 2
    assert reopen(table).read_transaction(table.version + 2).uuid == staged.uuid
    assert others <= set(ids(table))


@pytest.mark.parametrize("stage", list(STRICT.values()), ids=list(STRICT))
def test_late_overwrite_and_strict_append_are_refused_after_a_foreign_append(table, stage: Stage):
    staged = stage(table)
    commit(table, stage_append(table, "other"))
    outcome = try_commit(table, staged)
    assert outcome.conflict
    assert outcome.retryable
    assert ids(table) == [*PRESENT, "other"]


def test_restore_to_an_older_version_fences_as_well_as_one_to_the_head(table):
    staged = stage_append(table, "late")
    commit(table, transaction(table, OP.Restore(2)))
    assert try_commit(table, staged).conflict
    assert ids(table) == ["a0", "a1", "b0", "b1"]


def test_lance_restore_loses_to_concurrent_append_via_orphaning(table):
    """A restore prepared before an append lands over it without a word: the append is acknowledged and gone.

    Its version stays readable and no later one has its rows. Prepared before the restore but committed after it,
    the append is refused instead.
    """
    restore, late = stage_restore(table), stage_append(table, "refused")
    appended = commit(table, stage_append(table, "orphan"))
    restored = commit(table, restore)
    assert (appended.version, restored.version) == (table.version + 1, table.version + 2)
    assert ids(table) == PRESENT
    orphaned = lance.dataset(table.uri, version=appended.version).to_table()
    assert "orphan" in orphaned["id"].to_pylist()

    outcome = try_commit(table, late)
    assert outcome.conflict
    assert outcome.retryable is False
    head = reopen(table)
    commit(head, stage_append(head, "next"))
    assert ids(table) == [*PRESENT, "next"]
    assert by_id(table, "_row_created_at_version")["next"] == restored.version + 1


def test_landing_is_decided_by_the_slot_even_when_a_transaction_landed_twice(table):
    staged = stage_append(table, "twin")
    commit(table, staged)
    commit(table, staged)
    slots = {v: reopen(table).read_transaction(v).uuid == staged.uuid for v in (3, 4, 5)}
    assert slots == {3: False, 4: True, 5: True}
    assert lance.dataset(table.uri, version=4).count_rows(filter="id = 'twin'") == 1


def test_late_append_is_refused_once_the_version_it_read_was_collected(table):
    staged = stage_append(table, "late")
    for i in range(3):
        commit(reopen(table), stage_append(reopen(table), f"newer-{i}"))
    reopen(table).cleanup_old_versions(retain_versions=1)
    assert attempt(lambda: commit(reopen(table), staged)).refused
    assert "late" not in ids(table)
