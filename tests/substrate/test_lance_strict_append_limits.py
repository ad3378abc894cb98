"""Where a strict append is not guarded by Lance, so that OmniGraph must guard it itself.

1. Conflicts are read from the versions between staging and landing. A collected version is not
   seen: a second check (the fragment list) still saves rows, but not deletions and not stamps.
2. A branch that was deleted or re-created accepts a stale handle unless a Restore stands at a
   version above the one the handle read.
"""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance_helpers import (
    attempt,
    branch,
    by_id,
    commit,
    compact,
    create,
    ids,
    recreate_branch,
    reopen,
    stage_overwrite,
    stage_restore,
    stage_strict_append,
    stage_upsert,
    strict_append,
    try_commit,
)

Act = Callable[[lance.LanceDataset], object]
PRESENT = ["a0", "a1", "a2", "b0", "b1", "b2"]


@pytest.fixture
def manifest(tmp_path: Path) -> lance.LanceDataset:
    return create(tmp_path / "manifest.lance")


def collect_all_but_head(ds: lance.LanceDataset) -> None:
    reopen(ds).cleanup_old_versions(older_than=timedelta(0), retain_versions=1)
    assert len(reopen(ds).versions()) == 1


def hide_in_history(ds: lance.LanceDataset) -> None:
    """Puts a version on top that a strict append may land over, and collects all below it."""
    reopen(ds).update_config({"k": "v"})
    collect_all_but_head(ds)


def fence(ds: lance.LanceDataset) -> None:
    head = reopen(ds)
    commit(head, stage_restore(head))


def test_strict_append_is_refused_while_the_version_it_missed_is_still_the_head(manifest):
    staged = stage_strict_append(manifest, "late")
    for i in range(3):
        strict_append(manifest, f"newer-{i}")
    collect_all_but_head(manifest)
    assert try_commit(manifest, staged).retryable
    assert ids(manifest) == [*PRESENT, "newer-0", "newer-1", "newer-2"]


@pytest.mark.parametrize(
    ("meanwhile", "refusal"),
    [
        pytest.param(lambda ds: strict_append(ds, "acked"), "missing original fragments", id="strict-append"),
        pytest.param(lambda ds: commit(ds, stage_upsert(ds, "a1")), "missing original fragments", id="upsert"),
        pytest.param(compact, "missing original fragments", id="compaction"),
        pytest.param(lambda ds: commit(ds, stage_overwrite(ds, "z")), "missing original fragments", id="overwrite"),
        pytest.param(lambda ds: ds.checkout_version(2).restore(), "must not carry row ids", id="restore"),
    ],
)
def test_fragment_check_refuses_a_strict_append_whose_rival_was_collected(manifest, meanwhile: Act, refusal: str):
    staged = stage_strict_append(manifest, "late")
    meanwhile(reopen(manifest))
    hide_in_history(manifest)
    seen = ids(manifest)
    outcome = try_commit(manifest, staged)
    assert refusal in str(outcome.error)
    assert not outcome.conflict, "a plain OSError, so it must not be taken for a storage failure"
    assert ids(manifest) == seen


def test_strict_append_silently_undoes_a_delete_whose_version_was_collected(manifest):
    staged = stage_strict_append(manifest, "late")
    reopen(manifest).delete("id = 'a1'")
    hide_in_history(manifest)
    commit(manifest, staged)
    assert ids(manifest) == [*PRESENT, "late"]


def test_strict_append_silently_undoes_a_stamp_whose_version_was_collected(manifest):
    staged = stage_strict_append(manifest, "late")
    reopen(manifest).update_schema_metadata({"stamp": "5"})
    hide_in_history(manifest)
    assert commit(manifest, staged).schema.metadata == {b"stamp": b"4"}


def test_strict_append_lands_on_a_deleted_branch_whose_name_is_then_blocked(manifest):
    manifest.create_branch("b")
    stale = branch(manifest, "b")
    staged = stage_strict_append(stale, "ghost")
    reopen(manifest).branches.delete("b")
    commit(stale, staged)
    assert "b" not in reopen(manifest).branches.list()
    assert attempt(lambda: reopen(manifest).create_branch("b")).refused
    assert ids(manifest) == PRESENT


def stale_writer(manifest: lance.LanceDataset, old_commits: int) -> tuple[lance.LanceDataset, lance.Transaction]:
    """A strict append staged on branch `b` after `old_commits` commits; the branch is then re-created."""
    manifest.create_branch("b")
    for i in range(old_commits):
        strict_append(branch(manifest, "b"), f"old-{i}")
    stale = branch(manifest, "b")
    staged = stage_strict_append(stale, "ghost")
    recreate_branch(manifest, "b")
    return stale, staged


@pytest.mark.parametrize(("old_commits", "fences"), [(0, 0), (1, 1), (2, 1), (2, 2)])
def test_stale_strict_append_breaks_a_re_created_branch_fenced_at_or_below_its_version(
    manifest, old_commits: int, fences: int
):
    stale, staged = stale_writer(manifest, old_commits)
    for _ in range(fences):
        fence(branch(manifest, "b"))
    fenced = branch(manifest, "b").version
    assert fenced <= stale.version
    assert commit(stale, staged).version == stale.version + 1
    with pytest.raises(pa.ArrowInvalid, match="Not found"):
        ids(branch(manifest, "b"))
    assert lance.dataset(f"{manifest.uri}/tree/b", version=fenced).count_rows() == len(PRESENT)


@pytest.mark.parametrize(("old_commits", "fences"), [(0, 1), (1, 2), (2, 3)])
def test_stale_strict_append_is_refused_by_a_restore_above_its_version(manifest, old_commits: int, fences: int):
    stale, staged = stale_writer(manifest, old_commits)
    for _ in range(fences):
        fence(branch(manifest, "b"))
    assert branch(manifest, "b").version > stale.version
    outcome = try_commit(stale, staged)
    assert outcome.conflict
    assert outcome.retryable is False
    assert ids(branch(manifest, "b")) == PRESENT


def test_stale_strict_append_is_refused_by_any_commit_above_its_version(manifest):
    stale, staged = stale_writer(manifest, 1)
    strict_append(branch(manifest, "b"), "new-0")
    strict_append(branch(manifest, "b"), "new-1")
    assert try_commit(stale, staged).retryable
    assert ids(branch(manifest, "b")) == [*PRESENT, "new-0", "new-1"]


def test_stale_handle_that_stages_after_the_branch_was_re_created_lands_as_a_stranger(manifest):
    manifest.create_branch("b")
    stale = branch(manifest, "b")
    recreate_branch(manifest, "b")
    landed = commit(stale, stage_strict_append(stale, "ghost"))
    assert by_id(branch(manifest, "b"), "_row_created_at_version")["ghost"] == landed.version


def test_branch_broken_by_a_stale_strict_append_is_healed_by_restoring_its_pinned_version(manifest):
    stale, staged = stale_writer(manifest, 1)
    pinned = strict_append(branch(manifest, "b"), "new").version
    commit(stale, staged)
    lance.dataset(f"{manifest.uri}/tree/b", version=pinned).restore()
    assert ids(branch(manifest, "b")) == [*PRESENT, "new"]
