"""A driver is killed anywhere in a bulk load: the graph is as before or as after, and what it left can be removed."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from bulk_drivers import Drivers
from bulk_scene import MODES, Origin, check_rows, content, staging, sweep, table_files, until

import omnigraph as og
from omnigraph.base.failpoints import WINDOWS
from omnigraph.commit.staging import list_heartbeats

pytestmark = [pytest.mark.spark, pytest.mark.slow]

# In the order in which a load of two tables comes to them: the point, and how often it is passed before.
POINTS = (
    ("progress.read", 1),
    ("progress.check", 0),
    ("progress.write", 0),
    ("stage.files_written", 0),
    ("stage.files_written", 1),
    ("load.pre_phase_a", 0),
    ("load.post_phase_a_pre_phase_b", 0),
    ("load.mid_phase_b", 0),
    ("load.mid_phase_b", 1),
    ("load.post_phase_b_pre_manifest_commit", 0),
    ("load.post_manifest_commit_pre_phase_d", 0),
    ("load.post_phase_d", 0),
)
# From here on a table may have moved; before it, what was staged belongs to nobody.
MOVES_FROM = POINTS.index(("load.mid_phase_b", 0))
# From here on every table has moved, so that recovery completes the load.
LANDS_FROM = POINTS.index(("load.mid_phase_b", 1))
LIFETIME_S = 1
FEW_TASKS = {"split_bytes": 20_000, "rows_per_task": 150}


def case(number: int, mode: str) -> Any:
    point, skip = POINTS[number]
    # Each point in one mode, the modes in turn; the others only in the long run.
    marks = () if MODES[number % len(MODES)] == mode else pytest.mark.full
    return pytest.param(number, mode, id=f"{mode}-{point}{f'#{skip + 1}' if skip else ''}", marks=marks)


def test_every_window_of_the_write_path_is_met() -> None:
    assert {f"load.{window}" for window in WINDOWS} <= {point for point, _ in POINTS}


@pytest.mark.parametrize(("number", "mode"), [case(n, mode) for n in range(len(POINTS)) for mode in MODES])
def test_a_driver_that_died_left_the_graph_before_or_after(
    number: int, mode: str, origin: Origin, drivers: Drivers, graph_uri: str
) -> None:
    (point, skip), files = POINTS[number], table_files(graph_uri)
    driver = drivers.take()
    driver.order(
        graph=graph_uri,
        file=origin.file(mode),
        mode=mode,
        die_at=point,
        skip=skip,
        as_on_a_cluster=True,
        **FEW_TASKS,
        settings={"staging_lifetime_s": LIFETIME_S},
    )
    assert driver.died() == -9, f"{point} was not reached"

    shown = content(og.Graph.open(graph_uri, "r"))
    assert shown in (origin.before, origin.after(mode)), "readers see something between before and after"
    graph = og.Graph.open(graph_uri)
    expected = origin.after(mode) if number >= LANDS_FROM else origin.before
    check_rows(graph, expected)
    if number < MOVES_FROM:
        check_cleaned(graph_uri, expected)
        assert table_files(graph_uri) == files, "orphan fragments are left"
    else:
        check_cleaned(graph_uri, expected)
        assert files <= table_files(graph_uri), "a file of an older commit is gone"
    check_next_write(graph_uri, expected)


def check_cleaned(uri: str, expected: list[str]) -> None:
    """Cleanup takes what the dead load left and nothing that is needed."""
    graph = og.Graph.open(uri)
    (heartbeat,) = list_heartbeats(graph.context)
    assert any(name.startswith(f"{heartbeat.folder}/") for name in staging(uri)), "its rows lay beside the graph"
    until(lambda: not heartbeat.is_alive(time.time_ns() // 1_000), "the heartbeat of a dead driver is not renewed")
    left = sweep(uri)
    assert heartbeat.key in {gone.path for gone in left.orphans_removed}
    assert staging(uri) == set()
    assert left.orphans_kept == ()
    assert all(table.error is None for table in left.tables)
    check_rows(og.Graph.open(uri), expected)


def check_next_write(uri: str, expected: list[str]) -> None:
    og.Graph.open(uri).mutate('query q() { insert Person { name: "next", age: 1 } }')
    now = content(og.Graph.open(uri))
    assert len(now) == len(expected) + 1
    assert set(expected) <= set(now)
    again = sweep(uri)
    assert (again.orphans_removed, again.orphans_kept) == ((), ())


@pytest.mark.parametrize("task", ["read", "write"])
def test_tasks_that_outlive_their_driver_change_nothing(
    task: str, origin: Origin, drivers: Drivers, graph_uri: str, gate: Path
) -> None:
    """Executors go on for a while when the driver is dead, and write files when the dead load was cleared away."""
    driver = drivers.take()
    driver.order(
        graph=graph_uri,
        file=origin.file("append"),
        mode="append",
        odd={task: "held", "folder": str(gate)},
        as_on_a_cluster=True,
        **FEW_TASKS,
        settings={"staging_lifetime_s": LIFETIME_S},
    )
    until(lambda: list(gate.glob(f"{task}-*")), "no task began")
    driver.kill()
    check_cleaned(graph_uri, origin.before)
    (gate / "open").touch()
    check_next_write(graph_uri, origin.before)
