"""Relevance is given to exactly the rows that match, and ranks them sensibly however it was counted."""

import math
from pathlib import Path

import pyarrow as pa
import pytest
from search_tables import (
    COVERAGES,
    HISTORIES,
    TEXT,
    indexed,
    indexed_in_pieces,
    is_match,
    partly_indexed,
    stems,
    table_of,
    texts,
    unindexed,
)

from omnigraph.engine.read.search import text as text_module
from omnigraph.engine.read.search.text import bm25_scores
from omnigraph.storage.tables import Table

BODIES = [
    "fox",
    "fox fox dog",
    "the red dog",
    None,
    "",
    "foxes run far and wide in red woods",
    "cat",
    "dog dog",
    "wolf",
]


def scored(table: Table, asked: str, where: str | None = None) -> dict[int, float]:
    rows, scores = bm25_scores(table, "body", asked, where)
    assert (rows.type, scores.type, len(rows)) == (pa.uint64(), pa.float64(), len(scores))
    return dict(zip(rows.to_pylist(), scores.to_pylist(), strict=True))


def by_formula(table: Table, asked: str) -> dict[int, float]:
    """BM25 with k1 = 1.2 and b = 0.75 over all texts that have words, as the textbooks have it."""
    read = table.read(["_rowid", "body"]).to_pylist()
    documents = {row["_rowid"]: stems(row["body"]) for row in read if stems(row["body"])}
    mean = sum(map(len, documents.values())) / len(documents)
    found: dict[int, float] = {}
    for word in stems(asked):
        having = sum(word in words for words in documents.values())
        for row, words in documents.items():
            if often := words.count(word):
                rarity = math.log(1 + (len(documents) - having + 0.5) / (having + 0.5))
                weight = often * 2.2 / (often + 1.2 * (0.25 + 0.75 * len(words) / mean))
                found[row] = found.get(row, 0) + rarity * weight
    return found


@pytest.mark.parametrize("history", HISTORIES, ids=lambda history: history.__name__)
@pytest.mark.parametrize("coverage", COVERAGES, ids=lambda coverage: coverage.__name__)
def test_text_scores_are_given_to_exactly_the_rows_that_match(tmp_path: Path, coverage, history):
    fresh = texts(["blue fox", "new dog", "newer wolf", "red red red"], first=7)
    table = history(coverage(table_of(tmp_path, texts(BODIES)), TEXT), fresh)
    rows = table.read(["_rowid", "body", "kind"]).to_pylist()
    for asked in ["fox", "red dogs", "fox fox", "the", "", "zebra", "running wolf"]:
        found = scored(table, asked)
        assert set(found) == {row["_rowid"] for row in rows if is_match("search", row["body"], asked)}, asked
        assert all(score > 0 and math.isfinite(score) for score in found.values())
        kept = {row["_rowid"] for row in rows if row["kind"] != 0}
        assert set(scored(table, asked, "kind != 0")) == set(found) & kept, asked


@pytest.mark.parametrize("coverage", [unindexed, indexed, indexed_in_pieces], ids=lambda coverage: coverage.__name__)
def test_text_scores_follow_the_formula_while_an_index_covers_all_or_nothing(tmp_path: Path, coverage):
    table = coverage(table_of(tmp_path, texts(BODIES)), TEXT)
    for asked in ["fox", "red dogs", "fox fox dog"]:
        assert scored(table, asked) == pytest.approx(by_formula(table, asked), rel=1e-5), asked


@pytest.mark.parametrize("coverage", [unindexed, indexed], ids=["unindexed", "indexed"])
def test_text_scores_do_not_depend_on_which_rows_are_wanted(tmp_path: Path, coverage):
    table = coverage(table_of(tmp_path, texts(BODIES)), TEXT)
    everywhere = scored(table, "red dogs")
    assert scored(table, "red dogs", "kind = 2") == {
        row: everywhere[row] for row in scored(table, "red dogs", "kind = 2")
    }


@pytest.mark.parametrize("coverage", COVERAGES, ids=lambda coverage: coverage.__name__)
def test_text_scores_are_higher_for_more_and_rarer_words(tmp_path: Path, coverage):
    bodies = ["common rare", "common other", "common common", "common last thing said", *["filler common"] * 5]
    table = coverage(table_of(tmp_path, texts(bodies)), TEXT)
    row = dict(zip(*(table.read(["id", "_rowid"]).column(name).to_pylist() for name in ("id", "_rowid")), strict=True))
    found = scored(table, "common rare")
    assert max(found, key=found.__getitem__) == row["t0"]
    assert found[row["t2"]] > found[row["t1"]] > found[row["t3"]]


def test_text_scores_of_other_rows_than_those_that_match_are_not_taken(tmp_path: Path, monkeypatch):
    table = partly_indexed(table_of(tmp_path, texts(BODIES)), TEXT)
    answer = pa.table({"_rowid": pa.array([0], pa.uint64()), "_score": pa.array([1.0], pa.float32())})
    monkeypatch.setattr(text_module, "text_scores", lambda *_: answer)
    assert scored(table, "fox") == pytest.approx(by_formula(table, "fox"))
