"""The primary-key publish (merge-insert, executed): what it refuses, and what silently disables it.

1. Of two publishers that saw the same state, one key is inserted once, however stale the other handle is.
2. An index on the key, the staged form, or collected versions switch that off without an error.
3. A `commit_lock` replaces Lance's own put-if-absent: one that does not lock loses acknowledged commits.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance_helpers import (
    PRIMARY_KEY,
    Outcome,
    attempt,
    branch,
    by_id,
    commit,
    compact,
    create,
    ids,
    insert_once,
    reopen,
    rows,
    stage_append,
    stage_upsert,
)

PRESENT = ["a0", "a1", "a2", "b0", "b1", "b2"]


@pytest.fixture
def manifest(tmp_path: Path) -> lance.LanceDataset:
    return create(tmp_path / "manifest.lance")


def stale(ds: lance.LanceDataset) -> lance.LanceDataset:
    """A handle of its own at today's head."""
    head = reopen(ds)
    return lance.dataset(head.uri, version=head.version)


def upsert(ds: lance.LanceDataset, *keys: str, n: int = 9, use_index: bool = True) -> Outcome:
    builder = ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().conflict_retries(0)
    return attempt(lambda: builder.use_index(use_index).execute(rows(*keys, n=n)))


def publish(ds: lance.LanceDataset, *keys: str) -> Outcome:
    return attempt(lambda: insert_once(ds, *keys))


@pytest.mark.parametrize("on_branch", [False, True], ids=["main", "branch"])
@pytest.mark.parametrize("form", [publish, upsert], ids=["insert-once", "upsert"])
def test_same_new_key_from_two_stale_handles_lands_once(manifest, form, on_branch: bool):
    if on_branch:
        manifest.create_branch("b")
    place = branch(manifest, "b") if on_branch else manifest
    first, second = stale(place), stale(place)
    assert not form(first, "new").refused
    outcome = form(second, "new")
    assert "Too many concurrent writers" in str(outcome.error)
    assert not outcome.conflict, "a plain OSError: conflicts of the executed form are told by text"
    assert ids(place) == [*PRESENT, "new"]


def test_different_new_keys_from_two_stale_handles_both_land_with_their_own_versions(manifest):
    first, second = stale(manifest), stale(manifest)
    assert not publish(first, "x").refused
    assert not publish(second, "y").refused
    created = by_id(manifest, "_row_created_at_version")
    assert (created["x"], created["y"]) == (4, 5)


def test_same_stored_key_is_updated_once_and_its_neighbour_is_free(manifest):
    first, second, third = stale(manifest), stale(manifest), stale(manifest)
    assert not upsert(first, "a0", n=1).refused
    assert upsert(second, "a0", n=2).refused
    assert not upsert(third, "b0", n=3).refused
    stored = by_id(manifest, "n")
    assert (stored["a0"], stored["b0"]) == (1, 3)


@pytest.mark.parametrize("compacted", [False, True], ids=["as-is", "compacted-meanwhile"])
def test_publish_of_a_taken_key_is_refused_from_a_handle_many_versions_old(manifest, compacted: bool):
    late, other = stale(manifest), stale(manifest)
    insert_once(reopen(manifest), "taken")
    for i in range(20):
        insert_once(reopen(manifest), f"newer-{i}")
    if compacted:
        compact(manifest)
    assert publish(late, "taken").refused
    assert ids(manifest).count("taken") == 1
    assert not publish(other, "free").refused


def test_present_key_makes_a_fresh_insert_once_fail_before_any_commit(manifest):
    outcome = publish(manifest, "a0")
    assert outcome.refused
    assert "Too many concurrent writers" not in str(outcome.error)
    assert reopen(manifest).version == manifest.version


def test_unmet_update_condition_is_no_error_and_updates_nothing(manifest):
    builder = manifest.merge_insert("id").when_matched_update_all("target.n = 7").conflict_retries(0)
    assert builder.execute(rows("a0", n=1))["num_updated_rows"] == 0
    assert by_id(manifest, "n")["a0"] == 0


def test_index_on_the_key_column_disables_the_check(manifest):
    manifest.create_scalar_index("id", "BTREE", name="id_idx")
    first, second = stale(manifest), stale(manifest)
    assert not publish(first, "twin").refused
    assert not publish(second, "twin").refused
    assert ids(manifest).count("twin") == 2


@pytest.mark.parametrize(
    ("first_uses_index", "second_uses_index", "doubled"),
    [(False, False, False), (False, True, True), (True, False, False), (True, True, True)],
)
def test_on_an_indexed_key_only_a_second_writer_that_avoids_the_index_is_checked(
    manifest, first_uses_index: bool, second_uses_index: bool, doubled: bool
):
    manifest.create_scalar_index("id", "BTREE", name="id_idx")
    first, second = stale(manifest), stale(manifest)
    assert not upsert(first, "twin", use_index=first_uses_index).refused
    assert upsert(second, "twin", use_index=second_uses_index).refused is not doubled
    assert ids(manifest).count("twin") == (2 if doubled else 1)


def test_staged_form_of_the_publish_is_not_checked(manifest):
    first, second = stage_upsert(manifest, "twin"), stage_upsert(manifest, "twin")
    commit(manifest, first)
    commit(manifest, second)
    assert ids(manifest).count("twin") == 2


def test_executed_publish_after_a_staged_one_of_the_same_key_is_refused(manifest):
    late = stale(manifest)
    commit(manifest, stage_upsert(manifest, "twin"))
    assert publish(late, "twin").refused
    assert ids(manifest).count("twin") == 1


def test_plain_append_is_not_checked_and_one_batch_is_not_checked_against_itself(manifest):
    commit(manifest, stage_append(manifest, "a0"))
    assert ids(manifest).count("a0") == 2
    insert_once(reopen(manifest), "twin", "twin")
    assert ids(manifest).count("twin") == 2


def test_repeated_stored_key_in_one_batch_is_refused_as_ambiguous(manifest):
    assert "Ambiguous merge" in str(upsert(manifest, "a0", "a0").error)


def test_collecting_old_versions_disables_the_check_for_older_handles(manifest):
    """The publish looks for its key in the versions between; one that was collected is not looked at."""
    late = stale(manifest)
    insert_once(reopen(manifest), "twin")
    insert_once(reopen(manifest), "other")
    reopen(manifest).cleanup_old_versions(older_than=timedelta(0), retain_versions=1)
    assert not publish(late, "twin").refused
    assert ids(manifest).count("twin") == 2


@pytest.mark.parametrize(("keys", "refused"), [(20, False), (400, True)])
def test_large_disjoint_batches_conflict_though_no_key_is_shared(manifest, keys: int, refused: bool):
    """Inserted keys are compared by a small filter: false alarms cost a retry, never a row."""
    first, second = stale(manifest), stale(manifest)
    insert_once(first, *[f"x{i}" for i in range(keys)])
    assert publish(second, *[f"y{i}" for i in range(keys)]).refused is refused


def test_primary_key_must_not_be_nullable_and_cannot_be_taken_back(tmp_path):
    nullable = pa.schema([pa.field("id", pa.string(), True, metadata=PRIMARY_KEY)])
    assert attempt(lambda: lance.write_dataset(nullable.empty_table(), str(tmp_path / "nullable.lance"))).refused
    ds = create(tmp_path / "keyed.lance")
    for value in ("false", None):
        with pytest.raises((OSError, ValueError)):
            reopen(ds).update_field_metadata({"id": {next(iter(PRIMARY_KEY)): value}})


def test_primary_key_added_later_is_checked_from_then_on(tmp_path):
    bare = pa.schema([pa.field("id", pa.string(), False), pa.field("n", pa.int64())])
    ds = create(tmp_path / "plain.lance", schema=bare)
    first, second = stale(ds), stale(ds)
    publish(first, "before")
    assert not publish(second, "before").refused, "without a key nothing is checked"
    reopen(ds).update_field_metadata({"id": PRIMARY_KEY})
    first, second = stale(ds), stale(ds)
    publish(first, "after")
    assert publish(second, "after").refused


def race_inside_no_lock(ds: lance.LanceDataset, turn: int) -> list[str]:
    """Two appends enter a `commit_lock` that lets both in; the acknowledged ones."""
    gate, head = threading.Barrier(2), reopen(ds)
    staged = {key: stage_append(head, key) for key in (f"left-{turn}", f"right-{turn}")}
    acknowledged: list[str] = []

    @contextmanager
    def no_lock(version: int) -> Iterator[None]:
        gate.wait(30)
        yield

    def land(key: str) -> None:
        own = lance.dataset(head.uri, version=head.version)
        make = lance.LanceDataset.commit
        if not attempt(lambda: make(own, staged[key], max_retries=0, detached=False, commit_lock=no_lock)).refused:
            acknowledged.append(key)

    writers = [threading.Thread(target=land, args=(key,)) for key in staged]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    return acknowledged


def test_commit_lock_that_does_not_lock_loses_acknowledged_commits(manifest):
    """Under a lock object Lance looks whether the version exists and then writes it without a condition."""
    for turn in range(100):
        if not set(race_inside_no_lock(manifest, turn)) <= set(ids(manifest)):
            return
    pytest.fail("no acknowledged commit was lost in 100 races: a commit lock may have become harmless")


def test_version_that_landed_before_the_commit_lock_was_entered_is_seen(manifest):
    first, second = stage_append(manifest, "first"), stage_append(manifest, "second")
    # Inside a commit no Lance call may be made on the same thread: it panics.
    other = stale(manifest)

    @contextmanager
    def late_lock(version: int) -> Iterator[None]:
        rival = threading.Thread(target=commit, args=(other, second))
        rival.start()
        rival.join(30)
        yield

    outcome = attempt(
        lambda: lance.LanceDataset.commit(manifest, first, max_retries=0, detached=False, commit_lock=late_lock)
    )
    assert outcome.conflict
    assert ids(manifest) == [*PRESENT, "second"]


def test_commit_without_a_lock_object_keeps_both_of_two_racing_appends(manifest):
    first, second = stage_append(manifest, "first"), stage_append(manifest, "second")
    commit(stale(manifest), second)
    assert commit(stale(manifest), first).version == 5
    assert ids(manifest) == [*PRESENT, "first", "second"]


def test_error_inside_a_commit_lock_aborts_the_commit(manifest):
    @contextmanager
    def refusing(version: int) -> Iterator[None]:
        raise RuntimeError("not now")
        yield

    staged = stage_append(manifest, "new")
    with pytest.raises(OSError):
        lance.LanceDataset.commit(manifest, staged, max_retries=0, detached=False, commit_lock=refusing)
    assert ids(manifest) == PRESENT
