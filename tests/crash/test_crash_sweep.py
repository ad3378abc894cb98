"""Whatever a process is doing when it dies, the next open finds the graph as it was before or as it is after."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any

import pytest
from crash_cases import RECOVERY_POINTS, Case, Outcome, chosen, chosen_on_s3, seed_of_today, whole_product
from crash_checks import check_recovered
from crash_children import DIED_BY, Children
from crash_scene import Template, World, order_in
from crash_world import EFFECTS, TABLES, heads, pins, seen

from graph_places import DISK, S3, Home, sidecars
from omnigraph.base.failpoints import WINDOWS
from omnigraph.commit import plan

CASES = whole_product()
SEED = seed_of_today()
SHORT = {DISK: chosen(CASES, SEED), S3: chosen_on_s3(CASES, SEED)}
pytestmark = pytest.mark.slow


def marked(where: str, case: Case) -> Any:
    # The place ends the id of a case, so that the case of a failed run is found by its beginning in either place.
    name = case.id if where == DISK else f"{case.id}-on-{where}"
    return pytest.param(where, case, id=name, marks=() if case.id in SHORT[where] else pytest.mark.full)


@pytest.mark.parametrize(("where", "case"), [marked(where, c) for where in SHORT for c in CASES])
def test_a_crash_leaves_the_graph_before_or_after_and_never_between(
    where: str,
    case: Case,
    template: Template,
    world_in: Callable[[str], World],
    count_case: Callable[[str], None],
) -> None:
    count_case(where)
    world = world_in(where)
    wreck = world.wreck(case)
    check_recovered(case, wreck, world.place, template.before, template.after(case))
    world.place.remove(wreck.home.uri)


@pytest.mark.parametrize("where", SHORT)
def test_the_short_ring_dies_in_every_window_of_every_writer_and_at_every_point_of_recovery(where: str) -> None:
    short = [c for c in CASES if c.id in SHORT[where]]
    writers = {e.writer.name for e in EFFECTS.values()}
    assert writers == {w.name for w in vars(plan).values() if isinstance(w, plan.Writer)}
    died = {life.die_at for c in short for life in c.lives}
    assert died >= {f"{writer}.{window}" for writer in writers for window in WINDOWS}
    for outcome in (Outcome.ROLLED_FORWARD, Outcome.ROLLED_BACK):
        points = {c.lives[1].die_at for c in short if c.outcome is outcome and len(c.lives) == 2}
        assert points >= set(RECOVERY_POINTS) - (
            {"recovery.mid_phase_b"} if outcome is Outcome.ROLLED_FORWARD else set()
        )


@pytest.mark.parametrize(("where", "number"), [*((DISK, n) for n in range(6)), *((S3, n) for n in range(3))])
def test_a_writer_killed_at_any_moment_loses_no_acknowledged_write(
    where: str,
    number: int,
    world_in: Callable[[str], World],
    children: Children,
    count_case: Callable[[str], None],
) -> None:
    """Not at an armed point but anywhere, also inside a compaction's two commits."""
    count_case(where)
    world = world_in(where)
    home = world.copy()
    delay_s = random.Random(SEED * 100 + number).uniform(0, 0.6)
    said = said_until_killed(children, home, delay_s)
    begun = [int(line.split()[1]) for line in said if line.startswith("begun")]
    acknowledged = [int(line.split()[1]) for line in said if line.startswith("acknowledged")]

    graph = home.open()
    numbers = {dict(row)["n"] for t in TABLES for row in seen(graph)[t].rows if ("id", "p0") in row}
    assert len(numbers) == 1, f"killed after {delay_s:.3f} s: the tables disagree: {numbers}"
    assert numbers <= {acknowledged[-1] if acknowledged else 0, begun[-1]}
    assert (sidecars(world.place, home.uri), heads(graph)) == ([], pins(graph))
    world.place.remove(home.uri)


def said_until_killed(children: Children, home: Home, delay_s: float) -> list[str]:
    """What a child that writes in a loop said, killed that long after it first began to write."""
    child = children.start({**order_in(home, "loop"), "die_at": "never", "how": "kill"})
    said = [child.out.readline()]
    alarm = threading.Timer(delay_s, child.kill)
    alarm.start()
    said += child.out.readlines()
    alarm.join()
    assert child.ended().code == DIED_BY["kill"]
    return said
