"""Plans of schema changes for the graph as it is now: checked, and with the rows each step is about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from omnigraph.catalog.build import compile_source
from omnigraph.catalog.contract import AcceptedSchema
from omnigraph.catalog.evolution.plan import SchemaPlan
from omnigraph.catalog.evolution.sources import plan_source, refuse_unsupported
from omnigraph.catalog.evolution.steps import AddProperty, DropProperty, DropType, RenameType, Step
from omnigraph.engine.view import View
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.plan.stored import refuse_broken


@dataclass(frozen=True)
class SchemaPreview:
    """What an apply would do; `rows` counts, for each step, the rows that gain or lose a value by it."""

    plan: SchemaPlan
    rows: tuple[int, ...]
    manifest_version: int

    def to_json(self) -> dict[str, Any]:
        counted = zip(self.plan.steps, self.rows, strict=True)
        steps = [{**step.to_json(), "rows": rows} for step, rows in counted]
        return {
            "supported": self.plan.supported,
            "applied": False,
            "step_count": len(steps),
            "manifest_version": self.manifest_version,
            "steps": steps,
        }


@dataclass(frozen=True)
class SchemaApplyResult:
    """What an apply did; `applied` is False when there was nothing to do."""

    plan: SchemaPlan
    applied: bool
    manifest_version: int
    graph_commit_id: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "supported": self.plan.supported,
            "applied": self.applied,
            "step_count": len(self.plan.steps),
            "manifest_version": self.manifest_version,
            "steps": [step.to_json() for step in self.plan.steps],
        }


def empty_tables(snapshot: Snapshot) -> frozenset[str]:
    """The keys of tables that have no rows."""
    return frozenset(key for key, entry in snapshot.tables.items() if entry.row_count == 0)


def checked_plan(
    accepted: AcceptedSchema,
    snapshot: Snapshot,
    source: str,
    *,
    file: str | None = None,
    allow_data_loss: bool = False,
    queries: Mapping[str, str] | None = None,
) -> SchemaPlan:
    """The plan of an apply, or the error that refuses it: a step that no one can do, or a stored query it breaks.

    `queries`: the texts of stored queries by their paths.
    """
    plan = plan_source(accepted.ir, source, file=file, allow_data_loss=allow_data_loss, empty=empty_tables(snapshot))
    refuse_unsupported(plan, source, file)
    if queries and plan.steps:
        refuse_broken(accepted.catalog, compile_source(source, file), queries)
    return plan


def preview(view: View, plan: SchemaPlan) -> SchemaPreview:
    """The plan with the rows each step is about, counted in the view."""
    before: dict[tuple[str, str], str] = {
        (step.type_kind, step.to): step.from_ for step in plan.steps if isinstance(step, RenameType)
    }
    rows = tuple(_rows(view, step, before) for step in plan.steps)
    return SchemaPreview(plan, rows, view.snapshot.version)


def _rows(view: View, step: Step, before: Mapping[tuple[str, str], str]) -> int:
    """Rows that lose a value with a drop or get one by a default; every other step leaves all rows as they are."""
    match step:
        case DropType():
            return view.entry(f"{step.type_kind}:{step.name}").row_count
        case AddProperty() if step.default is not None:
            return view.entry(_accepted_key(step, before)).row_count
        case DropProperty() if step.type_kind != "interface":
            return _valued(view, _accepted_key(step, before), step.property_name)
        case _:
            return 0


def _accepted_key(step: AddProperty | DropProperty, before: Mapping[tuple[str, str], str]) -> str:
    return f"{step.type_kind}:{before.get((step.type_kind, step.type_name), step.type_name)}"


def _valued(view: View, table_key: str, name: str) -> int:
    rows = view.entry(table_key).row_count
    declared = view.catalog.find_table(table_key)
    known = None if declared is None else declared.find_property(name)
    if rows == 0 or known is None or not known.type.nullable:
        return rows
    return view.table(table_key).count_rows(f"`{name}` IS NOT NULL")
