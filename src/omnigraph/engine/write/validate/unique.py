"""Stage 6: no two rows of a type share a key or the values of a `@unique`, new and surviving ones together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from omnigraph.catalog.catalog import Key, TableType, Unique, declared_indexes
from omnigraph.engine.write.changeset import TableChange
from omnigraph.engine.write.validate import rules
from omnigraph.engine.write.validate.check import (
    POSITION,
    Check,
    Row,
    gone_ids,
    input_rows,
    is_known_empty,
    is_small,
)
from omnigraph.records.explain import shown
from omnigraph.records.violations import Stage, Violation
from omnigraph.sets.scratch import Relation


def check_unique(check: Check) -> None:
    for change in check.changes.ordered():
        if change.row_count:
            type_ = check.type_of(change)
            for constraint in _constraints(change, type_):
                _check_one(check, change, type_, constraint)
                check.tidy()


def _constraints(change: TableChange, type_: TableType) -> Iterator[Key | Unique]:
    # An upsert replaces the stored row of the same key, and its input holds each key once: nothing can clash.
    if change.strict_insert or change.replaces_all:
        yield from (c for c in type_.constraints if isinstance(c, Key))
    yield from type_.uniques


def _check_one(check: Check, change: TableChange, type_: TableType, constraint: Key | Unique) -> None:
    columns, width = constraint.columns, len(constraint.columns)
    values = [f"v{k}" for k in range(width)]
    input_ = input_rows(change, ["id", POSITION, *columns], ["id", "position", *values])
    stored = _stored(check, change, type_, constraint, input_).renamed(["id", *values])
    stored = check.surviving(stored, gone_ids(change))
    if _cannot_clash(input_, stored, values):
        return
    relations = {"input": input_, "stored": stored.selected(["id", *values])}
    clashing = check.spooled(
        rules.clashing_values(width), {"input": input_.selected(values), "stored": stored.selected(values)}
    )
    if not clashing.num_rows:
        return
    relations["clashing"] = clashing.relation(values)
    place = f"{type_.name}.{columns[0]}" if width == 1 else f"{type_.name}.({', '.join(columns)})"
    property_ = columns[0] if width == 1 else f"({', '.join(columns)})"

    def make(row: Row) -> Violation:
        texts = [_text(row[value]) for value in values]
        value = shown(texts[0]) if width == 1 else f"({', '.join(texts)})"
        message = f"@unique violation on {place}: value {value} held by {shown(row['one'])} and {shown(row['other'])}"
        return Violation(Stage.UNIQUE, row["position"], type_.name, property_, "unique_violation", message)

    check.report(Stage.UNIQUE, rules.clashing_rows(width), relations, make)


def _stored(
    check: Check, change: TableChange, type_: TableType, constraint: Key | Unique, input_: Relation
) -> Relation:
    """Stored rows that may hold one of the new values; equal keys have equal ids, which stage 4 has looked at."""
    columns = ["id", *constraint.columns]
    if change.replaces_all or isinstance(constraint, Key):
        return Relation.empty(pa.schema([type_.arrow_schema.field(name) for name in columns]))
    indexed = {index.column for index in declared_indexes(type_) if index.kind == "btree"}
    by = next((k for k, name in enumerate(constraint.columns) if name in indexed), 0)
    wanted = input_.table.column(f"v{by}").chunks if is_small(change) and input_.table is not None else None
    return check.stored.rows(change.table_key, columns, constraint.columns[by], wanted)


def _cannot_clash(input_: Relation, stored: Relation, values: list[str]) -> bool:
    """Whether a look at a few rows in memory already shows that all is well; `stored` survive."""
    if input_.table is None or not is_known_empty(stored):
        return False
    if input_.table.num_rows == 1:
        return True
    held = input_.table.select(values).drop_null()
    return bool(held.group_by(values).aggregate([]).num_rows == held.num_rows)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
