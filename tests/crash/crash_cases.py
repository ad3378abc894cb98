"""Every crash of the sweep as data: who dies where, in which life, and what must hold afterwards.

The whole product is always generated, so that a case of any day can be run again by its id; `chosen` picks the ones
for the short ring: each window of each writer, each point of recovery, and a sample that changes with the day.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from crash_world import EFFECTS, TABLES, Effect

from omnigraph.base.failpoints import WINDOWS

SAMPLE_SIZE = 12
SAMPLE_SIZE_ON_S3 = 2
RECOVERY_POINTS = (
    "recovery.pre_phase_a",
    "recovery.post_phase_a_pre_phase_b",
    "recovery.mid_phase_b",
    "recovery.post_phase_b_pre_manifest_commit",
    "recovery.post_manifest_commit_pre_phase_d",
    "recovery.post_audit",
    "recovery.post_phase_d",
)
HOWS = ("exit", "kill")
AFTER_THE_ANSWER = "the_end"


class Outcome(Enum):
    """What the next read-write open must make of it."""

    UNTOUCHED = "untouched"
    LANDED = "landed"
    ROLLED_FORWARD = "forward"
    ROLLED_BACK = "back"


@dataclass(frozen=True)
class Life:
    """A process that writes (the first) or opens the graph (any later one), until it dies."""

    die_at: str
    how: str
    skip: int = 0
    fail_at: str | None = None

    @property
    def name(self) -> str:
        nth = f"#{self.skip + 1}" if self.skip else ""
        after = f"{self.fail_at}-fails~" if self.fail_at else ""
        return f"{after}{self.die_at}{nth}-{self.how}"


@dataclass(frozen=True)
class Case:
    effect: Effect
    tables: tuple[str, ...]
    lives: tuple[Life, ...]
    outcome: Outcome

    @property
    def id(self) -> str:
        return f"{self.effect.name}-{len(self.tables)}t-{'~'.join(life.name for life in self.lives)}"


def whole_product() -> list[Case]:
    cases = [case for effect in EFFECTS.values() for tables in (TABLES[-1:], TABLES) for case in _of(effect, tables)]
    assert len({c.id for c in cases}) == len(cases)
    return cases


def _of(effect: Effect, tables: tuple[str, ...]) -> Iterator[Case]:
    landings = len(tables) * effect.steps
    for point, skip in _write_points(effect, tables, landings):
        outcome = _outcome(effect, point, skip, landings)
        for how in HOWS:
            first = Life(point, how, skip)
            yield Case(effect, tables, (first,), outcome)
    for how in HOWS:
        yield from _recovery_deaths(effect, tables, landings, how)
        yield from _undo_deaths(effect, tables, how)


def _write_points(effect: Effect, tables: tuple[str, ...], landings: int) -> Iterator[tuple[str, int]]:
    yield from (("stage.files_written", k) for k in range(len(tables)))
    for window in WINDOWS:
        times = landings if window == "mid_phase_b" else 1
        yield from ((f"{effect.writer.name}.{window}", k) for k in range(times))
    yield AFTER_THE_ANSWER, 0


def _outcome(effect: Effect, point: str, skip: int, landings: int) -> Outcome:
    window = point.rpartition(".")[2]
    if window in ("files_written", "pre_phase_a"):
        return Outcome.UNTOUCHED
    if window in ("post_manifest_commit_pre_phase_d", "post_phase_d", AFTER_THE_ANSWER):
        return Outcome.LANDED
    all_landed = window == "post_phase_b_pre_manifest_commit" or (window == "mid_phase_b" and skip == landings - 1)
    # Schema files are not staged by these writes, and a schema apply without them is never rolled forward.
    if all_landed and effect.name != "schema_apply":
        return Outcome.ROLLED_FORWARD
    return Outcome.ROLLED_BACK


def _recovery_deaths(effect: Effect, tables: tuple[str, ...], landings: int, how: str) -> Iterator[Case]:
    """The writer died so that recovery must go forward, back, or only clear up; then recovery dies too."""
    writer = effect.writer.name
    landed = Life(f"{writer}.post_manifest_commit_pre_phase_d", how)
    for point in (RECOVERY_POINTS[0], RECOVERY_POINTS[-1]):
        yield Case(effect, tables, (landed, Life(point, how)), Outcome.LANDED)
    whole = Life(f"{writer}.post_phase_b_pre_manifest_commit", how)
    outcome = _outcome(effect, whole.die_at, 0, landings)
    restored = len(tables) if outcome is Outcome.ROLLED_BACK else 0
    yield from _deaths_after(effect, tables, whole, outcome, restored, how)
    if landings > 1:
        partial = Life(f"{writer}.mid_phase_b", how)
        yield from _deaths_after(effect, tables, partial, Outcome.ROLLED_BACK, 1, how)
    armed = Life(f"{writer}.post_phase_a_pre_phase_b", how)
    yield from _deaths_after(effect, tables, armed, Outcome.ROLLED_BACK, 0, how)


def _deaths_after(
    effect: Effect, tables: tuple[str, ...], first: Life, outcome: Outcome, restored: int, how: str
) -> Iterator[Case]:
    second = [
        Life(point, how, skip)
        for point in RECOVERY_POINTS
        for skip in range(restored if point == "recovery.mid_phase_b" else 1)
    ]
    for life in second:
        yield Case(effect, tables, (first, life), outcome)
    if how == "kill":
        # Once its commit is published a recovery only clears up, and does not pass the audit point again.
        chain = [life for life in second if life.die_at != "recovery.post_audit"]
        yield Case(effect, tables, (first, *chain), outcome)


def _undo_deaths(effect: Effect, tables: tuple[str, ...], how: str) -> Iterator[Case]:
    """The publish fails and the writer dies while it takes its tables back: nobody was answered, so both ends are fair.

    Every table had landed in its slot, hence recovery goes forward.
    """
    failing = f"{effect.writer.name}.post_phase_b_pre_manifest_commit"
    outcome = _outcome(effect, failing, 0, 0)
    for skip in range(len(tables)):
        yield Case(effect, tables, (Life("recovery.mid_phase_b", how, skip, fail_at=failing),), outcome)


def seed_of_today() -> int:
    return datetime.datetime.now(datetime.UTC).date().toordinal()


def chosen(cases: list[Case], seed: int) -> set[str]:
    """The ids for the short ring: fixed ones that cover every point, and a sample drawn with `seed`."""
    return _with_sample(cases, _covering(cases, each_writer=True), seed, SAMPLE_SIZE)


def chosen_on_s3(cases: list[Case], seed: int) -> set[str]:
    """As `chosen`, and thinner: points outside the windows once, not once for each writer."""
    return _with_sample(cases, _covering(cases, each_writer=False), seed, SAMPLE_SIZE_ON_S3)


def _covering(cases: list[Case], each_writer: bool) -> set[str]:
    """The ids of cases that die once at every point; the windows of the write path have a name for each writer."""
    points: dict[tuple[str, ...], Case] = {}
    for number, case in enumerate(sorted(cases, key=lambda c: (-len(c.tables), len(c.lives), c.id))):
        last = case.lives[-1]
        if len(case.lives) == 1:
            key = (last.die_at, case.effect.writer.name if each_writer else "", str(last.fail_at is not None))
        else:
            key = (last.die_at, case.outcome.value, str(len(case.lives) > 2))
        known = points.get(key)
        # Every other one of the same write takes the place of the one before, so that both ways to die are met.
        if known is None or (number % 2 and (known.effect, known.tables) == (case.effect, case.tables)):
            points[key] = case
    return {case.id for case in points.values()}


def _with_sample(cases: list[Case], fixed: set[str], seed: int, size: int) -> set[str]:
    rest = sorted(case.id for case in cases if case.id not in fixed)
    return fixed | set(random.Random(seed).sample(rest, size))
