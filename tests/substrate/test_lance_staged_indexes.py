"""Indexes that are built beside the table and published by one commit.

1. Building moves nothing; one CreateIndex commit publishes one or several indexes, drops, or replaces.
2. A raw full-text segment is unreadable until it was merged.
3. Rows written after the build are found all the same.
4. Compaction on a branch breaks an inherited BTREE, unless the branch re-created it first.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance.dataset import Index
from lance_helpers import (
    OP,
    branch,
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
    stage_index,
    stage_text_index,
    stage_upsert,
    transaction,
)

Act = Callable[[lance.LanceDataset], object]
PRESENT = ["a0", "a1", "a2", "b0", "b1", "b2"]
DOCUMENTS = {"d0": "red fox", "d1": "blue fox", "d2": "red dog", "d3": "grey cat"}
BROKEN = (OSError, ValueError, pa.ArrowInvalid)


@pytest.fixture
def table(tmp_path: Path) -> lance.LanceDataset:
    return create(tmp_path / "table.lance")


def documents(texts: dict[str, str]) -> pa.Table:
    vectors = [[float(len(text)), float(i), 1.0, 0.0] for i, text in enumerate(texts.values())]
    return pa.table(
        {"id": list(texts), "body": list(texts.values()), "vec": pa.array(vectors, pa.list_(pa.float32(), 4))}
    )


@pytest.fixture
def texts(tmp_path: Path) -> lance.LanceDataset:
    """Four documents in two fragments."""
    return lance.write_dataset(
        documents(DOCUMENTS), str(tmp_path / "texts.lance"), enable_stable_row_ids=True, max_rows_per_file=2
    )


def build(ds: lance.LanceDataset, column: str, kind: str, **options: Any) -> Any:
    covered = [f.fragment_id for f in ds.get_fragments()]
    return ds.create_index_uncommitted(column, kind, name=f"{column}_idx", fragment_ids=covered, **options)


def publish(ds: lance.LanceDataset, *segments: Any, drop: tuple[Any, ...] = ()) -> lance.LanceDataset:
    return commit(ds, transaction(ds, OP.CreateIndex(list(segments), list(drop))))


def search(ds: lance.LanceDataset, words: str) -> list[str]:
    found = reopen(ds).to_table(columns=["id", "_score"], full_text_query={"columns": ["body"], "query": words})
    return sorted(found["id"].to_pylist())


def test_building_an_index_moves_nothing_until_it_is_published(table):
    staged = stage_index(table, "id", "id_idx")
    assert (reopen(table).version, index_names(table)) == (3, [])
    landed = commit(table, staged)
    assert (landed.version, index_names(table)) == (4, ["id_idx"])
    assert "ScalarIndexQuery" in landed.scanner(filter="id = 'a1'").explain_plan(True)
    assert found_by(table, "id = 'a1'", indexed=True) == ["a1"]


def test_several_indexes_of_all_kinds_become_visible_in_one_commit(texts):
    vector = build(texts, "vec", "IVF_FLAT", metric="cosine", num_partitions=1)
    landed = publish(texts, build(texts, "id", "BTREE"), stage_text_index(texts, "body", "body_idx"), vector)
    assert landed.version == texts.version + 1
    assert index_names(landed) == ["body_idx", "id_idx", "vec_idx"]
    assert found_by(landed, "id = 'd2'", indexed=True) == ["d2"]
    assert search(landed, "fox") == ["d0", "d1"]
    nearest = {"column": "vec", "q": [7.0, 0.0, 1.0, 0.0], "k": 2}
    assert "ANN" in landed.scanner(nearest=nearest).explain_plan(True)
    assert landed.to_table(columns=["id", "_distance"], nearest=nearest)["id"].to_pylist()[0] == "d0"


def test_raw_full_text_segment_is_published_and_unreadable(texts):
    landed = publish(texts, build(texts, "body", "INVERTED"))
    assert index_names(landed) == ["body_idx"]
    with pytest.raises(BROKEN):
        search(landed, "fox")


def test_merged_full_text_segment_is_readable_also_on_a_branch(texts):
    texts.create_branch("b")
    for place in (texts, branch(texts, "b")):
        landed = publish(place, stage_text_index(place, "body", "body_idx"))
        assert search(landed, "fox") == ["d0", "d1"]


def current(ds: lance.LanceDataset, name: str) -> list[Index]:
    """The published segments of an index, in the form a CreateIndex takes them to drop: only the uuid counts."""
    segments = next(i.segments for i in reopen(ds).describe_indices() if i.name == name)
    return [
        Index(uuid=s.uuid, name=name, fields=[0], dataset_version=0, fragment_ids=set(), index_version=0)
        for s in segments
    ]


@pytest.mark.parametrize("kind", ["BTREE", "INVERTED"])
def test_index_is_replaced_and_dropped_by_naming_the_uuids_of_its_segments(texts, kind: str):
    column = {"BTREE": "id", "INVERTED": "body"}[kind]

    def build_again(ds: lance.LanceDataset) -> Any:
        segment = build(ds, column, kind, replace=True)
        return ds.merge_existing_index_segments([segment]) if kind == "INVERTED" else segment

    landed = publish(texts, build_again(texts))
    lance.write_dataset(documents({"d4": "red fox again"}), texts.uri, mode="append")
    head = reopen(texts)
    replaced = publish(head, build_again(head), drop=tuple(current(head, f"{column}_idx")))
    assert replaced.version == landed.version + 2
    assert [len(i.segments) for i in replaced.describe_indices()] == [1]
    assert replaced.stats.index_stats(f"{column}_idx")["num_unindexed_rows"] == 0
    assert search(replaced, "fox") == ["d0", "d1", "d4"]
    dropped = publish(replaced, drop=tuple(current(replaced, f"{column}_idx")))
    assert index_names(dropped) == []


def test_building_a_name_that_exists_must_be_asked_for(table):
    commit(table, stage_index(table))
    with pytest.raises(RuntimeError, match="already exists"):
        stage_index(reopen(table))
    assert build(reopen(table), "n", "BTREE", replace=True).name == "n_idx"


def test_btree_published_twice_without_dropping_the_first_counts_rows_twice(table):
    """The segments overlap; answers stay right, and nothing but the count tells."""
    landed = publish(table, build(table, "n", "BTREE"))
    doubled = publish(landed, build(landed, "n", "BTREE", replace=True))
    [index] = doubled.describe_indices()
    assert (len(index.segments), index.num_rows_indexed) == (2, 12)
    assert found_by(doubled, "n = 0", indexed=True) == PRESENT


def test_full_text_index_published_twice_without_dropping_the_first_panics(texts):
    """The panic is no Exception: `except Exception` does not see it. Nothing lands."""
    landed = publish(texts, stage_text_index(texts, "body", "body_idx"))
    again = landed.merge_existing_index_segments([build(landed, "body", "INVERTED", replace=True)])
    with pytest.raises(BaseException, match="not implemented") as panic:
        publish(landed, again)
    assert not isinstance(panic.value, Exception)
    assert reopen(texts).version == landed.version
    assert search(texts, "fox") == ["d0", "d1"]


def test_rows_written_after_the_build_are_found_by_filter_and_by_text(texts):
    published = publish(texts, build(texts, "id", "BTREE"), stage_text_index(texts, "body", "body_idx"))
    lance.write_dataset(documents({"d4": "red fox again"}), texts.uri, mode="append")
    assert found_by(published, "id = 'd4'", indexed=True) == ["d4"]
    assert search(published, "fox") == ["d0", "d1", "d4"]
    assert reopen(texts).stats.index_stats("id_idx")["num_unindexed_rows"] == 1
    reopen(texts).optimize.optimize_indices()
    assert reopen(texts).stats.index_stats("id_idx")["num_unindexed_rows"] == 0
    assert search(published, "fox") == ["d0", "d1", "d4"]


def test_index_staged_before_an_append_lands_after_it_and_misses_no_row(table):
    staged = stage_index(table, "id", "id_idx")
    commit(table, stage_append(table, "new"))
    commit(table, staged)
    assert found_by(table, "id = 'new'", indexed=True) == ["new"]


def test_index_staged_before_an_upsert_lands_after_it_and_finds_only_new_values(table):
    staged = stage_index(table, "n", "n_idx")
    commit(table, stage_upsert(table, "a1", n=9))
    commit(table, staged)
    assert found_by(table, "n = 9", indexed=True) == ["a1"]
    assert found_by(table, "n = 0", indexed=True) == ["a0", "a2", "b0", "b1", "b2"]


def test_index_of_an_empty_table_covers_nothing_and_takes_rows_at_the_next_upkeep(tmp_path):
    ds = lance.write_dataset(rows("x").slice(0, 0), str(tmp_path / "empty.lance"), enable_stable_row_ids=True)
    assert fragment_ids(ds) == []
    landed = publish(ds, build(ds, "id", "BTREE"))
    commit(landed, stage_append(landed, "new"))
    assert found_by(ds, "id = 'new'", indexed=True) == ["new"]
    assert reopen(ds).stats.index_stats("id_idx")["num_indexed_rows"] == 0
    reopen(ds).optimize.optimize_indices()
    assert reopen(ds).stats.index_stats("id_idx")["num_indexed_rows"] == 1
    assert found_by(ds, "id = 'new'", indexed=True) == ["new"]


@pytest.fixture
def fork(table) -> lance.LanceDataset:
    """A branch whose BTREE on `id` is main's, with rows of its own to compact."""
    commit(table, stage_index(table, "id", "id_idx"))
    reopen(table).create_branch("b")
    forked = branch(table, "b")
    return commit(forked, stage_append(forked, "new"))


def test_compaction_on_a_branch_breaks_the_btree_it_inherited(fork):
    compact(fork)
    with pytest.raises(BROKEN, match="Not found"):
        found_by(fork, "id = 'a1'", indexed=True)
    with pytest.raises(BROKEN):
        reopen(fork).merge_insert("id").when_matched_update_all().execute(rows("a1", n=9))
    assert found_by(fork, "id = 'a1'", indexed=False) == ["a1"]
    assert ids(fork) == [*PRESENT, "new"]


def test_inherited_btree_broken_by_compaction_is_healed_by_building_it_again(fork):
    compact(fork)
    reopen(fork).create_scalar_index("id", "BTREE", name="id_idx", replace=True)
    assert found_by(fork, "id = 'a1'", indexed=True) == ["a1"]


def rebuild(ds: lance.LanceDataset) -> None:
    reopen(ds).create_scalar_index("id", "BTREE", name="id_idx", replace=True)


def rebuild_staged(ds: lance.LanceDataset) -> None:
    head = reopen(ds)
    publish(head, build(head, "id", "BTREE", replace=True), drop=tuple(current(head, "id_idx")))


def optimize(ds: lance.LanceDataset) -> None:
    reopen(ds).optimize.optimize_indices()


@pytest.mark.parametrize("prepare", [rebuild, rebuild_staged, optimize], ids=["rebuilt", "rebuilt-staged", "optimized"])
def test_compaction_on_a_branch_keeps_a_btree_the_branch_made_its_own(fork, prepare: Act):
    prepare(fork)
    compact(fork)
    for key in ("a1", "new"):
        assert found_by(fork, f"id = '{key}'", indexed=True) == [key]
    assert index_names(fork) == ["id_idx"]


def test_compaction_on_a_branch_keeps_an_inherited_full_text_index(texts):
    publish(texts, stage_text_index(texts, "body", "body_idx"))
    reopen(texts).create_branch("b")
    forked = branch(texts, "b")
    lance.write_dataset(documents({"d4": "red fox again"}), forked.uri, mode="append")
    compact(forked)
    assert len(fragment_ids(forked)) < 3
    assert search(forked, "fox") == ["d0", "d1", "d4"]


def test_main_keeps_a_readable_index_whatever_its_branch_compacted(table, fork):
    compact(fork)
    assert found_by(table, "id = 'a1'", indexed=True) == ["a1"]
    compact(table)
    assert found_by(table, "id = 'a1'", indexed=True) == ["a1"]
