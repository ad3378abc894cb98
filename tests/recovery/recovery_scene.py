"""Interruptions inside one process: a death that no handler catches, and a rival that does not wait for our lock."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import lance
import pytest
from crash_world import EFFECTS, TABLES, plan_of, rows_of

from omnigraph.base import failpoints
from omnigraph.base.errors import ExpectedVersionMismatch
from omnigraph.base.ids import new_ulid
from omnigraph.commit.locks import FileLocks
from omnigraph.commit.plan import Receipt
from omnigraph.commit.protocol import commit_plan
from omnigraph.commit.recovery.audit import RecoveryRecord
from omnigraph.engine.write.changes import Change
from omnigraph.graph import Graph, OpenMode
from omnigraph.storage.tables import TableRef

PERSON, COMPANY, KNOWS = "node:Person", "node:Company", "edge:Knows"


class Died(BaseException):
    """Ends a write where it stands: not an Exception, so nothing on the way undoes or answers anything."""


def die() -> None:
    raise Died


def interrupt(graph: Graph, effect: str, point: str, tables: Sequence[str] = TABLES, skip: int = 0) -> str:
    """Let a write die at a window of its writer; returns its operation id."""
    operation_id = new_ulid()
    plan = plan_of(graph, EFFECTS[effect], tables, operation_id)
    failpoints.arm(f"{plan.writer.name}.{point}", die, skip)
    with pytest.raises(Died):
        commit_plan(graph.context, plan)
    return operation_id


def rival_of(graph: Graph, folder: Path) -> Graph:
    """Another handle that holds a lock of its own: what a writer is to one whose lease ran out while it slept."""
    rival = Graph.open(graph.uri, OpenMode.READ_ONLY)
    context = dataclasses.replace(rival.context, locks=FileLocks(str(folder), 10_000))
    return Graph(context, OpenMode.READ_WRITE)


def write_until_it_lands(graph: Graph, changes: Mapping[str, Change]) -> Receipt:
    """A write that settles or heals a table first finds its own preparation outdated, once."""
    try:
        return graph.write(changes)
    except ExpectedVersionMismatch:
        return graph.write(changes)


def ref_of(graph: Graph, table_key: str) -> TableRef:
    entry = graph.snapshot().tables[table_key]
    return graph.context.ref(entry.location, entry.table_branch)


def tear(graph: Graph, table_key: str, version: int) -> None:
    """A version file of no bytes, as a power cut leaves one behind."""
    path = f"{graph.uri}/{ref_of(graph, table_key).version_file(version)}"
    with open(path, "wb"):
        pass
    assert os.path.getsize(path) == 0


def foreign_append(graph: Graph, table_key: str) -> None:
    """A row that another tool writes past the manifest."""
    table = graph.view().table(table_key)
    rows = rows_of(table_key, ["foreign"], "foreign").select(table.schema.names).cast(table.schema)
    lance.write_dataset(rows, table.ref.uri, mode="append")


def audit_of(graph: Graph, operation_id: str) -> RecoveryRecord | None:
    rows = [r for r in graph.recoveries().records if r.operation_id == operation_id]
    assert len(rows) <= 1, "an operation has one audit row"
    return rows[0] if rows else None
