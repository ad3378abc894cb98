"""What Lance's own cleanup keeps and takes, on which `cleanup` and pins stand.

1. Kept: the head, tagged versions, fork points of branches. A version only our manifest pins is taken.
2. Staged files younger than seven days stay; with `delete_unverified` they go and their commit still succeeds.
3. Detached versions are not kept alive, which is why nothing uses them.
"""

from datetime import timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance_helpers import (
    branch,
    commit,
    compact,
    create,
    ids,
    reopen,
    stage_append,
    stage_overwrite,
    version_file,
)

PRESENT = ["a0", "a1", "a2", "b0", "b1", "b2"]
NOTHING = timedelta(0)


@pytest.fixture
def table(tmp_path: Path) -> lance.LanceDataset:
    """Versions 1, 2 and 3."""
    return create(tmp_path / "table.lance")


def versions(ds: lance.LanceDataset) -> list[int]:
    return [v["version"] for v in reopen(ds).versions()]


def clean(ds: lance.LanceDataset, **options: object) -> None:
    reopen(ds).cleanup_old_versions(**{"older_than": NOTHING, "error_if_tagged_old_versions": False, **options})


def test_cleanup_takes_every_version_but_the_head(table):
    clean(table)
    assert versions(table) == [3]
    assert [version_file(table, v).exists() for v in (1, 2, 3)] == [False, False, True]
    with pytest.raises(ValueError):
        lance.dataset(table.uri, version=2)


def test_tagged_version_is_kept_and_named_by_an_error_unless_told_otherwise(table):
    table.tags.create("pin", 1)
    with pytest.raises(OSError):
        clean(table, error_if_tagged_old_versions=True)
    clean(table)
    assert versions(table) == [1, 3]


def test_fork_point_of_a_branch_is_kept_and_the_branch_stays_readable(table):
    table.create_branch("b", ("main", 2))
    commit(table, stage_overwrite(table, "z"))
    clean(table, delete_unverified=True)
    assert versions(table) == [2, 4]
    assert ids(branch(table, "b")) == ["a0", "a1", "b0", "b1"]


def test_files_of_main_that_a_branch_inherited_survive_compaction_and_cleanup_of_main(table):
    table.create_branch("b")
    compact(table)
    clean(table, delete_unverified=True)
    assert ids(branch(table, "b")) == PRESENT
    assert ids(table) == PRESENT


def test_cleanup_of_chosen_versions_takes_exactly_those(table):
    for key in ("x", "y"):
        commit(reopen(table), stage_append(reopen(table), key))
    reopen(table).cleanup_old_versions(versions=[2, 4])
    assert versions(table) == [1, 3, 5]
    assert lance.dataset(table.uri, version=3).count_rows() == 6


def test_cleanup_from_a_pinned_handle_takes_only_versions_below_it(table):
    commit(table, stage_append(table, "x"))
    lance.dataset(table.uri, version=2).cleanup_old_versions(older_than=NOTHING)
    assert versions(table) == [2, 3, 4]


def test_staged_files_survive_cleanup_and_land_afterwards(table):
    staged = stage_append(table, "new")
    clean(table)
    commit(table, staged)
    assert ids(table) == [*PRESENT, "new"]


def test_staged_files_taken_as_unverified_leave_a_commit_that_lands_and_cannot_be_read(table):
    staged = stage_append(table, "new")
    clean(table, delete_unverified=True)
    assert commit(table, staged).version == 4
    with pytest.raises((OSError, ValueError, pa.ArrowInvalid)):
        ids(table)


def test_explained_cleanup_removes_nothing(table):
    reopen(table).explain_cleanup_old_versions(older_than=NOTHING)
    assert versions(table) == [1, 2, 3]


@pytest.mark.parametrize("tagged", [False, True], ids=["untagged", "tagged"])
def test_rows_of_a_detached_version_do_not_survive_an_eager_cleanup(table, tagged: bool):
    detached = lance.LanceDataset.commit(table, stage_append(table, "new"), max_retries=20, detached=True)
    assert detached.version >= 2**63
    assert reopen(table).version == 3
    if tagged:
        table.tags.create("keep", detached.version)
    clean(table, delete_unverified=True)
    with pytest.raises((OSError, ValueError, pa.ArrowInvalid)):
        lance.dataset(table.uri, version=detached.version).to_table()


def test_detached_commit_without_retries_is_refused(table):
    with pytest.raises(OSError, match="Failed find unused random"):
        lance.LanceDataset.commit(table, stage_append(table, "new"), max_retries=0, detached=True)
