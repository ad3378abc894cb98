"""Lance branches, on which graph branches and table forks stand.

1. A branch is opened by its `tree/` path; a handle checked out from main does not survive its process.
2. Nothing done on a branch moves main. Versions continue from the fork point, so (branch, version) is the identity.
3. A fork records the absolute path of its base: a copied graph still reads the original.
4. A stale handle can write to a branch that was deleted or re-created; Lance does not guard against it.
"""

import pickle
import shutil
from collections.abc import Callable
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
    found_by,
    ids,
    insert_once,
    recreate_branch,
    reopen,
    stage_append,
    stage_delete,
    stage_index,
    stage_restore,
    stage_row_rewrite,
    stage_upsert,
    try_commit,
)

Act = Callable[[lance.LanceDataset], object]
PRESENT = ["a0", "a1", "a2", "b0", "b1", "b2"]


@pytest.fixture
def table(tmp_path: Path) -> lance.LanceDataset:
    return create(tmp_path / "graph" / "table.lance")


def fork(ds: lance.LanceDataset, name: str, reference: object = None) -> lance.LanceDataset:
    ds.create_branch(name, reference)
    return branch(reopen(ds), name)


def test_branch_starts_with_the_rows_and_version_of_its_fork_point(table):
    made = table.create_branch("feature/x", ("main", 2))
    assert made.uri.endswith("/table.lance/tree/feature/x")
    opened = branch(table, "feature/x")
    assert (opened.version, ids(opened)) == (2, ["a0", "a1", "b0", "b1"])
    listed = reopen(table).branches.list()["feature/x"]
    assert (listed["parent_branch"], listed["parent_version"]) == (None, 2)


def test_branch_metadata_is_replaced_and_listed(table):
    table.create_branch("b")
    reopen(table).branches.replace_metadata("b", {"incarnation": "one"})
    reopen(table).branches.replace_metadata("b", {"incarnation": "two"})
    assert reopen(table).branches.list()["b"]["metadata"] == {"incarnation": "two"}
    assert ids(branch(table, "b")) == PRESENT


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda ds: commit(ds, stage_append(ds, "new")), id="append"),
        pytest.param(lambda ds: commit(ds, stage_upsert(ds, "a0")), id="upsert"),
        pytest.param(lambda ds: commit(ds, stage_row_rewrite(ds, {"a0": 4}, ["b1"])), id="row-rewrite"),
        pytest.param(lambda ds: commit(ds, stage_delete(ds, "id = 'a0'")), id="delete"),
        pytest.param(lambda ds: commit(ds, stage_index(ds)), id="create-index"),
        pytest.param(lambda ds: commit(ds, stage_restore(ds)), id="restore"),
        pytest.param(compact, id="compaction"),
    ],
)
def test_main_does_not_move_on_a_branch_s(table, change: Act):
    before = by_id(table, "n", "_rowid", "_row_last_updated_at_version")
    forked = fork(table, "b")
    change(forked)
    assert reopen(forked).version > table.version
    assert reopen(table).version == table.version
    assert by_id(table, "n", "_rowid", "_row_last_updated_at_version") == before


def test_same_version_number_means_different_rows_on_branch_and_main(table):
    forked = fork(table, "b")
    on_branch = commit(forked, stage_append(forked, "on-branch"))
    on_main = commit(table, stage_append(table, "on-main"))
    assert on_branch.version == on_main.version
    assert ids(on_branch) == [*PRESENT, "on-branch"]
    assert ids(on_main) == [*PRESENT, "on-main"]


def test_files_staged_with_the_branch_handle_lie_in_the_branch(table):
    forked = fork(table, "b")
    on_main = set((Path(table.uri) / "data").iterdir())
    stage_append(forked, "new")
    assert set((Path(table.uri) / "data").iterdir()) == on_main
    assert len(list((Path(forked.uri) / "data").iterdir())) == 1


def test_branches_of_branches_read_upsert_and_search_on_every_generation(table):
    commit(table, stage_index(table, "id", "id_idx"))
    generation = reopen(table)
    for depth in range(1, 4):
        generation = fork(table, f"g{depth}", (f"g{depth - 1}" if depth > 1 else "main", generation.version))
        generation = commit(generation, stage_append(generation, f"new-{depth}"))
        generation = commit(generation, stage_upsert(generation, f"a{depth - 1}", n=depth))
        assert ids(generation) == sorted([*PRESENT, *[f"new-{d}" for d in range(1, depth + 1)]])
        for key in ("b0", "a0", f"new-{depth}"):
            assert found_by(generation, f"id = '{key}'", indexed=True) == [key]
    assert [by_id(branch(table, f"g{d}"), "n")["a0"] for d in (1, 2, 3)] == [1, 1, 1]
    assert ids(table) == PRESENT


def test_branch_with_children_cannot_be_deleted_before_them(table):
    parent = fork(table, "parent")
    fork(table, "child", ("parent", parent.version))
    with pytest.raises(OSError, match="referenced by"):
        reopen(table).branches.delete("parent")
    reopen(table).branches.delete("child")
    reopen(table).branches.delete("parent")
    assert reopen(table).branches.list() == {}


def test_branch_with_a_tag_cannot_be_deleted_before_it(table):
    forked = fork(table, "b")
    reopen(table).tags.create("t", ("b", forked.version))
    with pytest.raises(OSError, match="Ref conflict"):
        reopen(table).branches.delete("b")
    reopen(table).tags.delete("t")
    reopen(table).branches.delete("b")


def test_deleting_a_branch_that_is_not_there_is_a_value_error(table):
    with pytest.raises(ValueError):
        table.branches.delete("missing")


def test_creating_a_branch_twice_is_refused_and_leaves_the_first(table):
    forked = fork(table, "b")
    commit(forked, stage_append(forked, "mine"))
    assert attempt(lambda: reopen(table).create_branch("b")).refused
    assert ids(forked) == [*PRESENT, "mine"]


@pytest.mark.parametrize("opening", ["uri", "checkout"])
def test_missing_version_and_missing_branch_have_their_own_errors(table, opening: str):
    if opening == "uri":
        with pytest.raises(ValueError):
            lance.dataset(table.uri, version=99)
        with pytest.raises(ValueError):
            branch(table, "missing")
        with pytest.raises(OSError):
            lance.dataset(table.uri, version=("b", 3))
    else:
        with pytest.raises(OSError):
            table.checkout_version(99)
        with pytest.raises(ValueError):
            table.checkout_version(("missing", None))


def test_checked_out_branch_handle_names_main_and_does_not_survive_pickling(table):
    forked = fork(table, "b")
    commit(forked, stage_append(forked, "on-branch"))
    checked_out = table.checkout_version(("b", None))
    assert checked_out.uri == table.uri
    assert "on-branch" in checked_out.to_table()["id"].to_pylist()
    with pytest.raises((OSError, ValueError, pa.ArrowInvalid)):
        pickle.loads(pickle.dumps(checked_out)).to_table()
    by_path = pickle.loads(pickle.dumps(branch(table, "b")))
    assert "on-branch" in by_path.to_table()["id"].to_pylist()


def test_fork_records_the_absolute_path_of_its_base_and_main_does_not(table):
    forked = fork(table, "b")
    base = str(Path(table.uri)).lstrip("/").encode()
    manifests = list((Path(forked.uri) / "_versions").glob("*.manifest"))
    assert [base in file.read_bytes() for file in manifests] == [True]
    assert not any(base in file.read_bytes() for file in (Path(table.uri) / "_versions").glob("*.manifest"))


def test_copied_fork_reads_the_original_and_fails_without_it_while_main_stands_alone(table, tmp_path):
    fork(table, "b")
    shutil.copytree(tmp_path / "graph", tmp_path / "copy")
    copied = lance.dataset(str(tmp_path / "copy" / "table.lance"))
    commit(copied, stage_append(copied, "on-copy"))
    assert ids(branch(copied, "b")) == PRESENT

    shutil.rmtree(tmp_path / "graph")
    assert ids(copied) == [*PRESENT, "on-copy"]
    with pytest.raises((OSError, ValueError, pa.ArrowInvalid)):
        ids(branch(copied, "b"))


def test_stale_handle_publishes_to_a_deleted_branch_and_blocks_its_name(table):
    stale = fork(table, "b")
    reopen(table).branches.delete("b")
    insert_once(stale, "ghost")
    assert "b" not in reopen(table).branches.list()
    assert attempt(lambda: reopen(table).create_branch("b")).refused
    shutil.rmtree(Path(table.uri) / "tree" / "b")
    assert ids(fork(table, "b")) == PRESENT


def test_stale_handle_publishes_the_same_primary_key_again_on_a_re_created_branch(table):
    """The key came with the new fork point, whose version records no inserted keys to compare with."""
    stale = fork(table, "b")
    insert_once(table, "twin")
    recreate_branch(table, "b")
    insert_once(stale, "twin")
    assert ids(branch(table, "b")).count("twin") == 2


def test_stale_handle_is_refused_a_key_published_on_the_re_created_branch_itself(table):
    stale = fork(table, "b")
    recreate_branch(table, "b")
    insert_once(branch(table, "b"), "twin")
    assert attempt(lambda: insert_once(stale, "twin")).refused
    assert ids(branch(table, "b")).count("twin") == 1


def test_stale_append_lands_on_a_branch_re_created_at_the_same_version(table):
    stale = fork(table, "b")
    recreate_branch(table, "b")
    assert commit(stale, stage_append(stale, "ghost")).version == stale.version + 1
    assert ids(branch(table, "b")) == [*PRESENT, "ghost"]


@pytest.mark.parametrize(
    "late",
    [
        pytest.param(lambda ds: insert_once(ds, "ghost"), id="publish"),
        pytest.param(lambda ds: commit(ds, stage_append(ds, "ghost")), id="append"),
        pytest.param(lambda ds: commit(ds, stage_row_rewrite(ds, {"a0": 8})), id="row-rewrite"),
    ],
)
def test_restore_of_a_re_created_branch_to_itself_refuses_older_handles(table, late: Act):
    stale = fork(table, "b")
    recreate_branch(table, "b")
    again = branch(table, "b")
    commit(again, stage_restore(again))
    assert attempt(lambda: late(stale)).refused
    assert ids(again) == PRESENT


def test_late_append_to_a_re_created_branch_names_files_that_are_gone(table):
    """Its data file went with the old branch: the head then cannot be read, the version below can."""
    stale = fork(table, "b")
    staged = stage_append(stale, "ghost")
    recreate_branch(table, "b")
    pinned = branch(table, "b").version
    assert not try_commit(stale, staged).refused
    with pytest.raises((OSError, ValueError, pa.ArrowInvalid)):
        ids(branch(table, "b"))
    assert lance.dataset(f"{table.uri}/tree/b", version=pinned).count_rows() == len(PRESENT)
