"""What repair says of damage that is gone by the time it has the lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from damage_scene import (
    KNOWS,
    PERSON,
    SCHEMA,
    actions,
    foreign,
    ids,
    insert,
    kinds,
    reopened,
    repair,
    torn_next,
    verify,
)
from harms import dropped_index, foreign_append, foreign_compaction, late_effect

import omnigraph as og
import omnigraph.engine.repair.run as run

pytestmark = pytest.mark.slow

Change = Callable[[], Any]
WITHOUT_EDGES = "\n".join(line for line in SCHEMA.splitlines() if not line.startswith("edge Knows"))


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[[Change], None]:
    """Do something between repair's look at the graph and its first step."""

    def arm(change: Change) -> None:
        def verify_and_change(*arguments: Any, **more: Any) -> og.VerifyResult:
            found = look(*arguments, **more)
            assert found.findings
            monkeypatch.setattr(run, "verify", look)
            change()
            return found

        look = run.verify
        monkeypatch.setattr(run, "verify", verify_and_change)

    return arm


@pytest.mark.parametrize("harm", [foreign_compaction, late_effect])
def test_drift_that_a_writer_healed_meanwhile_needs_nothing(
    graph: og.Graph, meanwhile: Callable[[Change], None], harm: Callable[[og.Graph], None]
) -> None:
    harm(graph)
    meanwhile(lambda: insert(reopened(graph), "meanwhile"))
    result = repair(graph, confirm=True)
    assert [a[3] for a in actions(result)] == ["no_op"], result
    assert (result.failed, kinds(verify(graph))) == (False, [])
    assert "meanwhile" in ids(reopened(graph), PERSON)


def test_rows_that_another_repair_took_meanwhile_are_not_published_twice(
    graph: og.Graph, meanwhile: Callable[[Change], None]
) -> None:
    foreign_append(graph)
    meanwhile(lambda: repair(graph, confirm=True, force=True))
    result = repair(graph, confirm=True, force=True)
    assert [a[3] for a in actions(result)] == ["no_op"], result
    assert [c.kind for c in reopened(graph).list_commits()].count("repair") == 1


def test_a_torn_version_that_another_repair_removed_meanwhile_needs_nothing(
    graph: og.Graph, meanwhile: Callable[[Change], None]
) -> None:
    torn_next(graph, PERSON)
    meanwhile(lambda: repair(graph, confirm=True))
    assert [a[3] for a in actions(repair(graph, confirm=True))] == ["no_op"]
    assert kinds(verify(graph)) == []


def foreign_edges(graph: og.Graph) -> None:
    foreign(graph, KNOWS).delete("id = id")


def compacted_edges(graph: og.Graph) -> None:
    foreign(graph, KNOWS).optimize.optimize_indices()
    foreign(graph, KNOWS).create_scalar_index("since", "BTREE")


def torn_edges(graph: og.Graph) -> None:
    torn_next(graph, KNOWS)


@pytest.mark.parametrize("harm", [foreign_edges, compacted_edges, torn_edges])
def test_damage_of_a_type_that_was_dropped_meanwhile_needs_nothing(
    graph: og.Graph, meanwhile: Callable[[Change], None], harm: Callable[[og.Graph], None]
) -> None:
    harm(graph)

    def drop() -> None:
        if harm is not compacted_edges:
            repair(graph, confirm=True, force=True)
        reopened(graph).schema_apply(WITHOUT_EDGES)

    meanwhile(drop)
    result = repair(graph, confirm=True, force=True)
    assert [a[3] for a in actions(result)] == ["no_op"], result
    assert kinds(verify(graph)) == []


def test_an_index_of_a_type_that_was_dropped_meanwhile_is_not_built(
    graph: og.Graph, meanwhile: Callable[[Change], None]
) -> None:
    dropped_index(graph)
    without_people = "node City { name: String @key  code: String? @unique }\n"
    meanwhile(lambda: reopened(graph).schema_apply(without_people))
    result = repair(graph, confirm=True)
    assert [a[3] for a in actions(result)] == ["no_op"], result
