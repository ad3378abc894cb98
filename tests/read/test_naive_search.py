"""The naive evaluator ranks as the spec says."""

from __future__ import annotations

import pytest

from omnigraph.plan.check import compile_query
from omnigraph.plan.typed import ReadQuery
from read.agree import misfit
from read.case_search import CASES, DOCS
from read.cases import Case
from read.naive import evaluate
from read.naive_parts import distance
from read.naive_tokens import INDEX_WORDS


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_naive_evaluator_finds_the_expected_rows(case: Case) -> None:
    found = evaluate(case.query, case.scene.rows, case.params, 0, INDEX_WORDS)

    assert misfit(case.query, case.expected, found) is None


def test_bm25_is_null_for_a_row_that_does_not_match() -> None:
    query = compile_query(DOCS.catalog, 'query q() { match { $d: Doc } return { $d, bm25($d.title, "fox") as s } }')
    assert isinstance(query, ReadQuery)

    scores = {row["d"]: row["s"] for row in evaluate(query, DOCS.rows, search=INDEX_WORDS)}

    assert {name for name, score in scores.items() if score is None} == {"d3", "d4", "d6"}
    assert scores["d5"] > scores["d1"] == pytest.approx(scores["d2"])


@pytest.mark.parametrize(
    ("one", "other", "edits"),
    [("", "", 0), ("", "ab", 2), ("fox", "fix", 1), ("ab", "ba", 2), ("kitten", "sitting", 3)],
)
def test_edits_are_insertions_deletions_and_substitutions(one: str, other: str, edits: int) -> None:
    assert distance(one, other) == distance(other, one) == edits
