"""What is dropped, what goes with it, and the lint code that says so."""

from __future__ import annotations

from omnigraph.catalog.catalog import Check, Constraint, Key, Kind, Property, Range, TableType
from omnigraph.catalog.evolution.steps import (
    DROPS_EDGE_TYPE,
    DROPS_NODE_TYPE,
    DROPS_PROPERTY,
    DROPS_VECTOR,
    DropMode,
    DropProperty,
    DropType,
)
from omnigraph.catalog.identity import AnyType


def lost_constraints(owner: AnyType, property_name: str) -> tuple[Constraint, ...]:
    """The constraints that cannot outlive the property. A key is not among them: ids are made of it."""
    return tuple(c for c in owner.constraints if property_name in _columns(c) and not isinstance(c, Key))


def property_drop(
    kind: Kind, owner: str, gone: Property, mode: DropMode, lost: tuple[Constraint, ...], is_empty: bool
) -> DropProperty:
    code = DROPS_VECTOR if gone.type.is_vector else DROPS_PROPERTY
    loses_nothing = is_empty or kind == "interface"
    return DropProperty(kind, owner, gone.name, mode, None if loses_nothing else code, lost)


def type_drop(gone: TableType, mode: DropMode, is_empty: bool) -> DropType:
    code = DROPS_NODE_TYPE if gone.kind == "node" else DROPS_EDGE_TYPE
    return DropType(gone.kind, gone.name, mode, None if is_empty else code)


def _columns(constraint: Constraint) -> tuple[str, ...]:
    return (constraint.column,) if isinstance(constraint, Range | Check) else constraint.columns
