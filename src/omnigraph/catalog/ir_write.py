"""Writes the compiled schema as JSON, and its shape without identity.

Holds for every SchemaIr:
  1. Equal schemas give equal bytes.
  2. The shape holds everything that changes what the schema means, and nothing else.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, assert_never

from omnigraph.catalog.catalog import (
    Annotation,
    Catalog,
    Check,
    Constraint,
    EdgeType,
    Index,
    InterfaceType,
    Key,
    NodeType,
    Property,
    Range,
    Unique,
)
from omnigraph.catalog.types import PropertyType

IR_VERSION = 2


@dataclass(frozen=True)
class SchemaIr:
    """A catalog with ids, the graph it belongs to, and the id that is given next."""

    schema_identity_domain: str
    next_identity_id: int
    catalog: Catalog


def compact_json(value: object) -> bytes:
    """The one byte form that is hashed: sorted members, no blanks."""
    return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False, allow_nan=False).encode()


def to_json(ir: SchemaIr) -> bytes:
    return compact_json(
        {
            "ir_version": IR_VERSION,
            "schema_identity_domain": ir.schema_identity_domain,
            "next_identity_id": ir.next_identity_id,
            **_catalog(ir.catalog, ids=True),
        }
    )


def shape_json(catalog: Catalog) -> bytes:
    """What the schema means, without who it is: no ids, no rename hints, nothing of the layout."""
    return compact_json(_catalog(catalog, ids=False))


def _catalog(catalog: Catalog, *, ids: bool) -> dict[str, Any]:
    return {
        "interfaces": [_type(known, ids=ids) for known in catalog.interfaces],
        "nodes": [_node(known, ids=ids) for known in catalog.nodes],
        "edges": [_edge(known, ids=ids) for known in catalog.edges],
    }


def _node(known: NodeType, *, ids: bool) -> dict[str, Any]:
    return {**_type(known, ids=ids), "implements": list(known.implements)}


def _edge(known: EdgeType, *, ids: bool) -> dict[str, Any]:
    return {
        **_type(known, ids=ids),
        "from": known.src_type,
        "to": known.dst_type,
        "cardinality": {"min": known.cardinality.min, "max": known.cardinality.max},
    }


def _type(known: InterfaceType | NodeType | EdgeType, *, ids: bool) -> dict[str, Any]:
    identity = {"type_id": known.type_id, "incarnation": known.incarnation} if ids else {}
    return {
        **identity,
        "name": known.name,
        "description": known.description,
        "instruction": known.instruction,
        "annotations": [_annotation(annotation) for annotation in known.annotations],
        "properties": [_property(declared, ids=ids) for declared in known.properties],
        "constraints": [_constraint(constraint) for constraint in known.constraints],
    }


def _property(declared: Property, *, ids: bool) -> dict[str, Any]:
    embed = declared.embed
    return {
        **({"property_id": declared.property_id} if ids else {}),
        "name": declared.name,
        "type": _property_type(declared.type),
        "description": declared.description,
        "default": declared.default,
        "embed": None if embed is None else {"source": embed.source, "model": embed.model},
        "annotations": [_annotation(annotation) for annotation in declared.annotations],
    }


def _property_type(type_: PropertyType) -> dict[str, Any]:
    return {
        "scalar": type_.scalar.value,
        "nullable": type_.nullable,
        "list": type_.is_list,
        "enum_values": list(type_.enum_values),
        "dimension": type_.dimension,
    }


def _annotation(annotation: Annotation) -> dict[str, Any]:
    return {"name": annotation.name, "arguments": annotation.arguments}


def _constraint(constraint: Constraint) -> dict[str, Any]:
    match constraint:
        case Key(columns=columns) | Unique(columns=columns) | Index(columns=columns):
            return {"kind": constraint.name, "columns": list(columns)}
        case Range(column=column, lo=lo, hi=hi):
            return {"kind": "range", "column": column, "min": lo, "max": hi}
        case Check(column=column, pattern=pattern):
            return {"kind": "check", "column": column, "pattern": pattern}
        case _:
            assert_never(constraint)
