"""Stage 4 across rows: an id occurs once in the input, and a strict insert meets no stored one."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow.compute as pc

from omnigraph.catalog.catalog import NodeType
from omnigraph.engine.write.changeset import TableChange
from omnigraph.engine.write.validate import rules
from omnigraph.engine.write.validate.check import (
    POSITION,
    Check,
    Row,
    input_rows,
    is_known_empty,
    is_small,
    positions_in,
)
from omnigraph.records.explain import shown
from omnigraph.records.violations import Stage, Violation

_COLUMNS, _NAMES = ["id", POSITION], ["id", "position"]


@dataclass(frozen=True)
class IdTaken(Violation):
    """A strict insert of an id that is stored already."""

    table_key: str = ""
    id: str = ""


def check_ids(check: Check) -> None:
    for change in check.changes.ordered():
        if not change.row_count or change.has_fresh_ids:
            continue
        type_ = check.type_of(change)
        keyed = isinstance(type_, NodeType) and bool(type_.key_properties)
        if (change.strict_insert or change.replaces_all) and not keyed:
            _refuse_repeated(check, change, type_.name)
        if change.strict_insert and not change.replaces_all:
            _refuse_stored(check, change, type_.name)


def drop_superseded(check: Check) -> int:
    """Of records with one id keep the last, and say how many were dropped; a strict insert keeps all."""
    dropped = 0
    for change in check.changes.ordered():
        if change.rows is None or change.strict_insert or change.replaces_all or change.has_fresh_ids:
            continue
        if _ids_differ(change):
            continue
        with check.asked(rules.SUPERSEDED, {"input": input_rows(change, _COLUMNS, _NAMES)}) as batches:
            positions = positions_in(batches)
        if len(positions):
            before, change.rows = change.rows, change.rows.without(positions)
            before.close()
            dropped += len(positions)
    return dropped


def _ids_differ(change: TableChange) -> bool:
    """Whether the ids are few and all different; False also when that is not known."""
    if not is_small(change):
        return False
    assert change.rows is not None
    ids = change.rows.table(["id"]).column("id")
    return bool(pc.count_distinct(ids).as_py() == len(ids))


def _refuse_repeated(check: Check, change: TableChange, name: str) -> None:
    if _ids_differ(change):
        return

    def make(row: Row) -> Violation:
        message = f"id {shown(row['id'])} occurs {row['times']} times in the input"
        return Violation(Stage.IDS, row["position"], name, "id", "duplicate_id", message)

    check.report(Stage.IDS, rules.REPEATED_IDS, {"input": input_rows(change, _COLUMNS, _NAMES)}, make)


def _refuse_stored(check: Check, change: TableChange, name: str) -> None:
    input_ = input_rows(change, _COLUMNS, _NAMES)
    wanted = input_.table.column("id").chunks if is_small(change) and input_.table is not None else None
    stored = check.stored.rows(change.table_key, ["id"], "id", wanted)
    if is_known_empty(stored):
        return

    def make(row: Row) -> Violation:
        message = f"{name} already has id {shown(row['id'])}"
        return IdTaken(Stage.IDS, row["position"], name, "id", "key_conflict", message, change.table_key, row["id"])

    check.report(Stage.IDS, rules.STORED_IDS, {"input": input_, "stored": stored}, make)
