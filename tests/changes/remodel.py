"""Commits that change which tables there are and what properties they have, as a schema change would."""

from __future__ import annotations

import lance
import pyarrow as pa
from lance.schema import LanceSchema

import omnigraph as og
from omnigraph.base.ids import new_ulid
from omnigraph.commit.plan import Effect, WritePlan, Writer, WriterKind
from omnigraph.commit.protocol import commit_plan
from omnigraph.manifest.rows import Registration, Tombstone
from omnigraph.storage.stage import StagedWrite, Stamp, stage_create

REMODEL = Writer("schema_apply", WriterKind.SCHEMA_APPLY, "remodel")
_OP = lance.LanceOperation


def _commit(graph: og.Graph, effects: tuple[Effect, ...], relied: dict[str, int], **more: object) -> str:
    view = graph.view()
    plan = WritePlan(new_ulid(), new_ulid(), REMODEL, None, view.incarnation, effects, relied, **more)  # type: ignore[arg-type]
    return commit_plan(graph.context, plan).graph_commit_id


def _bump(graph: og.Graph, table_key: str, operation: object, named: str | None = None) -> Effect:
    table, entry = graph.view().table(table_key), graph.view().entry(table_key)
    stamp = Stamp(new_ulid(), named or table_key, "0")
    transaction = lance.Transaction(table.version, operation, transaction_properties=stamp.properties())
    staged = StagedWrite(
        table.ref, stamp, table.version, transaction.uuid, entry.row_count, table=table, transaction=transaction
    )
    return Effect(named or table_key, table.ref, table.version, (staged,), entry.row_count)


def add_property(graph: og.Graph, table_key: str, name: str, type_: pa.DataType) -> str:
    """A property that is null everywhere."""
    table = graph.view().table(table_key)
    schema = LanceSchema.from_pyarrow(table.schema.append(pa.field(name, type_)))
    operation = _OP.Merge(table.fragments(), schema)
    return _commit(graph, (_bump(graph, table_key, operation),), {table_key: table.version})


def rename_type(graph: og.Graph, table_key: str, named: str) -> str:
    entry = graph.view().entry(table_key)
    touched = _OP.UpdateConfig(table_metadata_updates=_OP.UpdateMap({"named": named}))
    return _commit(
        graph,
        (_bump(graph, table_key, touched, named),),
        {named: 0},
        registrations=(Registration(named, entry.location),),
        tombstones=(Tombstone(table_key, entry.location, entry.table_version),),
    )


def drop_type(graph: og.Graph, table_key: str) -> str:
    entry = graph.view().entry(table_key)
    gone = (Tombstone(table_key, entry.location, entry.table_version),)
    return _commit(graph, (), {table_key: entry.table_version}, tombstones=gone)


def add_type(graph: og.Graph, table_key: str, location: str) -> str:
    """An empty table with the columns the catalog says."""
    ref = graph.context.ref(location, None)
    staged = stage_create(ref, graph.catalog.arrow_schema(table_key), Stamp(new_ulid(), table_key, "0"))
    return _commit(
        graph, (Effect(table_key, ref, 0, (staged,), 0),), {}, registrations=(Registration(table_key, location),)
    )
