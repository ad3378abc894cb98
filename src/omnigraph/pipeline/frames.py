"""Spark DataFrames into a graph: executors write fragments for every type, the driver commits once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame

from omnigraph.base.errors import BadRequest
from omnigraph.commit.plan import LOAD, Receipt
from omnigraph.engine.view import View
from omnigraph.engine.write.changes import Fragments
from omnigraph.graph import Graph
from omnigraph.pipeline.bulk_load import stage_frames
from omnigraph.pipeline.worker.fragments import FragmentTarget


def append_frames(
    graph: Graph,
    frames: Mapping[str, DataFrame],
    *,
    branch: str | None = None,
    actor: str | None = None,
    message: str | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> Receipt:
    """Insert the rows of each frame, keyed by table (`node:Person`), all in one commit."""
    if not frames:
        raise BadRequest("no frames were given")
    graph.refuse_read_only()
    view = graph.view(branch)
    targets = {key: _target(view, key) for key in frames}
    staged = stage_frames(next(iter(frames.values())).sparkSession, targets, frames)
    changes = {key: Fragments(done.messages, done.rows, view.entry(key).table_version) for key, done in staged.items()}
    return graph.write(changes, writer=LOAD, branch=branch, actor=actor, message=message, metadata=metadata, view=view)


def _target(view: View, table_key: str) -> FragmentTarget:
    table = view.table_to_write(table_key)
    schema = view.catalog.arrow_schema(table_key)
    has_rows = view.entry(table_key).row_count > 0
    return FragmentTarget(table_key, table.ref.uri, table.version, schema, table.ref.options, has_rows)
