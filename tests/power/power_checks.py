"""What must hold of a graph when the power is back: it is one that was acknowledged, or the one being written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from crash_world import SCHEMA, TABLES, TableSeen, heads, pending_files, pins, rows_of, seen

from omnigraph.base.errors import Conflict, NotFound, OmniError
from omnigraph.engine.write.changes import Upsert
from omnigraph.graph import Graph
from omnigraph.manifest.projections import projected_ids


@dataclass(frozen=True)
class State:
    """A graph as its readers see it; `tables` is None where there is none."""

    tables: dict[str, TableSeen] | None
    commits: tuple[str, ...] = ()

    @staticmethod
    def of(graph: Graph) -> State:
        return State(seen(graph), tuple(c.graph_commit_id for c in reversed(graph.list_commits())))


NOTHING = State(None)


def check_wreck(path: Path, allowed: Sequence[State]) -> None:
    """`allowed[0]` is what was acknowledged last; the others are what was being written."""
    _check_reader(str(path), allowed)
    graph = _check_recovered(str(path), allowed)
    _check_next_write(graph)


def _check_reader(path: str, allowed: Sequence[State]) -> None:
    """Readers need no recovery and change nothing."""
    try:
        found = State.of(Graph.open(path, "r"))
    except (NotFound, Conflict) as error:
        assert NOTHING in allowed, f"a reader is refused: {error}"
        return
    _check_shown(found, allowed, "a reader")


def _check_shown(found: State, allowed: Sequence[State], who: str) -> None:
    assert any(found.tables == a.tables for a in allowed), f"{who} sees neither before nor after: {_told(found)}"
    known = allowed[0].commits
    assert found.commits[: len(known)] == known, f"{who} misses acknowledged commits"


def _told(found: State) -> str:
    return str({k: [dict(r)["id"] for r in t.rows] for k, t in (found.tables or {}).items()})


def _check_recovered(path: str, allowed: Sequence[State]) -> Graph:
    try:
        graph = Graph.open(path)
    except OmniError as error:
        assert NOTHING in allowed, f"the graph cannot be opened: {error!r}"
        graph = Graph.init(path, SCHEMA, force=True)
        assert all(t.rows == () for t in seen(graph).values())
        return graph
    found = State.of(graph)
    _check_shown(found, allowed, "a writer")
    assert pending_files(path) == [], "a sidecar is left"
    assert heads(graph) == pins(graph), "a table's head is not its pin"
    commits = graph.list_commits()[::-1]
    assert [c.parent_commit_id for c in commits] == [None, *(c.graph_commit_id for c in commits[:-1])]
    assert graph.recoveries().pending == ()
    return graph


def _fitting(graph: Graph, table_key: str, rows: pa.Table) -> pa.Table:
    """The rows with a value for what a schema apply has added and requires."""
    for field in graph.catalog.arrow_schema(table_key):
        if not field.nullable and field.name not in rows.column_names:
            rows = rows.append_column(field.name, pa.array([1] * rows.num_rows, field.type))
    return rows


def _check_next_write(graph: Graph) -> None:
    shown = State.of(graph)
    with graph:
        receipt = graph.write({t: Upsert(_fitting(graph, t, rows_of(t, ["later"], "later"))) for t in TABLES})
    found = State.of(Graph.open(graph.uri, "r"))
    assert found.commits == (*shown.commits, receipt.graph_commit_id)
    assert found.tables is not None
    assert shown.tables is not None
    for table, was in shown.tables.items():
        assert [r for r in found.tables[table].rows if ("id", "later") not in r] == list(was.rows)
        assert len(found.tables[table].rows) == len(was.rows) + 1
    assert heads(graph) == pins(graph)
    assert projected_ids(graph.context.root, None) == set(found.commits), "the commit table does not catch up"
