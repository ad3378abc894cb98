"""The compare-and-swap of the manifest alone: no lock is held, the append on the head is all that protects it."""

from collections import Counter

import pytest
from publish_helpers import Answer, publish_rounds
from race_checks import assert_keys_once, assert_linear
from race_helpers import Ground

from graph_places import DISK, S3

pytestmark = pytest.mark.slow


def raced(arena, ground: Ground, rounds: int, bound_by: str) -> list[Answer]:
    results, _ = arena.run(publish_rounds, [(ground, w, rounds, bound_by) for w in range(ground.writers)])
    return [answer for of_writer in results for answer in of_writer]


def commits_after_init(ground: Ground) -> list[str]:
    return [c.graph_commit_id for c in ground.open("r").list_commits()][-2::-1]


@pytest.mark.parametrize(
    ("where", "rounds"),
    [
        (DISK, 15),
        (S3, 10),
        pytest.param(DISK, 150, marks=pytest.mark.full),
        pytest.param(S3, 50, marks=pytest.mark.full),
    ],
)
@pytest.mark.parametrize(
    ("bound_by", "refusal"), [("parent", "HeadMoved"), ("table version", "ExpectedVersionMismatch")]
)
def test_of_publishers_that_saw_one_head_exactly_one_wins_each_round(
    arena, ground: Ground, bound_by: str, refusal: str, rounds: int
):
    answers = raced(arena, ground, rounds, bound_by)
    for number in range(rounds):
        outcomes = Counter(outcome for of_round, outcome, _ in answers if of_round == number)
        assert outcomes == {"won": 1, refusal: ground.writers - 1}
    winners = [commit for _, outcome, commit in sorted(answers) if outcome == "won"]
    assert commits_after_init(ground) == winners
    assert_linear(ground)
    assert_keys_once(ground)


@pytest.mark.parametrize(("where", "rounds"), [(DISK, 15), (S3, 10), pytest.param(DISK, 40, marks=pytest.mark.full)])
def test_publishes_bound_to_nothing_all_land_once_or_say_they_did_not(arena, ground: Ground, rounds: int):
    answers = raced(arena, ground, rounds, "nothing")
    assert {outcome for _, outcome, _ in answers} <= {"won", "RowLevelCasContention"}
    winners = {commit for _, outcome, commit in answers if outcome == "won"}
    assert set(commits_after_init(ground)) == winners
    assert_linear(ground)
    assert_keys_once(ground)
