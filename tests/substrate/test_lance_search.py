"""Text and vector search: what a query must say, and that replaced rows are not found by their old values.

1. Searches post-filter unless told to pre-filter.
2. A row rewritten by our Update is found by its new text and vector only, before and after index upkeep,
   provided the Update names every field as changed.
3. Without an index text is not stemmed, and index coverage changes scores but not matches.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance.fragment import write_fragments
from lance_helpers import (
    OP,
    branch,
    carry_row_ids,
    commit,
    compact,
    field_ids,
    reopen,
    row_rewrite,
    stage_text_index,
    thin_fragments,
    transaction,
)

Act = Callable[[lance.LanceDataset], object]
BODIES = ["red fox", "blue fox", "red dog", "grey cat", "blue cat", "red ant", "old owl", "new owl"]
AXES = 8
SCHEMA = pa.schema(
    [("id", pa.string()), ("body", pa.string()), ("kind", pa.string()), ("vec", pa.list_(pa.float32(), AXES))]
)


def axis(i: int) -> list[float]:
    return [1.0 if j == i else 0.01 for j in range(AXES)]


def documents(first: int, bodies: list[str], axes: list[int]) -> pa.Table:
    return pa.table(
        {
            "id": [f"d{first + i}" for i in range(len(bodies))],
            "body": bodies,
            "kind": ["odd" if (first + i) % 2 else "even" for i in range(len(bodies))],
            "vec": [axis(a) for a in axes],
        },
        schema=SCHEMA,
    )


@pytest.fixture
def bare(tmp_path: Path) -> lance.LanceDataset:
    """Document d_i has its own axis as vector; four fragments of two rows, no index."""
    table = documents(0, BODIES, list(range(len(BODIES))))
    return lance.write_dataset(table, str(tmp_path / "t.lance"), enable_stable_row_ids=True, max_rows_per_file=2)


@pytest.fixture
def texts(bare) -> lance.LanceDataset:
    return publish_indexes(bare)


def publish_indexes(ds: lance.LanceDataset) -> lance.LanceDataset:
    covered = [f.fragment_id for f in ds.get_fragments()]
    vector = ds.create_index_uncommitted(
        "vec", "IVF_FLAT", name="vec_idx", fragment_ids=covered, metric="cosine", num_partitions=2
    )
    return commit(ds, transaction(ds, OP.CreateIndex([stage_text_index(ds, "body", "body_idx"), vector], [])))


def search(ds: lance.LanceDataset, words: str, **options: Any) -> list[str]:
    query = {"columns": ["body"], "query": words}
    found = reopen(ds).to_table(columns=["id", "_score"], full_text_query=query, **options)
    return sorted(found["id"].to_pylist())


def nearest(ds: lance.LanceDataset, i: int, k: int = 1, **options: Any) -> list[str]:
    query = {"column": "vec", "q": axis(i), "k": k, "nprobes": 2}
    return reopen(ds).to_table(columns=["id", "_distance"], nearest=query, **options)["id"].to_pylist()


def rewrite_first(ds: lance.LanceDataset, *more: str, naming_fields: bool = True) -> lance.LanceDataset:
    """d0 becomes "green bird" on axis 5 and keeps its row id; `more` bodies are inserted as d8, d9, ..."""
    [row] = ds.to_table(columns=["_rowid", "_rowaddr"], filter="id = 'd0'").to_pylist()
    emptied, thinned = thin_fragments(ds, [row["_rowaddr"]])
    new_rows = pa.concat_tables([documents(0, ["green bird"], [5]), documents(8, list(more), [6] * len(more))])
    fresh = list(write_fragments(new_rows, ds, mode="append"))
    carry_row_ids(fresh, [row["_rowid"]])
    operation = row_rewrite(ds, emptied, thinned, fresh)
    if not naming_fields:
        operation.fields_for_preserving_frag_bitmap = []
    return commit(ds, transaction(ds, operation))


def distance(ds: lance.LanceDataset, key: str, i: int) -> float:
    """How far the search places a row from an axis."""
    query = {"column": "vec", "q": axis(i), "k": 20, "nprobes": 2}
    found = reopen(ds).to_table(columns=["id", "_distance"], nearest=query).to_pylist()
    return {row["id"]: row["_distance"] for row in found}[key]


def optimize(ds: lance.LanceDataset) -> None:
    reopen(ds).optimize.optimize_indices()


@pytest.mark.parametrize(
    "upkeep",
    [
        pytest.param([], id="as-landed"),
        pytest.param([optimize], id="optimized"),
        pytest.param([compact], id="compacted"),
        pytest.param([optimize, compact], id="optimized-then-compacted"),
        pytest.param([compact, optimize], id="compacted-then-optimized"),
    ],
)
def test_rewritten_row_is_found_by_its_new_text_and_vector_only(texts, upkeep: list[Act]):
    rewrite_first(texts, "brown bird")
    for act in upkeep:
        act(texts)
    assert search(texts, "fox") == ["d1"]
    assert search(texts, "bird") == ["d0", "d8"]
    assert sorted(nearest(texts, 5, k=2)) == ["d0", "d5"]
    assert sorted(nearest(texts, 6, k=2)) == ["d6", "d8"]
    assert distance(texts, "d0", 0) > 0.5


def test_rewritten_row_on_a_branch_is_found_anew_there_and_as_before_on_main(texts):
    texts.create_branch("b")
    forked = branch(texts, "b")
    rewrite_first(forked)
    assert (search(forked, "fox"), search(forked, "bird")) == (["d1"], ["d0"])
    assert (search(texts, "fox"), search(texts, "bird")) == (["d0", "d1"], [])


@pytest.mark.parametrize("upkeep", [[], [optimize], [compact]], ids=["as-landed", "optimized", "compacted"])
@pytest.mark.parametrize("more", [[], ["brown bird"]], ids=["updates-only", "with-an-insert"])
def test_rewrite_that_names_no_fields_leaves_text_and_vector_search_in_the_past(
    texts, more: list[str], upkeep: list[Act]
):
    """Both indexes then claim the new fragment, inserted rows included, and no upkeep heals it."""
    fresh = rewrite_first(texts, *more, naming_fields=False).get_fragments()[-1].fragment_id
    covered = [segment.fragment_ids for index in reopen(texts).describe_indices() for segment in index.segments]
    assert [fresh in fragments for fragments in covered] == [True, True]
    for act in upkeep:
        act(texts)
    assert search(texts, "fox") == ["d0", "d1"]
    assert search(texts, "bird") == []
    assert distance(texts, "d0", 5) > 0.5
    reopen(texts).create_scalar_index("body", "INVERTED", name="body_idx", replace=True)
    assert search(texts, "fox") == ["d1"], "only a rebuilt index tells the truth"


def test_fields_named_by_a_merge_insert_are_all_fields_with_those_nested_in_them(tmp_path):
    nested = {"id": ["a"], "tags": [["x"]], "place": [{"x": 1, "y": 2}]}
    ds = lance.write_dataset(pa.table(nested), str(tmp_path / "nested.lance"), enable_stable_row_ids=True)
    builder = ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    named = builder.execute_uncommitted(pa.table(nested))[0].operation.fields_for_preserving_frag_bitmap
    assert sorted(named) == sorted(field_ids(ds.lance_schema.fields())) == [0, 1, 2, 3, 4, 5]


def test_deleted_row_is_found_neither_by_text_nor_by_vector(texts):
    [row] = texts.to_table(columns=["_rowaddr"], filter="id = 'd0'").to_pylist()
    emptied, thinned = thin_fragments(texts, [row["_rowaddr"]])
    commit(texts, transaction(texts, row_rewrite(texts, emptied, thinned, [])))
    assert search(texts, "fox") == ["d1"]
    assert "d0" not in nearest(texts, 0, k=8)


def test_vector_search_filters_afterwards_unless_told_to_filter_first(texts):
    assert nearest(texts, 0, filter="kind = 'odd'") == []
    assert len(nearest(texts, 0, k=4, filter="kind = 'odd'", prefilter=True)) == 4


def test_text_search_filters_afterwards_unless_told_to_filter_first(texts):
    limited = {"filter": "id = 'd5'", "limit": 1}
    assert search(texts, "red", **limited, prefilter=True) == ["d5"]
    assert search(texts, "red", **limited, prefilter=False) == []


def test_unindexed_rows_are_searched_unless_a_fast_search_is_asked_for(texts):
    lance.write_dataset(documents(8, ["silver fox"], [0]), texts.uri, mode="append")
    assert search(texts, "fox") == ["d0", "d1", "d8"]
    assert search(texts, "fox", fast_search=True) == ["d0", "d1"]
    assert sorted(nearest(texts, 0, k=2)) == ["d0", "d8"]


def test_text_is_stemmed_with_an_index_and_not_without(bare):
    lance.write_dataset(documents(8, ["many foxes"], [0]), bare.uri, mode="append")
    assert search(bare, "fox") == ["d0", "d1"]
    indexed = publish_indexes(reopen(bare))
    assert search(indexed, "fox") == ["d0", "d1", "d8"]


def test_text_search_without_an_index_must_name_its_column(bare):
    with pytest.raises((OSError, ValueError)):
        bare.to_table(full_text_query="fox")


def test_partly_covered_text_index_matches_the_same_rows_with_other_scores(texts):
    more = documents(8, ["silver fox fox", "fox", "lone wolf"], [0, 1, 2])
    lance.write_dataset(more, texts.uri, mode="append")
    query = {"columns": ["body"], "query": "fox"}

    def scores() -> dict[str, float]:
        found = reopen(texts).to_table(columns=["id", "_score"], full_text_query=query).to_pylist()
        return {row["id"]: round(row["_score"], 4) for row in found}

    partly = scores()
    optimize(texts)
    fully = scores()
    assert set(partly) == set(fully) == {"d0", "d1", "d8", "d9"}
    assert partly != fully
