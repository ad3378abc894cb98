"""The steps of a schema change, as data.

Holds for every step:
  1. `kind` is its stable name and `to_json()` its public form; members that do not apply are left out.
  2. Types and properties go by their names in the desired schema, except where `from_` or a drop names the accepted.
  3. A lint code is one of `TIERS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from omnigraph.catalog.catalog import Constraint, Index, Kind, Scalar
from omnigraph.catalog.types import PropertyType

DropMode = Literal["soft", "hard"]
Tier = Literal["destructive", "validated"]

DROPS_NODE_TYPE = "OG-DS-102"
DROPS_EDGE_TYPE = "OG-DS-103"
DROPS_PROPERTY = "OG-DS-104"
DROPS_VECTOR = "OG-DS-105"
ADDS_REQUIRED = "OG-MF-103"
TIGHTENS_NULLABLE = "OG-MF-104"
CHANGES_TYPE = "OG-MF-106"

TIERS: Mapping[str, Tier] = {
    DROPS_NODE_TYPE: "destructive",
    DROPS_EDGE_TYPE: "destructive",
    DROPS_PROPERTY: "destructive",
    DROPS_VECTOR: "destructive",
    ADDS_REQUIRED: "validated",
    TIGHTENS_NULLABLE: "validated",
    CHANGES_TYPE: "destructive",
}


@dataclass(frozen=True)
class AddType:
    type_kind: Kind
    name: str
    kind: ClassVar[str] = "add_type"

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "type_kind": self.type_kind, "name": self.name}


@dataclass(frozen=True)
class RenameType:
    type_kind: Kind
    from_: str
    to: str
    kind: ClassVar[str] = "rename_type"

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "type_kind": self.type_kind, "from": self.from_, "to": self.to}


@dataclass(frozen=True)
class AddProperty:
    """A new column: null in every row that is there, or the literal `default` where the property is required."""

    type_kind: Kind
    type_name: str
    property_name: str
    property_type: PropertyType
    default: Scalar | None = None
    kind: ClassVar[str] = "add_property"

    def to_json(self) -> dict[str, Any]:
        filled = {} if self.default is None else {"default": self.default}
        return {**_owned(self), "property_name": self.property_name, "property_type": str(self.property_type), **filled}


@dataclass(frozen=True)
class RenameProperty:
    type_kind: Kind
    type_name: str
    from_: str
    to: str
    kind: ClassVar[str] = "rename_property"

    def to_json(self) -> dict[str, Any]:
        return {**_owned(self), "from": self.from_, "to": self.to}


@dataclass(frozen=True)
class ExtendEnum:
    type_kind: Kind
    type_name: str
    property_name: str
    added_values: tuple[str, ...]
    kind: ClassVar[str] = "extend_enum"

    def to_json(self) -> dict[str, Any]:
        return {**_owned(self), "property_name": self.property_name, "added_values": list(self.added_values)}


@dataclass(frozen=True)
class AddConstraint:
    """An index, or a rule about properties that the same plan adds, which no row that is there can break."""

    type_kind: Kind
    type_name: str
    constraint: Constraint
    kind: ClassVar[str] = "add_constraint"

    @property
    def is_index(self) -> bool:
        return isinstance(self.constraint, Index)

    def to_json(self) -> dict[str, Any]:
        return {**_owned(self), "constraint": str(self.constraint)}


@dataclass(frozen=True)
class MetadataChange:
    """One of `description`, `instruction` and `default`, before and after; None where there is none."""

    member: str
    from_: Scalar | None
    to: Scalar | None

    def to_json(self) -> dict[str, Any]:
        return {"member": self.member, "from": self.from_, "to": self.to}


@dataclass(frozen=True)
class UpdateTypeMetadata:
    type_kind: Kind
    name: str
    changes: tuple[MetadataChange, ...]
    kind: ClassVar[str] = "update_type_metadata"

    def to_json(self) -> dict[str, Any]:
        named = {"kind": self.kind, "type_kind": self.type_kind, "name": self.name}
        return {**named, "changes": [change.to_json() for change in self.changes]}


@dataclass(frozen=True)
class UpdatePropertyMetadata:
    type_kind: Kind
    type_name: str
    property_name: str
    changes: tuple[MetadataChange, ...]
    kind: ClassVar[str] = "update_property_metadata"

    def to_json(self) -> dict[str, Any]:
        changes = [change.to_json() for change in self.changes]
        return {**_owned(self), "property_name": self.property_name, "changes": changes}


@dataclass(frozen=True)
class DropProperty:
    """`type_name` is the owner's name in the desired schema; `constraints` are the rules that go with the column."""

    type_kind: Kind
    type_name: str
    property_name: str
    mode: DropMode
    code: str | None = None
    constraints: tuple[Constraint, ...] = ()
    kind: ClassVar[str] = "drop_property"

    def to_json(self) -> dict[str, Any]:
        gone = {"constraints": [str(c) for c in self.constraints]} if self.constraints else {}
        return {**_owned(self), "property_name": self.property_name, "mode": self.mode, **_coded(self.code), **gone}


@dataclass(frozen=True)
class DropType:
    type_kind: Kind
    name: str
    mode: DropMode
    code: str | None = None
    kind: ClassVar[str] = "drop_type"

    def to_json(self) -> dict[str, Any]:
        named = {"kind": self.kind, "type_kind": self.type_kind, "name": self.name}
        return {**named, "mode": self.mode, **_coded(self.code)}


@dataclass(frozen=True)
class UnsupportedChange:
    """`entity` is `node:Person`, `edge:Knows.since` or `interface:Named`."""

    entity: str
    reason: str
    code: str | None = None
    kind: ClassVar[str] = "unsupported_change"

    def describe(self) -> str:
        return f"[{self.code}] {self.reason}" if self.code else self.reason

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "entity": self.entity, "reason": self.reason, **_coded(self.code)}


Step = (
    AddType
    | RenameType
    | AddProperty
    | RenameProperty
    | ExtendEnum
    | AddConstraint
    | UpdateTypeMetadata
    | UpdatePropertyMetadata
    | DropProperty
    | DropType
    | UnsupportedChange
)


def _owned(
    step: AddProperty | RenameProperty | ExtendEnum | AddConstraint | UpdatePropertyMetadata | DropProperty,
) -> dict[str, Any]:
    return {"kind": step.kind, "type_kind": step.type_kind, "type_name": step.type_name}


def _coded(code: str | None) -> dict[str, Any]:
    return {} if code is None else {"code": code}
