"""Stage 7: every edge that is there after the write starts and ends at a node that is there too."""

from __future__ import annotations

from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.catalog import EdgeType
from omnigraph.engine.write.changeset import TableChange
from omnigraph.engine.write.validate import rules
from omnigraph.engine.write.validate.check import (
    NO_LINE,
    POSITION,
    Aside,
    Check,
    Row,
    deleted_ids,
    fresh_ids,
    gone_ids,
    ids_relation,
    input_rows,
    is_known_empty,
    is_small,
)
from omnigraph.engine.write.validate.rules import Rule
from omnigraph.records.explain import shown
from omnigraph.records.violations import Stage, Violation
from omnigraph.sets.scratch import Relation

_EDGE_COLUMNS = ["id", "position", "endpoint"]


def check_endpoints(check: Check) -> None:
    for edge in check.catalog.edges:
        for side, node in (("src", edge.src_type), ("dst", edge.dst_type)):
            change = check.changes.find(edge.table_key)
            if change is not None and change.row_count:
                edges = input_rows(change, ["id", POSITION, side], ["id", "position", "endpoint"])
                _report_missing(check, edge, side, node, edges, few=is_small(change))
            _report_dangling(check, edge, side, node, change)
            check.tidy()


def missing_endpoints(check: Check, edges: Relation, node: str, few: bool) -> tuple[Rule, dict[str, Relation]] | None:
    """The question which of the edges have no node, None if each has one; `edges` are few or read whole."""
    change = check.changes.find(f"node:{node}")
    fresh, deleted = fresh_ids(change), deleted_ids(change)
    if few and edges.table is not None:
        wanted = pc.unique(edges.table.column("endpoint"))
        if fresh.table is not None:
            wanted = _others(wanted, fresh)
            if not len(wanted):
                return None
        stored = _stored_nodes(check, node, change, [wanted])
        if stored.table is not None:
            left = check.surviving(stored, deleted)
            if left.table is not None and not len(_others(wanted, left)):
                return None
    else:
        stored = _stored_nodes(check, node, change, None)
    relations = {"edges": edges, "fresh_nodes": fresh, "stored_nodes": stored, "deleted_nodes": deleted}
    return rules.MISSING_ENDPOINTS, relations


def _others(ids: pa.Array, known: Relation) -> pa.Array:
    assert known.table is not None
    return ids.filter(pc.invert(pc.is_in(ids, value_set=known.table.column("id").combine_chunks())))


def _stored_nodes(check: Check, node: str, change: TableChange | None, wanted: list[pa.Array] | None) -> Relation:
    if change is not None and change.replaces_all:
        return ids_relation(pa.array([], pa.string()))
    return check.stored.rows(f"node:{node}", ["id"], "id", wanted)


def _report_missing(check: Check, edge: EdgeType, side: str, node: str, edges: Relation, few: bool) -> None:
    asked = missing_endpoints(check, edges, node, few)
    if asked is None:
        return
    told = partial(_told, check.aside, edge, side, node)
    if check.aside is None:
        check.report(Stage.ENDPOINTS, *asked, told)
        return
    missing = check.spooled(*asked)
    if not missing.num_rows:
        return
    relations = {"missing": missing.relation(_EDGE_COLUMNS), "refused": check.aside.refused(f"node:{node}")}
    with check.asked(rules.REFUSED_ENDPOINTS, relations) as batches:
        for batch in batches:
            # A stored edge has no line and cannot be left out.
            movable = pc.and_(pc.is_valid(batch.column("refused_at")), pc.is_valid(batch.column("position")))
            check.leave_out(batch.filter(movable), told)
            check.add(Stage.ENDPOINTS, batch.filter(pc.invert(movable)), told)


def _told(aside: Aside | None, edge: EdgeType, side: str, node: str, row: Row) -> Violation:
    position, refused_at = row["position"], row.get("refused_at")
    message, reason = f"{side} {shown(row['endpoint'])} not found in {node}", f"{side}_not_found"
    if position is None:
        message += f" (stored edge {shown(row['id'])})"
    elif refused_at is not None and aside is not None:
        place = aside.named(refused_at, position)
        message = f"{side} {shown(row['endpoint'])} is {node} of {place}, which was rejected"
        reason = "endpoint_rejected"
    return Violation(Stage.ENDPOINTS, NO_LINE if position is None else position, edge.name, side, reason, message)


def _report_dangling(check: Check, edge: EdgeType, side: str, node: str, change: TableChange | None) -> None:
    """Stored edges that stay although the write takes their node away."""
    nodes = check.changes.find(f"node:{node}")
    if nodes is None or not (nodes.replaces_all or len(nodes.delete_ids)) or (change and change.replaces_all):
        return
    if check.stored.is_empty(nodes.table_key) or check.stored.is_empty(edge.table_key):
        return
    few = not nodes.replaces_all and is_small(nodes)
    by_node = check.stored.rows(edge.table_key, ["id", side], side, [nodes.delete_ids] if few else None)
    stored = by_node.renamed(["id", "endpoint"])
    gone = gone_ids(change) if change is not None else ids_relation(pa.array([], pa.string()))
    left = check.surviving(stored, gone)
    if not is_known_empty(left):
        _report_missing(check, edge, side, node, left.with_nulls("position", pa.int64()), few)
