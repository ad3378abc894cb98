"""What changed in one type that goes on, told as steps.

Holds at every return: constraints, endpoints and embeddings are compared under their new names, so that a rename is
one step; a change no step can make is an UnsupportedChange in the place where its step would stand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from omnigraph.catalog.catalog import (
    Annotation,
    Check,
    Constraint,
    EdgeType,
    Embed,
    Index,
    Key,
    NodeType,
    Property,
    Range,
    Scalar,
    Unique,
)
from omnigraph.catalog.evolution.drops import lost_constraints
from omnigraph.catalog.evolution.steps import (
    ADDS_REQUIRED,
    CHANGES_TYPE,
    TIGHTENS_NULLABLE,
    AddConstraint,
    AddProperty,
    ExtendEnum,
    MetadataChange,
    RenameProperty,
    RenameType,
    Step,
    UnsupportedChange,
    UpdatePropertyMetadata,
    UpdateTypeMetadata,
)
from omnigraph.catalog.identity import AnyType, Matches
from omnigraph.catalog.types import PropertyType


@dataclass(frozen=True)
class TypeChange:
    """A type before and after; `continued` gives, for each property that is not new, the accepted one."""

    new: AnyType
    old: AnyType
    continued: Mapping[str, Property]
    matched: Matches

    @property
    def entity(self) -> str:
        return f"{self.new.kind}:{self.new.name}"

    @cached_property
    def renamed(self) -> Mapping[str, str]:
        """The new name of each accepted property that goes on."""
        return {before.name: name for name, before in self.continued.items()}

    @cached_property
    def added(self) -> Mapping[str, Property]:
        return {known.name: known for known in self.new.properties if known.name not in self.continued}


def type_steps(change: TypeChange) -> Iterator[Step]:
    """Rename, metadata, properties, constraints, in this order."""
    new, old = change.new, change.old
    if new.name != old.name:
        yield RenameType(new.kind, old.name, new.name)
    changes = _changes(
        ("description", old.description, new.description), ("instruction", old.instruction, new.instruction)
    )
    if changes:
        yield UpdateTypeMetadata(new.kind, new.name, changes)
    yield from _header_changes(change)
    for known in new.properties:
        before = change.continued.get(known.name)
        if before is None:
            yield _added_property(change, known)
        else:
            yield from _property_steps(change, before, known)
    yield from _constraint_steps(change)


def _header_changes(change: TypeChange) -> Iterator[Step]:
    new, old = change.new, change.old
    yield from _opaque(change.entity, old.annotations, new.annotations)
    if isinstance(new, NodeType) and isinstance(old, NodeType) and new.implements != old.implements:
        before, after = (", ".join(names) or "nothing" for names in (old.implements, new.implements))
        yield UnsupportedChange(change.entity, f"changing implements from {before} to {after}")
    if isinstance(new, EdgeType) and isinstance(old, EdgeType):
        ends = ((old.src_type, new.src_type), (old.dst_type, new.dst_type))
        if not all(_continues(change.matched, was, now) for was, now in ends):
            before, after = f"{old.src_type} -> {old.dst_type}", f"{new.src_type} -> {new.dst_type}"
            yield UnsupportedChange(change.entity, f"changing endpoints from {before} to {after}")
        if new.cardinality != old.cardinality:
            before, after = (f"{c.min}..{'' if c.max is None else c.max}" for c in (old.cardinality, new.cardinality))
            yield UnsupportedChange(change.entity, f"changing @card from {before} to {after}")


def _continues(matched: Matches, was: str, now: str) -> bool:
    node = matched.get(("node", now))
    return node is not None and node.name == was


def _added_property(change: TypeChange, known: Property) -> Step:
    new = change.new
    if known.type.nullable or new.kind == "interface":
        return AddProperty(new.kind, new.name, known.name, known.type)
    if known.default is None:
        reason = f"adding required property '{known.name}' without a value for existing rows"
        return UnsupportedChange(f"{change.entity}.{known.name}", reason, ADDS_REQUIRED)
    return AddProperty(new.kind, new.name, known.name, known.type, known.default)


def _property_steps(change: TypeChange, before: Property, known: Property) -> Iterator[Step]:
    kind, owner, entity = change.new.kind, change.new.name, f"{change.entity}.{known.name}"
    if before.name != known.name:
        yield RenameProperty(kind, owner, before.name, known.name)
    if before.type != known.type:
        gained = _gained_values(before.type, known.type)
        if gained:
            yield ExtendEnum(kind, owner, known.name, gained)
        else:
            yield from _type_change(entity, before.type, known.type)
    changes = _changes(
        ("description", before.description, known.description), ("default", before.default, known.default)
    )
    if changes:
        yield UpdatePropertyMetadata(kind, owner, known.name, changes)
    if _renamed_embed(before.embed, change.renamed) != known.embed:
        yield UnsupportedChange(entity, f"changing @embed of '{known.name}'")
    yield from _opaque(entity, before.annotations, known.annotations)


def _gained_values(before: PropertyType, after: PropertyType) -> tuple[str, ...]:
    """The values an enum has gained, if nothing else about it changed; else nothing."""
    if replace(before, enum_values=after.enum_values) != after or not before.is_enum:
        return ()
    kept = set(before.enum_values) <= set(after.enum_values)
    return tuple(value for value in after.enum_values if value not in before.enum_values) if kept else ()


def _type_change(entity: str, before: PropertyType, after: PropertyType) -> Iterator[Step]:
    yield UnsupportedChange(entity, f"changing property type from {before} to {after}", CHANGES_TYPE)
    if before.nullable and not after.nullable:
        reason = f"tightening nullable to required: rows may hold null where {after} is declared"
        yield UnsupportedChange(entity, reason, TIGHTENS_NULLABLE)


def _constraint_steps(change: TypeChange) -> Iterator[Step]:
    new, old = change.new, change.old
    gone = [known.name for known in old.properties if known.name not in change.renamed]
    lost = {constraint for name in gone for constraint in lost_constraints(old, name)}
    before = [_renamed_constraint(c, change.renamed) for c in old.constraints if c not in lost]
    for constraint in new.constraints:
        if constraint in before:
            continue
        if _holds_already(constraint, change.added):
            yield AddConstraint(new.kind, new.name, constraint)
        else:
            yield UnsupportedChange(change.entity, f"adding constraint {constraint}")
    for constraint in before:
        if constraint not in new.constraints:
            yield UnsupportedChange(change.entity, f"removing constraint {constraint}")


def _holds_already(constraint: Constraint, added: Mapping[str, Property]) -> bool:
    """Whether no row that is there can break the constraint: null is exempt, and a default was checked to fit."""
    match constraint:
        case Index():
            return True
        case Key():
            return False
        case Unique(columns=columns):
            return any(name in added and added[name].type.nullable for name in columns)
        case Range(column=column) | Check(column=column):
            return column in added


def _renamed_constraint(constraint: Constraint, renamed: Mapping[str, str]) -> Constraint:
    match constraint:
        case Range() | Check():
            return replace(constraint, column=renamed.get(constraint.column, constraint.column))
        case _:
            return replace(constraint, columns=tuple(renamed.get(name, name) for name in constraint.columns))


def _renamed_embed(embed: Embed | None, renamed: Mapping[str, str]) -> Embed | None:
    return None if embed is None else replace(embed, source=renamed.get(embed.source, embed.source))


def _changes(*members: tuple[str, Scalar | None, Scalar | None]) -> tuple[MetadataChange, ...]:
    return tuple(MetadataChange(name, before, after) for name, before, after in members if before != after)


def _opaque(entity: str, before: tuple[Annotation, ...], after: tuple[Annotation, ...]) -> Iterator[Step]:
    names = dict.fromkeys(f"@{annotation.name}" for annotation in sorted({*before} ^ {*after}))
    if before != after:
        yield UnsupportedChange(entity, f"changing annotation {', '.join(names)}".rstrip())
