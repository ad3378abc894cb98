"""Stage 8: each source whose edges the write touched has as many as `@card` allows."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.catalog import Cardinality, EdgeType
from omnigraph.engine.write.changeset import TableChange
from omnigraph.engine.write.validate import rules
from omnigraph.engine.write.validate.check import (
    NO_LINE,
    POSITION,
    Check,
    Row,
    gone_ids,
    input_rows,
    is_small,
)
from omnigraph.engine.write.validate.endpoints import missing_endpoints
from omnigraph.records.explain import shown
from omnigraph.records.violations import Stage, Violation
from omnigraph.sets.scratch import Relation
from omnigraph.storage.predicates import LOOKUP_BY_FILTER_MAX

_SOURCES = pa.schema([pa.field("source", pa.string()), pa.field("position", pa.int64())])
_STORED = pa.schema([pa.field("id", pa.string()), pa.field("source", pa.string())])


def check_cardinality(check: Check) -> None:
    for edge in check.catalog.edges:
        change = check.changes.find(edge.table_key)
        if change is not None and not change.is_empty and edge.cardinality != Cardinality():
            _check_one(check, edge, change)
            check.tidy()


def _check_one(check: Check, edge: EdgeType, change: TableChange) -> None:
    bounds = edge.cardinality
    input_ = (
        input_rows(change, ["src", POSITION], ["source", "position"])
        if change.rows is not None
        else Relation.empty(_SOURCES)
    )
    kept, lost = _kept_and_lost(check, edge, change, input_)
    if _holds(bounds, input_, kept, lost):
        return
    relations = {"input": input_, "kept": kept, "lost": lost}
    broken = check.spooled(rules.cardinality(bounds.min, bounds.max), relations)
    if not broken.num_rows:
        return
    deleted = _deleted_sources(check, edge, broken.relation(["source", "position", "edges"]))

    def make(row: Row) -> Violation:
        few = row["edges"] < bounds.min
        limit = f"min {bounds.min}" if few else f"max {bounds.max}"
        held = f"source {shown(row['source'])} has {row['edges']} edges ({limit})"
        message = f"@card violation on edge {edge.name}: {held}"
        position = NO_LINE if row["position"] is None else row["position"]
        return Violation(Stage.CARDINALITY, position, edge.name, "src", "card_violation", message)

    for batch in broken.batches():
        alive = pc.invert(pc.is_in(batch.column("source"), value_set=deleted))
        check.add(Stage.CARDINALITY, batch.filter(alive), make)


def _holds(bounds: Cardinality, input_: Relation, kept: Relation, lost: Relation) -> bool:
    """Whether counting a few rows in memory already shows that all is well."""
    if input_.table is None or kept.table is None or lost.table is None:
        return False
    touched = pc.unique(_sources(input_, lost))
    held = _sources(input_, kept)
    held = held.filter(pc.is_in(held, value_set=touched))
    counts = pc.value_counts(held).field("counts").to_pylist()
    return len(counts) == len(touched) and all(
        bounds.min <= count and (bounds.max is None or count <= bounds.max) for count in counts
    )


def _sources(*relations: Relation) -> pa.ChunkedArray:
    chunks = [c for r in relations if r.table is not None for c in r.table.column("source").chunks]
    return pa.chunked_array(chunks, pa.string())


def _kept_and_lost(check: Check, edge: EdgeType, change: TableChange, input_: Relation) -> tuple[Relation, Relation]:
    """The stored edges of every touched source that survive, and those that do not."""
    key, nothing = edge.table_key, Relation.empty(_STORED)
    if change.replaces_all:
        # What is taken away can only break a minimum.
        return nothing, _every(check, key) if edge.cardinality.min else nothing
    gone = gone_ids(change)
    if not is_small(change) or input_.table is None:
        stored = _every(check, key)
        return check.surviving(stored, gone), check.surviving(stored, gone, survives=False)
    ids = gone.table.column("id").chunks if gone.table is not None else None
    lost = check.stored.rows(key, ["id", "src"], "id", ids).renamed(_STORED.names)
    sources = [*input_.table.column("source").chunks, *(lost.table.column("source").chunks if lost.table else [])]
    stored = check.stored.rows(key, ["id", "src"], "src", sources).renamed(_STORED.names)
    return check.surviving(stored, gone), check.surviving(lost, gone, survives=False)


def _every(check: Check, table_key: str) -> Relation:
    return check.stored.rows(table_key, ["id", "src"], "id", None).renamed(_STORED.names)


def _deleted_sources(check: Check, edge: EdgeType, broken: Relation) -> pa.Array:
    """Those of the sources without edges whose node the write takes away: nothing is asked of them."""
    bare = [b.filter(pc.equal(b.column("edges"), 0)).column("source") for b in broken.reader()]
    sources = pa.chunked_array(bare, pa.string()).combine_chunks()
    if not len(sources):
        return sources
    nulls = pa.nulls(len(sources), pa.int64())
    edges = Relation.of(pa.table({"id": sources, "position": nulls, "endpoint": sources}))
    asked = missing_endpoints(check, edges, edge.src_type, few=len(sources) <= LOOKUP_BY_FILTER_MAX)
    if asked is None:
        return sources.slice(0, 0)
    found = check.spooled(*asked)
    return found.table(["endpoint"]).column("endpoint").combine_chunks() if found.num_rows else sources.slice(0, 0)
