"""Which of two commits staged at one version lands: the table that error translation and retries stand on.

The second commit is tried once, with no retries. A primary key changes nothing here: staged writes do not check it.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance.optimize import Compaction
from lance_helpers import (
    MANIFEST_SCHEMA,
    OP,
    PLAIN_SCHEMA,
    Outcome,
    attempt,
    commit,
    create,
    ids,
    plan_compaction,
    reopen,
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
    try_commit,
)

Stage = Callable[[lance.LanceDataset, pa.Schema], Any]


def stage_column(ds: lance.LanceDataset, _: pa.Schema) -> lance.Transaction:
    merged = [fragment.merge_columns({"extra": "n * 2"}) for fragment in ds.get_fragments()]
    return transaction(ds, OP.Merge([fragment for fragment, _ in merged], merged[0][1]))


def stage_config(ds: lance.LanceDataset, key: str) -> lance.Transaction:
    return transaction(ds, OP.UpdateConfig(config_updates=OP.UpdateMap({key: "v"})))


STAGES: dict[str, Stage] = {
    "append": lambda ds, schema: stage_append(ds, "x", schema=schema),
    "append new": lambda ds, schema: stage_append(ds, "new", schema=schema),
    "insert new": lambda ds, schema: stage_insert(ds, "new", schema=schema),
    "upsert new": lambda ds, schema: stage_upsert(ds, "new", schema=schema),
    "merge a0": lambda ds, schema: stage_upsert(ds, "a0", schema=schema),
    "merge b0": lambda ds, schema: stage_upsert(ds, "b0", schema=schema),
    "merge a1": lambda ds, schema: stage_upsert(ds, "a1", schema=schema),
    "rewrite a0": lambda ds, schema: stage_row_rewrite(ds, {"a0": 7}, schema=schema),
    "rewrite a1": lambda ds, schema: stage_row_rewrite(ds, {"a1": 7}, schema=schema),
    "delete a0": lambda ds, _: stage_delete(ds, "id = 'a0'"),
    "delete b0": lambda ds, _: stage_delete(ds, "id = 'b0'"),
    "delete a1": lambda ds, _: stage_delete(ds, "id = 'a1'"),
    "index": lambda ds, _: stage_index(ds),
    "restore": lambda ds, _: stage_restore(ds),
    "overwrite": lambda ds, schema: stage_overwrite(ds, "z", schema=schema),
    "metadata k": lambda ds, _: stage_table_metadata(ds, "k"),
    "config k": lambda ds, _: stage_config(ds, "k"),
    "config j": lambda ds, _: stage_config(ds, "j"),
    "column": stage_column,
    "compaction": lambda ds, _: plan_compaction(ds),
}
LANDS = [
    ("append", "append"),
    ("append", "delete a0"),
    ("delete a0", "append"),
    ("append", "index"),
    ("merge a0", "index"),
    ("rewrite a0", "index"),
    ("compaction", "append"),
    ("append", "compaction"),
    ("metadata k", "append"),
    ("merge a0", "merge a1"),
    ("rewrite a0", "rewrite a1"),
    ("delete a0", "delete a1"),
    ("append", "restore"),
    ("metadata k", "config k"),
    ("config k", "config j"),
]
DOUBLES = [
    ("insert new", "insert new"),
    ("upsert new", "upsert new"),
    ("append new", "insert new"),
    ("insert new", "append new"),
]
REFUSED_RETRYABLE = [
    ("merge a0", "merge a0"),
    ("merge a0", "merge b0"),
    ("rewrite a0", "merge b0"),
    ("delete a0", "delete a0"),
    ("delete a0", "delete b0"),
    ("delete a0", "merge a0"),
    ("merge a0", "delete a0"),
    ("append", "overwrite"),
    ("overwrite", "overwrite"),
    ("compaction", "index"),
    ("compaction", "merge a0"),
    ("compaction", "rewrite a0"),
    ("compaction", "delete a0"),
    ("index", "index"),
    ("column", "append"),
    ("append", "column"),
    ("column", "merge a0"),
]
REFUSED_FOR_GOOD = [
    ("restore", "append"),
    ("overwrite", "append"),
    ("metadata k", "metadata k"),
    ("config k", "config k"),
]
REFUSED_PLAINLY = [
    ("index", "compaction"),
    ("merge a0", "compaction"),
    ("rewrite a0", "compaction"),
    ("delete a0", "compaction"),
]


def pairs(table: list[tuple[str, str]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("first", "second"), table, ids=[f"{a} then {b}" for a, b in table])


@pytest.fixture(params=[PLAIN_SCHEMA, MANIFEST_SCHEMA], ids=["no-key", "primary-key"])
def schema(request) -> pa.Schema:
    return request.param


@pytest.fixture
def table(tmp_path: Path, schema: pa.Schema) -> lance.LanceDataset:
    return create(tmp_path / "table.lance", schema=schema)


def try_land(ds: lance.LanceDataset, version: int, staged: Any) -> Outcome:
    """From a handle of its own: a compaction moves the one it is given."""
    own = lance.dataset(ds.uri, version=version)
    if isinstance(staged, list):
        return attempt(lambda: Compaction.commit(own, staged))
    return try_commit(own, staged)


def second_of(ds: lance.LanceDataset, schema: pa.Schema, first: str, second: str) -> Outcome:
    """The outcome of the second commit, both staged at the same version."""
    one, two = STAGES[first](ds, schema), STAGES[second](ds, schema)
    assert not try_land(ds, ds.version, one).refused
    return try_land(ds, ds.version, two)


def test_compaction_moves_the_handle_it_is_given_and_a_staged_commit_does_not(table, schema):
    Compaction.commit(table, plan_compaction(table))
    assert table.version == 5
    commit(table, stage_append(table, "x", schema=schema))
    assert table.version == 5


@pairs(LANDS)
def test_second_commit_is_rebased_and_lands(table, schema, first: str, second: str):
    assert not second_of(table, schema, first, second).refused
    assert reopen(table).version >= table.version + 2


@pairs(DOUBLES)
def test_second_commit_lands_and_doubles_the_key(table, schema, first: str, second: str):
    assert not second_of(table, schema, first, second).refused
    assert ids(table).count("new") == 2


@pairs(REFUSED_RETRYABLE)
def test_second_commit_is_a_retryable_conflict(table, schema, first: str, second: str):
    outcome = second_of(table, schema, first, second)
    assert outcome.conflict
    assert outcome.retryable is True


@pairs(REFUSED_FOR_GOOD)
def test_second_commit_is_a_conflict_that_no_retry_helps(table, schema, first: str, second: str):
    outcome = second_of(table, schema, first, second)
    assert outcome.conflict
    assert outcome.retryable is False


@pairs(REFUSED_PLAINLY)
def test_late_compaction_is_refused_by_a_plain_error(table, schema, first: str, second: str):
    outcome = second_of(table, schema, first, second)
    assert not outcome.conflict
    assert "Retryable commit conflict" in str(outcome.error)


def test_append_over_which_a_restore_landed_is_undone(table, schema):
    second_of(table, schema, "append", "restore")
    assert "x" not in ids(table)


def test_commit_without_retries_is_still_rebased_over_compatible_commits(table, schema):
    """So `max_retries=0` is no compare-and-swap on the head: the landed version must be checked."""
    staged = stage_append(table, "late", schema=schema)
    for i in range(3):
        commit(reopen(table), stage_append(reopen(table), f"first-{i}", schema=schema))
    assert commit(table, staged).version == table.version + 4


def test_direct_delete_from_a_stale_handle_over_an_overwrite_is_refused_by_a_plain_error(table, schema):
    stale = lance.dataset(table.uri, version=table.version)
    commit(table, stage_overwrite(table, "z", schema=schema))
    outcome = attempt(lambda: stale.delete("id = 'a0'"))
    assert outcome.refused
    assert not outcome.conflict
    assert ids(table) == ["z"]
