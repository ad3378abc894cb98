"""A repair that dies anywhere leaves a graph that the next one mends."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from damage_children import mend_and_die
from damage_scene import (
    KNOWS,
    PERSON,
    actions,
    foreign,
    ids,
    kinds,
    pinned,
    ref_of,
    reopened,
    repair,
    torn_next,
    verify,
)
from harms import foreign_append, foreign_compaction, late_effect, lost_index_file

import omnigraph as og
from processes import FORKED

WAIT_S = 120
pytestmark = pytest.mark.slow


def torn_twice(graph: og.Graph) -> None:
    torn_next(graph, PERSON)
    table = pinned(graph, PERSON)
    graph.context.objects.put(table.ref.version_file(table.version + 2), b"")
    torn_next(graph, KNOWS)


def torn_over_rows(graph: og.Graph) -> None:
    foreign_append(graph)
    graph.context.objects.put(ref_of(graph, PERSON).version_file(foreign(graph, PERSON).version + 1), b"")


PUBLISHES = (
    "repair.pre_phase_a",
    "repair.post_phase_b_pre_manifest_commit",
    "repair.post_manifest_commit_pre_phase_d",
    "repair.post_phase_d",
)
CASES = [
    *((foreign_compaction, point, 0) for point in PUBLISHES),
    *((foreign_append, point, 0) for point in PUBLISHES),
    *((torn_twice, "repair.mid_phase_b", skip) for skip in (0, 1, 2)),
    (torn_over_rows, "repair.mid_phase_b", 0),
    (torn_over_rows, "repair.post_phase_b_pre_manifest_commit", 0),
    (late_effect, "repair.pre_phase_a", 0),
    (lost_index_file, "ensure_indices.mid_phase_b", 0),
    (lost_index_file, "ensure_indices.post_phase_b_pre_manifest_commit", 0),
]


@pytest.mark.parametrize(("harm", "point", "skip"), CASES, ids=[f"{h.__name__}-{p}-{s}" for h, p, s in CASES])
def test_a_repair_that_dies_is_finished_by_the_next(
    graph: og.Graph, harm: Callable[[og.Graph], None], point: str, skip: int
) -> None:
    harm(graph)
    before = set(ids(graph, PERSON))
    process = FORKED.Process(target=mend_and_die, args=(graph.uri, graph.settings, point, skip))
    process.start()
    process.join(WAIT_S)
    assert process.exitcode == -9, f"it did not reach {point}"

    reader = reopened(graph, "r")
    assert set(ids(reader, PERSON)) - before <= {"alien"}
    reopened(graph).close()  # an interrupted rebuild of indexes is settled as any other write
    result = repair(graph, confirm=True, force=True)
    assert not result.failed, actions(result)
    assert kinds(verify(graph)) == []
    rows = set(ids(reopened(graph), PERSON))
    assert rows == before | ({"alien"} if harm in (foreign_append, torn_over_rows) else set())
    assert sum(c.kind == "repair" for c in reopened(graph).list_commits()) <= 1
