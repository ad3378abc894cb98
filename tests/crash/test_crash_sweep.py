"""Whatever a process is doing when it dies, the next open finds the graph as it was before or as it is after."""

from __future__ import annotations

import json
import random
import shutil
import threading
from typing import Any

import pytest
from crash_cases import RECOVERY_POINTS, Case, Outcome, chosen, seed_of_today, whole_product
from crash_checks import check_recovered
from crash_children import Children
from crash_scene import World
from crash_world import EFFECTS, TABLES, heads, pending_files, pins, seen

from omnigraph.base.failpoints import WINDOWS
from omnigraph.commit import plan
from omnigraph.graph import Graph

CASES = whole_product()
SEED = seed_of_today()
SHORT = chosen(CASES, SEED)
pytestmark = pytest.mark.slow


def marked(case: Case) -> Any:
    return pytest.param(case, id=case.id, marks=() if case.id in SHORT else pytest.mark.full)


@pytest.mark.parametrize("case", [marked(c) for c in CASES])
def test_a_crash_leaves_the_graph_before_or_after_and_never_between(case: Case, world: World, count_case: None) -> None:
    wreck = world.wreck(case)
    check_recovered(case, wreck, world.before, world.after(case))
    shutil.rmtree(wreck.path)


def test_the_short_ring_dies_in_every_window_of_every_writer_and_at_every_point_of_recovery() -> None:
    short = [c for c in CASES if c.id in SHORT]
    writers = {e.writer.name for e in EFFECTS.values()}
    assert writers == {w.name for w in vars(plan).values() if isinstance(w, plan.Writer)}
    died = {life.die_at for c in short for life in c.lives}
    assert died >= {f"{writer}.{window}" for writer in writers for window in WINDOWS}
    for outcome in (Outcome.ROLLED_FORWARD, Outcome.ROLLED_BACK):
        points = {c.lives[1].die_at for c in short if c.outcome is outcome and len(c.lives) == 2}
        assert points >= set(RECOVERY_POINTS) - (
            {"recovery.mid_phase_b"} if outcome is Outcome.ROLLED_FORWARD else set()
        )


@pytest.mark.parametrize("number", range(6))
def test_a_writer_killed_at_any_moment_loses_no_acknowledged_write(
    number: int, world: World, children: Children, count_case: None
) -> None:
    """Not at an armed point but anywhere, also inside a compaction's two commits."""
    path, child = world.copy(), children.start()
    order = {"does": "loop", "path": path, "die_at": "never", "how": "kill"}
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(json.dumps(order) + "\n")
    child.stdin.flush()
    said = [child.stdout.readline()]
    delay_s = random.Random(SEED * 100 + number).uniform(0, 0.6)
    alarm = threading.Timer(delay_s, child.kill)
    alarm.start()
    said += child.stdout.readlines()
    alarm.join()
    child.communicate()
    begun = [int(line.split()[1]) for line in said if line.startswith("begun")]
    acknowledged = [int(line.split()[1]) for line in said if line.startswith("acknowledged")]

    graph = Graph.open(path)
    numbers = {dict(row)["n"] for t in TABLES for row in seen(graph)[t].rows if ("id", "p0") in row}
    assert len(numbers) == 1, f"killed after {delay_s:.3f} s: the tables disagree: {numbers}"
    assert numbers <= {acknowledged[-1] if acknowledged else 0, begun[-1]}
    assert (pending_files(path), heads(graph)) == ([], pins(graph))
    shutil.rmtree(path)
