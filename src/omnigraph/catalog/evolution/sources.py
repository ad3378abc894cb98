"""Plans from a schema text, and refusals that say where in it the trouble stands."""

from __future__ import annotations

from collections.abc import Container, Mapping

from omnigraph.base.errors import UnsupportedSchemaChange
from omnigraph.catalog.build import build
from omnigraph.catalog.evolution.places import position_of
from omnigraph.catalog.evolution.plan import SchemaPlan, plan_schema
from omnigraph.catalog.evolution.steps import ADDS_REQUIRED, CHANGES_TYPE, TIGHTENS_NULLABLE
from omnigraph.catalog.identity import WrongRenameHint
from omnigraph.catalog.ir import SchemaIr
from omnigraph.lang.pg.parser import parse_schema

_HINTS: Mapping[str, str] = {
    ADDS_REQUIRED: "Give it @default(literal) for the rows that are there, or make it nullable.",
    CHANGES_TYPE: "Add a nullable property of the new type under another name, fill it, then drop the old one.",
    TIGHTENS_NULLABLE: "Keep it nullable, or add a required property with @default(literal) and drop this one.",
}
_OTHER_HINT = "Leave this part as it is; the rest of the change can be applied without it."


def plan_source(
    accepted: SchemaIr,
    source: str,
    *,
    file: str | None = None,
    allow_data_loss: bool = False,
    empty: Container[str] = (),
) -> SchemaPlan:
    """`plan_schema` for a `.pg` text; everything wrong with the text is told with its place."""
    tree = parse_schema(source, file)
    try:
        return plan_schema(accepted, build(tree), allow_data_loss=allow_data_loss, empty=empty)
    except WrongRenameHint as error:
        at = position_of(tree, error.entity, "rename_from")
        if at is not None:
            error.line, error.column, error.file = at.line, at.column, file
        raise


def refuse_unsupported(plan: SchemaPlan, source: str, file: str | None = None) -> None:
    """Raise the first unsupported step of the plan of this text, if there is one."""
    if plan.supported:
        return
    first, rest = plan.unsupported[0], len(plan.unsupported) - 1
    at = position_of(parse_schema(source, file), first.entity)
    line, column = (None, None) if at is None else (at.line, at.column)
    more = f" (and {rest} more)" if rest else ""
    hint = _HINTS.get(first.code or "", _OTHER_HINT)
    raise UnsupportedSchemaChange(
        f"{first.describe()}{more}",
        f"Nothing was written. {hint}",
        line,
        column,
        file,
        entity=first.entity,
        lint_code=first.code,
    )
