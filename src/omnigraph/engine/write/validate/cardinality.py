"""Stage 8: each source whose edges the write touched has as many as `@card` allows."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.catalog import Cardinality, EdgeType
from omnigraph.engine.scratch import Relation
from omnigraph.engine.write.changeset import TableChange
from omnigraph.engine.write.validate import rules
from omnigraph.engine.write.validate.check import (
    NO_LINE,
    POSITION,
    Check,
    Row,
    fresh_ids,
    gone_ids,
    input_rows,
    is_small,
    without_ids,
)
from omnigraph.engine.write.validate.endpoints import missing_endpoints
from omnigraph.records.explain import shown
from omnigraph.records.violations import Stage, Violation
from omnigraph.storage.predicates import LOOKUP_BY_FILTER_MAX

_SOURCES = pa.schema([pa.field("source", pa.string()), pa.field("position", pa.int64())])
_STORED = pa.schema([pa.field("id", pa.string()), pa.field("source", pa.string())])


def check_cardinality(check: Check) -> None:
    for edge in check.catalog.edges:
        change = check.changes.find(edge.table_key)
        if change is not None and not change.is_empty and edge.cardinality != Cardinality():
            _check_one(check, edge, change)


def _check_one(check: Check, edge: EdgeType, change: TableChange) -> None:
    bounds = edge.cardinality
    input_ = (
        input_rows(change, ["src", POSITION], ["source", "position"])
        if change.rows is not None
        else Relation.empty(_SOURCES)
    )
    stored, gone = _stored_and_gone(check, edge, change, input_)
    if _holds(bounds, input_, stored, gone):
        return
    relations = {"input": input_, "stored": stored, "gone": gone}
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
    broken.close()


def _holds(bounds: Cardinality, input_: Relation, stored: Relation, gone: Relation) -> bool:
    """Whether counting a few rows in memory already shows that all is well."""
    if input_.table is None or stored.table is None:
        return False
    kept = without_ids(stored.table, gone)
    if kept is None:
        return False
    touched = pc.unique(input_.table.column("source"))
    if bounds.min:
        touched = pc.unique(pa.chunked_array([touched, *stored.table.column("source").chunks], pa.string()))
    held = pa.chunked_array([*input_.table.column("source").chunks, *kept.column("source").chunks], pa.string())
    held = held.filter(pc.is_in(held, value_set=touched))
    counts = pc.value_counts(held).field("counts").to_pylist()
    return len(counts) == len(touched) and all(
        bounds.min <= count and (bounds.max is None or count <= bounds.max) for count in counts
    )


def _stored_and_gone(check: Check, edge: EdgeType, change: TableChange, input_: Relation) -> tuple[Relation, Relation]:
    """Stored edges of every touched source, and the ids of those that do not survive."""
    key, gone = edge.table_key, gone_ids(change)
    if change.replaces_all:
        if edge.cardinality.min == 0:
            return Relation.empty(_STORED), gone
        every = check.stored.rows(key, ["id", "src"], "id", None).renamed(_STORED.names)
        return every, check.stored.rows(key, ["id"], "id", None)
    if not is_small(change) or input_.table is None:
        return check.stored.rows(key, ["id", "src"], "id", None).renamed(_STORED.names), gone
    sources = input_.table.column("source").chunks
    touched = fresh_ids(change) if not change.strict_insert else None
    ids = [*(touched.table.column("id").chunks if touched and touched.table is not None else []), change.delete_ids]
    replaced = check.stored.rows(key, ["id", "src"], "id", ids)
    if replaced.table is not None:
        sources = [*sources, *replaced.table.column("src").chunks]
    return check.stored.rows(key, ["id", "src"], "src", sources).renamed(_STORED.names), gone


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
    return check.scratch.rows(*asked).column("endpoint").combine_chunks()
