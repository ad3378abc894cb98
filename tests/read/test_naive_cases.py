"""The naive evaluator gives the rows that were worked out by hand."""

from __future__ import annotations

import pytest

from read.agree import misfit
from read.cases import Case, all_cases
from read.naive import evaluate

CASES = all_cases()
NOW_MS = 1_800_000_000_000


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_naive_evaluator_gives_the_expected_rows(case: Case) -> None:
    found = evaluate(case.query, case.scene.rows, case.params, NOW_MS)

    assert misfit(case.query, case.expected, found) is None


def test_no_two_cases_make_the_same_promise() -> None:
    assert len({str(case) for case in CASES}) == len(CASES) >= 80
