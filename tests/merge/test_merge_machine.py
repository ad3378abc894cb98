"""Random lives with branches, merges, reverts, resets, tags and deaths: always as the dictionaries say."""

from __future__ import annotations

import shutil
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from state_life import Life, Tally

LIVES, STEPS = 20, 110
DEEP_LIVES, DEEP_STEPS = 60, 300
STEPS_MIN, DEATHS_MIN = 2_000, 50


def lived(seed: int, steps: int, folder: Path, tally: Tally) -> None:
    life = Life(seed, folder, tally)
    life.run(steps)
    shutil.rmtree(life.uri)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_life_with_branches_and_merges_is_as_the_dictionaries_say(tmp_path: Path) -> None:
    tally = Tally()
    for seed in range(LIVES):
        lived(seed, STEPS, tmp_path, tally)
    print(tally)
    assert tally.steps.total() >= STEPS_MIN
    assert tally.deaths.total() >= DEATHS_MIN
    assert tally.never_met == set()
