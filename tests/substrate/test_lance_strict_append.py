"""Strict append: rows stated as a Merge of the whole fragment list, committed with no retries.

The publish of a commit relies on it:
  1. A change of the manifest's rows, layout or schema between staging and landing refuses it.
  2. What it lands over (table metadata, an index, reserved fragment ids) touches no row; nothing is lost or doubled.
  3. Its rows carry the landing version, and its uuid and properties are readable at that version.
"""

import pickle
from collections.abc import Callable
from pathlib import Path

import lance
import pytest
from lance.commit import CommitConflictError
from lance.optimize import Compaction
from lance_helpers import (
    OP,
    PRIMARY_KEY,
    STAMP,
    attempt,
    branch,
    by_id,
    commit,
    compact,
    create,
    fragment_ids,
    ids,
    insert_once,
    plan_compaction,
    race,
    reopen,
    rows,
    stage_append,
    stage_delete,
    stage_index,
    stage_insert,
    stage_overwrite,
    stage_restore,
    stage_stamp,
    stage_strict_append,
    stage_table_metadata,
    stage_upsert,
    strict_append,
    try_commit,
)

Act = Callable[[lance.LanceDataset], object]
PRESENT = ["a0", "a1", "a2", "b0", "b1", "b2"]


@pytest.fixture
def manifest(tmp_path: Path) -> lance.LanceDataset:
    """Three versions of one fragment each, the last one itself a strict append."""
    return strict_append(create(tmp_path / "manifest.lance", fragments=2), "a2", "b2")


def bare_reservation(ds: lance.LanceDataset) -> None:
    """A compaction that lost: its ReserveFragments version stays, its Rewrite does not."""
    outdated = lance.dataset(ds.uri, version=ds.version - 1)
    rewrites = plan_compaction(outdated)
    with pytest.raises(OSError, match="Retryable commit conflict"):
        Compaction.commit(outdated, rewrites)


def assert_intact_after_landing(ds: lance.LanceDataset, version: int) -> None:
    """Old rows unmoved, the new rows `mine-*` at the landing version, every id given once."""
    stored = by_id(ds, "_row_created_at_version", "_rowid")
    assert sorted(stored) == [*PRESENT, "mine-0", "mine-1"]
    assert {key: created for key, (created, _) in stored.items()} == {
        **{key: int(key[1]) + 1 for key in PRESENT},
        "mine-0": version,
        "mine-1": version,
    }
    assert len({row_id for _, row_id in stored.values()}) == len(stored)
    assert len(set(fragment_ids(ds))) == len(fragment_ids(ds)) == 4
    assert reopen(ds).count_rows() == 8


def test_strict_append_lands_at_the_next_version_with_its_rows_stamped_by_it(manifest):
    landed = commit(manifest, stage_strict_append(manifest, "mine-0", "mine-1"))
    assert landed.version == manifest.version + 1
    assert_intact_after_landing(manifest, landed.version)


def test_strict_append_keeps_schema_stamp_and_primary_key(manifest):
    landed = strict_append(manifest, "mine")
    assert landed.schema.metadata == {k.encode(): v.encode() for k, v in STAMP.items()}
    assert landed.schema.field("id").metadata == {k.encode(): v.encode() for k, v in PRIMARY_KEY.items()}
    assert not landed.schema.field("id").nullable


def test_strict_append_of_several_files_gives_each_its_own_fragment_id(manifest):
    landed = commit(manifest, stage_strict_append(manifest, "x", "y", "z", rows_per_file_max=1))
    assert fragment_ids(landed) == [0, 1, 2, 3, 4, 5]
    assert len(set(by_id(landed, "_rowid").values())) == 9


def test_strict_append_is_found_in_history_by_uuid_and_properties(manifest):
    staged = pickle.loads(pickle.dumps(stage_strict_append(manifest, "mine", intent="op-1")))
    landed = commit(manifest, staged)
    recorded = reopen(manifest).read_transaction(landed.version)
    assert recorded.uuid == staged.uuid
    assert recorded.transaction_properties == {"intent": "op-1"}


def test_of_two_strict_appends_from_one_version_exactly_one_lands(manifest):
    first, second = stage_strict_append(manifest, "first"), stage_strict_append(manifest, "second")
    landed = commit(manifest, first)
    with pytest.raises(CommitConflictError) as refused:
        commit(manifest, second)
    assert refused.value.retryable
    assert landed.version == manifest.version + 1 == reopen(manifest).version
    assert ids(manifest) == [*PRESENT, "first"]


def test_strict_append_committed_twice_is_applied_once(manifest):
    staged = stage_strict_append(manifest, "mine")
    commit(manifest, staged)
    again = try_commit(reopen(manifest), staged)
    assert again.conflict
    assert again.retryable
    assert ids(manifest) == [*PRESENT, "mine"]


def test_strict_append_from_a_handle_many_versions_old_is_refused(manifest):
    staged = stage_strict_append(manifest, "late")
    for i in range(15):
        strict_append(manifest, f"newer-{i}")
    assert try_commit(manifest, staged).retryable
    assert "late" not in ids(manifest)


@pytest.mark.parametrize(
    ("meanwhile", "retryable"),
    [
        pytest.param(lambda ds: strict_append(ds, "other"), True, id="strict-append"),
        pytest.param(lambda ds: insert_once(ds, "other"), True, id="merge-insert"),
        pytest.param(lambda ds: commit(ds, stage_upsert(ds, "a1")), True, id="staged-upsert"),
        pytest.param(lambda ds: commit(ds, stage_append(ds, "other")), True, id="append"),
        pytest.param(lambda ds: ds.update({"n": "5"}, where="id = 'a1'"), True, id="update"),
        pytest.param(lambda ds: ds.delete("id = 'a1'"), True, id="delete"),
        pytest.param(lambda ds: commit(ds, stage_overwrite(ds, "other")), False, id="overwrite"),
        pytest.param(compact, True, id="compaction"),
        pytest.param(lambda ds: commit(ds, stage_restore(ds)), False, id="restore"),
        pytest.param(lambda ds: ds.update_schema_metadata({"stamp": "5"}), True, id="schema-metadata"),
        pytest.param(lambda ds: ds.update_field_metadata({"n": {"k": "v"}}), True, id="field-metadata"),
        pytest.param(lambda ds: ds.add_columns({"q": "n * 2"}), True, id="add-column"),
    ],
)
def test_strict_append_is_refused_after(manifest, meanwhile: Act, retryable: bool):
    staged = stage_strict_append(manifest, "mine")
    meanwhile(reopen(manifest))
    head, seen = reopen(manifest).version, ids(manifest)
    outcome = try_commit(manifest, staged)
    assert outcome.conflict
    assert outcome.retryable is retryable
    assert (reopen(manifest).version, ids(manifest)) == (head, seen)


@pytest.mark.parametrize(
    "meanwhile",
    [
        pytest.param(lambda ds: commit(ds, stage_table_metadata(ds)), id="table-metadata"),
        pytest.param(lambda ds: ds.update_config({"k": "v"}), id="config"),
        pytest.param(lambda ds: commit(ds, stage_index(ds)), id="create-index"),
        pytest.param(bare_reservation, id="reserve-fragments"),
    ],
)
def test_strict_append_lands_one_version_later_and_intact_over(manifest, meanwhile: Act):
    staged = stage_strict_append(manifest, "mine-0", "mine-1")
    meanwhile(reopen(manifest))
    assert reopen(manifest).version == manifest.version + 1
    landed = commit(manifest, staged)
    assert landed.version == manifest.version + 2
    assert_intact_after_landing(manifest, landed.version)
    assert reopen(manifest).read_transaction(landed.version).uuid == staged.uuid


def test_table_metadata_written_meanwhile_survives_a_strict_append(manifest):
    staged = stage_strict_append(manifest, "mine")
    reopen(manifest).update_metadata({"k": "v"})
    assert commit(manifest, staged).metadata == {"k": "v"}


def test_index_built_meanwhile_survives_a_strict_append_and_finds_every_row(manifest):
    staged = stage_strict_append(manifest, "mine")
    commit(manifest, stage_index(manifest))
    landed = commit(manifest, staged)
    assert [index.name for index in landed.describe_indices()] == ["n_idx"]
    assert landed.to_table(filter="n = 0").num_rows == 7


@pytest.mark.parametrize("meanwhile", ["tag", "branch"])
def test_strict_append_is_not_disturbed_by_a_new(manifest, meanwhile: str):
    staged = stage_strict_append(manifest, "mine")
    if meanwhile == "tag":
        reopen(manifest).tags.create("t", manifest.version)
    else:
        reopen(manifest).create_branch("b")
    assert commit(manifest, staged).version == manifest.version + 1


def test_compaction_planned_before_a_strict_append_is_refused_and_loses_nothing(manifest):
    rewrites = plan_compaction(manifest)
    strict_append(manifest, "mine")
    with pytest.raises(OSError, match="Retryable commit conflict") as refused:
        Compaction.commit(manifest, rewrites)
    assert not isinstance(refused.value, CommitConflictError)
    assert ids(manifest) == [*PRESENT, "mine"]
    assert reopen(manifest).version == manifest.version + 2, "the refused compaction leaves its reservation"


def test_strict_append_between_reservation_and_rewrite_keeps_a_later_compaction_right(manifest):
    staged = stage_strict_append(manifest, "mine-0", "mine-1")
    bare_reservation(reopen(manifest))
    commit(manifest, staged)
    before = by_id(manifest, "_rowid", "_row_created_at_version")
    compact(manifest)
    assert by_id(manifest, "_rowid", "_row_created_at_version") == before
    assert len(fragment_ids(manifest)) == 1


@pytest.mark.parametrize(
    "stage",
    [
        pytest.param(lambda ds: stage_append(ds, "late"), id="append"),
        pytest.param(lambda ds: stage_upsert(ds, "a1"), id="upsert"),
        pytest.param(lambda ds: stage_insert(ds, "late"), id="insert"),
        pytest.param(lambda ds: stage_delete(ds, "id = 'a1'"), id="delete"),
        pytest.param(lambda ds: stage_overwrite(ds, "late"), id="overwrite"),
        pytest.param(lambda ds: stage_stamp(ds, "9"), id="schema-metadata"),
    ],
)
def test_strict_append_refuses_an_older_staged(manifest, stage: Act):
    staged = stage(manifest)
    strict_append(manifest, "mine")
    outcome = try_commit(manifest, staged)
    assert outcome.conflict
    assert outcome.retryable
    assert ids(manifest) == [*PRESENT, "mine"]


def test_strict_append_refuses_an_older_primary_key_publish(manifest):
    strict_append(manifest, "mine")
    outcome = attempt(lambda: insert_once(manifest, "late"))
    assert "Too many concurrent writers" in str(outcome.error)
    assert ids(manifest) == [*PRESENT, "mine"]


@pytest.mark.parametrize("stage", [stage_index, stage_table_metadata], ids=["create-index", "table-metadata"])
def test_strict_append_keeps_its_rows_under_an_older_staged(manifest, stage: Act):
    staged = stage(manifest)
    strict_append(manifest, "mine")
    assert commit(manifest, staged).version == manifest.version + 2
    assert ids(manifest) == [*PRESENT, "mine"]


def test_strict_append_is_undone_by_an_older_staged_restore(manifest):
    staged = stage_restore(manifest)
    strict_append(manifest, "mine")
    commit(manifest, staged)
    assert ids(manifest) == PRESENT


def test_strict_append_on_a_branch_lands_there_alone(manifest):
    manifest.create_branch("feature/x")
    fork = branch(manifest, "feature/x")
    staged = pickle.loads(pickle.dumps(stage_strict_append(fork, "mine-0", "mine-1", intent="op-1")))
    rival = stage_strict_append(fork, "rival")
    landed = commit(fork, staged)
    assert landed.version == fork.version + 1
    assert landed.read_transaction(landed.version).transaction_properties == {"intent": "op-1"}
    assert landed.read_transaction(landed.version).uuid == staged.uuid
    assert_intact_after_landing(fork, landed.version)
    assert try_commit(fork, rival).retryable
    assert ids(manifest) == PRESENT


def test_strict_append_works_on_a_table_that_was_compacted(manifest):
    compact(manifest)
    landed = strict_append(manifest, "mine")
    assert by_id(manifest, "_row_created_at_version")["mine"] == landed.version
    assert ids(manifest) == [*PRESENT, "mine"]
    assert rows("mine").schema.equals(landed.schema)


@pytest.mark.slow
@pytest.mark.parametrize("compacting", [False, True], ids=["writers-alone", "while-compacting"])
def test_racing_strict_appends_keep_exactly_the_acknowledged_rows(manifest, compacting: bool):
    tries, (compacted, _) = race(manifest.uri, writers=6, count=25, compacting=compacting)
    landed = {row: version for row, _, version, _ in tries if version is not None}
    stored = by_id(manifest, "_row_created_at_version", "_rowid")
    assert sorted(stored) == sorted([*PRESENT, *landed])
    assert {row: stored[row][0] for row in landed} == landed
    assert len(set(landed.values())) == len(landed) >= 25
    assert len({row_id for _, row_id in stored.values()}) == len(stored)
    assert all(conflict for _, _, version, conflict in tries if version is None)
    if compacting:
        # Landing over a compaction's reservation moves the row one version on, never further.
        assert {version - read for _, read, version, _ in tries if version is not None} <= {1, 2}
    else:
        assert compacted == 0
        assert all(version == read + 1 for _, read, version, _ in tries if version is not None)
        assert reopen(manifest).version == manifest.version + len(landed)


def test_operation_merge_is_the_only_strict_form_known_to_keep_row_ids(manifest):
    """Rewritten rows cannot ride on it: fragments that carry row ids are refused as new ones."""
    elsewhere = create(Path(manifest.uri).parent / "elsewhere.lance", fragments=4)
    carried = elsewhere.get_fragments()[3].metadata
    present = [f.metadata for f in manifest.get_fragments()]
    staged = lance.Transaction(manifest.version, OP.Merge([*present, carried], manifest.lance_schema))
    with pytest.raises(OSError, match="must not carry row ids"):
        commit(manifest, staged)
