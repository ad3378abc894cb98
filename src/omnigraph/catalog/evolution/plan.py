"""Compares the accepted schema with a desired one: the steps between them, or why there are none.

Holds for every SchemaPlan:
  1. Steps stand in the order interfaces, nodes, edges, each by name; within a type rename, metadata, properties,
     constraints; drops of properties and then of types come last.
  2. It is supported iff no step is an UnsupportedChange; equal schemas give no steps.
  3. Nothing a rename carries along (endpoints, constraints, embeddings) counts as a change.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from omnigraph.catalog.catalog import Catalog, InterfaceType, Kind
from omnigraph.catalog.evolution.compare import TypeChange, type_steps
from omnigraph.catalog.evolution.drops import lost_constraints, property_drop, type_drop
from omnigraph.catalog.evolution.steps import (
    AddConstraint,
    AddProperty,
    AddType,
    DropMode,
    ExtendEnum,
    Step,
    UnsupportedChange,
    UpdatePropertyMetadata,
    UpdateTypeMetadata,
)
from omnigraph.catalog.identity import AnyType, Matches, match_declarations, match_properties
from omnigraph.catalog.ir import SchemaIr

_ADDITIVE = (AddType, AddConstraint, ExtendEnum, UpdateTypeMetadata, UpdatePropertyMetadata)


@dataclass(frozen=True)
class SchemaPlan:
    steps: tuple[Step, ...] = ()

    @cached_property
    def unsupported(self) -> tuple[UnsupportedChange, ...]:
        return tuple(step for step in self.steps if isinstance(step, UnsupportedChange))

    @property
    def supported(self) -> bool:
        return not self.unsupported

    @cached_property
    def additive(self) -> bool:
        """Whether every row of every branch fits the desired schema as it lies, so that branches may stay."""
        return all(_is_additive(step) for step in self.steps)

    def to_json(self) -> dict[str, Any]:
        return {"supported": self.supported, "steps": [step.to_json() for step in self.steps]}


def plan_schema(
    accepted: SchemaIr, desired: Catalog, *, allow_data_loss: bool = False, empty: Container[str] = ()
) -> SchemaPlan:
    """The steps from `accepted` to `desired`; a wrong rename hint is a CatalogError.

    `empty`: keys of tables known to have no rows, whose drops lose nothing and carry no lint code.
    """
    matched = match_declarations(desired, accepted.catalog)
    mode: DropMode = "hard" if allow_data_loss else "soft"
    steps: list[Step] = []
    drops: list[Step] = []
    for known in _types(desired):
        old = matched.get((known.kind, known.name))
        if old is None:
            steps.append(AddType(known.kind, known.name))
            continue
        change = TypeChange(known, old, match_properties(known, old, accepted.catalog), matched)
        steps.extend(type_steps(change))
        drops.extend(_property_drops(change, mode, empty))
    drops.extend(_type_drops(accepted.catalog, matched, mode, empty))
    return SchemaPlan((*steps, *drops))


def _property_drops(change: TypeChange, mode: DropMode, empty: Container[str]) -> Iterator[Step]:
    kept = {known.name for known in change.continued.values()}
    for gone in change.old.properties:
        if gone.name not in kept:
            lost = lost_constraints(change.old, gone.name)
            is_empty = f"{change.old.kind}:{change.old.name}" in empty
            yield property_drop(change.new.kind, change.new.name, gone, mode, lost, is_empty)


def _type_drops(accepted: Catalog, matched: Matches, mode: DropMode, empty: Container[str]) -> Iterator[Step]:
    kept: Mapping[tuple[Kind, str], str] = {(old.kind, old.name): old.name for old in matched.values()}
    for gone in _types(accepted):
        if (gone.kind, gone.name) in kept:
            continue
        if isinstance(gone, InterfaceType):
            yield UnsupportedChange(f"interface:{gone.name}", f"removing or renaming interface '{gone.name}'")
        else:
            yield type_drop(gone, mode, gone.table_key in empty)


def _is_additive(step: Step) -> bool:
    if isinstance(step, UnsupportedChange):
        return False
    if isinstance(step, AddProperty) and step.property_type.nullable:
        return True
    # An interface has no rows; what it gives to nodes or takes from them are steps of theirs.
    return isinstance(step, _ADDITIVE) or step.type_kind == "interface"


def _types(catalog: Catalog) -> tuple[AnyType, ...]:
    return (*catalog.interfaces, *catalog.nodes, *catalog.edges)
