"""What a write of the sink is told before its first row, and its commit after the last one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Literal

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from omnigraph.base.errors import BadRequest, InternalError
from omnigraph.base.ids import new_ulid
from omnigraph.catalog.catalog import EdgeType, TableType
from omnigraph.commit.staging import staging_heartbeat
from omnigraph.graph import Graph
from omnigraph.lang.diagnostics import did_you_mean
from omnigraph.manifest import layout
from omnigraph.manifest.store import branch_name
from omnigraph.pipeline.options import GraphOptions, table_key_of
from omnigraph.pipeline.planned import PlannedWrite
from omnigraph.storage.row_files import RowFile, RowFolder, read_row_file

WRITE_OPTIONS = ("type", "mode", "branch", "from_branch", "message", "actor", "index", "if_commit")
_ENDS = {"from": "src", "to": "dst"}
_FLAGS = {"true": True, "false": False}


def plan_write(given: Mapping[str, str], schema: StructType, overwrite: bool) -> PlannedWrite:
    """Refuse what can be seen to be wrong before a row is computed."""
    options = GraphOptions.of(given, WRITE_OPTIONS)
    name = options.required("type", "Name a node or edge type: option('type', 'Person').")
    mode = _mode(options.get("mode"), overwrite)
    _flag(options)
    graph = options.open("rw")
    table = _table(graph, name)
    _refuse_columns(table, schema.names)
    branch, base = options.get("branch"), options.get("from_branch")
    graph.view(branch if base is None or branch in graph.branch_list() else base)
    operation_id = new_ulid()
    root = graph.context.root
    folder = RowFolder(f"{root.uri}/{layout.staging_folder(operation_id)}", root.storage_options)
    empty = to_arrow_schema(schema, timezone="UTC")
    return PlannedWrite(table.table_key, mode, operation_id, folder, empty, dict(options.values))


def _mode(given: str | None, overwrite: bool) -> Literal["append", "merge", "overwrite"]:
    allowed = ("overwrite",) if overwrite else ("append", "merge")
    if given is not None and given not in allowed:
        spark_mode = "overwrite" if overwrite else "append"
        raise BadRequest(
            f"the option 'mode' is '{given}' where the save mode is '{spark_mode}'",
            "Use mode('append') with the option 'append' or 'merge', or mode('overwrite') without the option.",
        )
    if overwrite:
        return "overwrite"
    return "merge" if given == "merge" else "append"


def _flag(options: GraphOptions) -> bool:
    given = options.get("index") or "true"
    if given.lower() not in _FLAGS:
        raise BadRequest(f"the option 'index' expects true or false, not '{given}'")
    return _FLAGS[given.lower()]


def _table(graph: Graph, name: str) -> TableType:
    tables = {table.table_key: table for table in graph.catalog.tables()}
    return tables[table_key_of(name, tables)]


def _refuse_columns(table: TableType, given: Sequence[str]) -> None:
    ends = _ENDS if isinstance(table, EdgeType) else {}
    names = [ends.get(name, name) for name in given]
    known = table.arrow_schema.names
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known) or f"It has: {', '.join(known)}."
            raise BadRequest(f"{table.name} has no property '{name}'", hint)
        if names.count(name) > 1:
            raise BadRequest(f"column '{name}' of {table.name} is given twice", "Drop one.")
    # An id may be left out: it comes from the key, or a fresh one is made.
    for name in (field.name for field in table.arrow_schema if not field.nullable and field.name != "id"):
        if name not in names:
            raise BadRequest(f"{table.name}: there is no column for the required '{name}'", "Add it to the frame.")


def commit_rows(planned: PlannedWrite, files: Sequence[RowFile]) -> None:
    """Load what the tasks staged, in the order of their partitions, as one commit; the staged files go with its end."""
    options = GraphOptions(planned.options)
    graph = options.open("rw")
    branch, actor = options.get("branch"), options.get("actor")
    with staging_heartbeat(graph.context, planned.operation_id, branch_name(branch), actor):
        done = graph.load_frames(
            {planned.table_key: _rows(planned, files)},
            mode=planned.mode,
            branch=branch,
            from_branch=options.get("from_branch"),
            index=_flag(options),
            actor=actor,
            message=options.get("message"),
            if_commit=options.get("if_commit"),
        )
    staged = sum(file.rows for file in files)
    if done.total_entities + done.duplicates_merged != staged:
        raise InternalError(f"{staged} rows were staged, {done.total_entities} were committed in {done.commit}")


def _rows(planned: PlannedWrite, files: Sequence[RowFile]) -> Any:
    batches: Iterator[pa.RecordBatch] = chain.from_iterable(
        read_row_file(file, planned.folder.options) for file in files
    )
    first = next(batches, None)
    if first is None:
        return planned.schema.empty_table()
    # Times carry the zone of the Spark session, so the files say what their columns are.
    return pa.RecordBatchReader.from_batches(first.schema, chain([first], batches))
