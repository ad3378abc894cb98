"""The compare-and-swap of the manifest alone: no lock is held, the append on the head is all that protects it."""

from collections import Counter

import pytest
from publish_helpers import Answer, publish_rounds
from race_checks import assert_keys_once, assert_linear
from race_helpers import WRITERS

from omnigraph import Graph

pytestmark = pytest.mark.slow
ROUNDS = [15, pytest.param(150, marks=pytest.mark.full)]


def flat(results: list[list[Answer]]) -> list[Answer]:
    return [answer for of_writer in results for answer in of_writer]


def commits_after_init(uri: str) -> list[str]:
    return [c.graph_commit_id for c in Graph.open(uri, "r").list_commits()][-2::-1]


@pytest.mark.parametrize("rounds", ROUNDS)
@pytest.mark.parametrize(
    ("bound_by", "refusal"), [("parent", "HeadMoved"), ("table version", "ExpectedVersionMismatch")]
)
def test_of_publishers_that_saw_one_head_exactly_one_wins_each_round(
    arena, graph_uri: str, bound_by: str, refusal: str, rounds: int
):
    results, _ = arena.run(publish_rounds, [(graph_uri, w, rounds, bound_by) for w in range(WRITERS)])
    answers = flat(results)
    for number in range(rounds):
        outcomes = Counter(outcome for of_round, outcome, _ in answers if of_round == number)
        assert outcomes == {"won": 1, refusal: WRITERS - 1}
    winners = [commit for _, outcome, commit in sorted(answers) if outcome == "won"]
    assert commits_after_init(graph_uri) == winners
    assert_linear(graph_uri)
    assert_keys_once(graph_uri)


@pytest.mark.parametrize("rounds", [15, pytest.param(40, marks=pytest.mark.full)])
def test_publishes_bound_to_nothing_all_land_once_or_say_they_did_not(arena, graph_uri: str, rounds: int):
    results, _ = arena.run(publish_rounds, [(graph_uri, w, rounds, "nothing") for w in range(WRITERS)])
    outcomes = Counter(outcome for _, outcome, _ in flat(results))
    assert set(outcomes) <= {"won", "RowLevelCasContention"}
    winners = {commit for _, outcome, commit in flat(results) if outcome == "won"}
    assert set(commits_after_init(graph_uri)) == winners
    assert_linear(graph_uri)
    assert_keys_once(graph_uri)
