"""The steps of a schema change as lines: what comes, goes or is renamed, and what cannot be done and where."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, assert_never

from omnigraph.cli.output import json_text, one_line
from omnigraph.cli.sources import excerpt

if TYPE_CHECKING:
    from omnigraph.catalog.evolution.plan import SchemaPlan
    from omnigraph.catalog.evolution.steps import MetadataChange, Step
    from omnigraph.cli.change_text import Line
    from omnigraph.lang.diagnostics import Position

_CAME, _CHANGED, _WENT, _REFUSED, _ABOUT = "green", "yellow", "red", "bold red", "dim"
_STYLES = {
    "add_type": _CAME,
    "add_property": _CAME,
    "add_constraint": _CAME,
    "extend_enum": _CAME,
    "drop_type": _WENT,
    "drop_property": _WENT,
    "unsupported_change": _REFUSED,
}


def plan_lines(plan: SchemaPlan, source: str, file: str, rows: Sequence[int] | None = None) -> Iterator[Line]:
    """One line for each step, with its rows if they were counted; under a refused one its place in the file."""
    if not plan.steps:
        yield "no schema changes", _ABOUT
        return
    texts = [f"- {step_text(step)}" for step in plan.steps]
    width = max(len(text) for text in texts)
    place = _finder(plan, source, file)
    for number, (step, text) in enumerate(zip(plan.steps, texts, strict=True)):
        counted = "" if rows is None else _counted(rows[number])
        yield one_line(f"{text:<{width}}  {counted}".rstrip() if counted else text), _STYLES.get(step.kind, _CHANGED)
        at = place(step)
        if at is not None:
            yield f"    {one_line(file)}:{at.line}:{at.column}", _ABOUT
            yield from ((f"    {line}", _ABOUT) for line in excerpt(source, at.line, at.column))


def step_text(step: Step) -> str:
    """A step in words."""
    from omnigraph.catalog.evolution import steps as s

    match step:
        case s.AddType():
            return f"add {_typed(step.type_kind)} '{step.name}'"
        case s.RenameType():
            return f"rename {_typed(step.type_kind)} '{step.from_}' to '{step.to}'"
        case s.AddProperty():
            filled = "" if step.default is None else f", {json_text(step.default)} in existing rows"
            return f"add property '{step.type_name}.{step.property_name}' ({step.property_type}{filled})"
        case s.RenameProperty():
            return f"rename property '{step.type_name}.{step.from_}' to '{step.to}'"
        case s.ExtendEnum():
            return f"extend enum '{step.type_name}.{step.property_name}' with {', '.join(step.added_values)}"
        case s.AddConstraint():
            return f"add constraint {step.constraint} to '{step.type_name}'"
        case s.UpdateTypeMetadata():
            return f"update metadata of '{step.name}': {_members(step.changes)}"
        case s.UpdatePropertyMetadata():
            return f"update metadata of '{step.type_name}.{step.property_name}': {_members(step.changes)}"
        case s.DropProperty():
            lost = f" and {', '.join(str(c) for c in step.constraints)}" if step.constraints else ""
            return f"drop property '{step.type_name}.{step.property_name}'{lost} ({step.mode}){_code(step.code)}"
        case s.DropType():
            return f"drop {_typed(step.type_kind)} '{step.name}' ({step.mode}){_code(step.code)}"
        case s.UnsupportedChange():
            return f"unsupported change on {step.entity}{_code(step.code)}: {step.reason}"
        case _:
            assert_never(step)


def _finder(plan: SchemaPlan, source: str, file: str) -> Callable[[Step], Position | None]:
    """Where an unsupported change stands; what was taken out of the file stands nowhere."""
    from omnigraph.catalog.evolution.places import position_of
    from omnigraph.catalog.evolution.steps import UnsupportedChange
    from omnigraph.lang.pg.parser import parse_schema

    if plan.supported:
        return lambda step: None
    tree = parse_schema(source, file)
    return lambda step: position_of(tree, step.entity) if isinstance(step, UnsupportedChange) else None


def _typed(kind: str) -> str:
    return kind if kind == "interface" else f"{kind} type"


def _members(changes: Sequence[MetadataChange]) -> str:
    return ", ".join(f"@{change.member}" for change in changes)


def _code(code: str | None) -> str:
    from omnigraph.catalog.evolution.steps import TIERS

    return "" if code is None else f" [{code}, {TIERS[code]}]"


def _counted(rows: int) -> str:
    return f"{rows} {'row' if rows == 1 else 'rows'}"
