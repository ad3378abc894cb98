"""Random lives with branches, merges, reverts, resets, tags, deletions and deaths: always as the dictionaries say.

A failing life tells its seed and its steps. To have it again: `lived(SEED, STEPS, folder, Tally())`.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from state_life import Life, Tally

LIVES, STEPS = 21, 96
DEEP_LIVES, DEEP_STEPS = 60, 250
STEPS_MIN, DEATHS_MIN = 2_000, 50


def lived(seed: int, steps: int, folder: Path, tally: Tally) -> None:
    life = Life(seed, folder, tally)
    life.run(steps)
    shutil.rmtree(life.uri)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_life_with_branches_and_merges_is_as_the_dictionaries_say(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tally = Tally()
    for seed in range(LIVES):
        lived(seed, STEPS, tmp_path, tally)
    with capsys.disabled():
        print(f"\n{tally}")
    assert tally.steps.total() >= STEPS_MIN
    assert tally.deaths.total() >= DEATHS_MIN
    assert tally.never_met == set()
    assert {"merged", "fast_forward", "already_up_to_date", "MergeConflicts"} <= tally.outcomes.keys()


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_every_longer_life_with_branches_and_merges_is_as_the_dictionaries_say(tmp_path: Path) -> None:
    """Other lives in each run."""

    @given(seed=st.integers(LIVES, 2**32))
    @settings(
        max_examples=DEEP_LIVES,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        # A smaller number is not a shorter life.
        phases=[Phase.generate],
    )
    def live(seed: int) -> None:
        lived(seed, DEEP_STEPS, tmp_path, Tally())

    live()
