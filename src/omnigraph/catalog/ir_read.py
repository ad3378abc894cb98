"""Reads the compiled schema strictly: what `to_json` did not write is refused by name.

Holds at every return: ids are unique and below the counter, lists are sorted, and every name referred to exists.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NoReturn, TypeVar

from omnigraph.catalog.catalog import (
    Annotation,
    Cardinality,
    Catalog,
    Check,
    Constraint,
    EdgeType,
    Embed,
    Index,
    InterfaceType,
    Key,
    NodeType,
    Property,
    Range,
    Unique,
)
from omnigraph.catalog.ir_write import IR_VERSION, SchemaIr
from omnigraph.catalog.types import PropertyType, ScalarType

R = TypeVar("R")
S = TypeVar("S")


class IrError(ValueError):
    """The text is not a compiled schema; the message says where."""


@dataclass
class Members:
    """A JSON object whose members are taken one by one, until none is left."""

    left: dict[str, Any]
    where: str

    @staticmethod
    def of(value: object, where: str) -> Members:
        if not isinstance(value, dict):
            raise IrError(f"{where} is not an object")
        return Members(dict(value), where)

    def take(self, name: str, kind: type[S]) -> S:
        value = self._take(name)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise IrError(f"{self.where}.{name} is not of type {kind.__name__}")
        return value

    def take_optional(self, name: str, kind: type[S]) -> S | None:
        if name in self.left and self.left[name] is None:
            del self.left[name]
            return None
        return self.take(name, kind)

    def take_list(self, name: str, read: Callable[[Any, str], R]) -> tuple[R, ...]:
        values = self.take(name, list)
        return tuple(read(value, f"{self.where}.{name}[{i}]") for i, value in enumerate(values))

    def take_scalar(self, name: str) -> str | int | float | bool | None:
        value = self._take(name)
        if value is not None and not isinstance(value, str | int | float | bool):
            raise IrError(f"{self.where}.{name} is not a literal")
        return value

    def take_number(self, name: str) -> int | float | None:
        value = self.take_scalar(name)
        if isinstance(value, str | bool):
            raise IrError(f"{self.where}.{name} is not a number")
        return value

    def done(self) -> None:
        if self.left:
            raise IrError(f"{self.where} has unknown member '{min(self.left)}'")

    def _take(self, name: str) -> Any:
        if name not in self.left:
            raise IrError(f"{self.where} lacks member '{name}'")
        return self.left.pop(name)


def load_json(data: bytes, what: str) -> object:
    """The JSON value of a small document we wrote; anything else is an IrError."""
    try:
        return json.loads(data.decode("utf-8"), parse_constant=_refuse_constant, object_pairs_hook=_refuse_repeats)
    except IrError:
        raise
    except (ValueError, RecursionError) as why:
        raise IrError(f"{what} is not JSON: {why}") from None


def from_json(data: bytes) -> SchemaIr:
    members = Members.of(load_json(data, "schema IR"), "schema IR")
    version = members.take("ir_version", int)
    if version != IR_VERSION:
        raise IrError(f"schema IR has version {version}, this release reads {IR_VERSION}")
    domain = members.take("schema_identity_domain", str)
    next_id = members.take("next_identity_id", int)
    interfaces = members.take_list("interfaces", _read_interface)
    nodes = members.take_list("nodes", _read_node)
    edges = members.take_list("edges", _read_edge)
    members.done()
    catalog = Catalog(interfaces, nodes, edges)
    _refuse_bad_ids(catalog, next_id)
    _refuse_bad_names(catalog)
    return SchemaIr(domain, next_id, catalog)


def _type_fields(members: Members) -> dict[str, Any]:
    return {
        "name": members.take("name", str),
        "properties": members.take_list("properties", _read_property),
        "constraints": members.take_list("constraints", _read_constraint),
        "type_id": members.take("type_id", int),
        "incarnation": members.take("incarnation", int),
        "description": members.take_optional("description", str),
        "instruction": members.take_optional("instruction", str),
        "annotations": members.take_list("annotations", _read_annotation),
    }


def _read_interface(value: object, where: str) -> InterfaceType:
    members = Members.of(value, where)
    found = InterfaceType(**_type_fields(members))
    members.done()
    return found


def _read_node(value: object, where: str) -> NodeType:
    members = Members.of(value, where)
    found = NodeType(**_type_fields(members), implements=members.take_list("implements", _read_text))
    members.done()
    return found


def _read_edge(value: object, where: str) -> EdgeType:
    members = Members.of(value, where)
    card = Members.of(members.take("cardinality", dict), f"{where}.cardinality")
    cardinality = Cardinality(card.take("min", int), card.take_optional("max", int))
    card.done()
    src_type, dst_type = members.take("from", str), members.take("to", str)
    found = EdgeType(**_type_fields(members), src_type=src_type, dst_type=dst_type, cardinality=cardinality)
    members.done()
    return found


def _read_property(value: object, where: str) -> Property:
    members = Members.of(value, where)
    embed = members.take_optional("embed", dict)
    found = Property(
        name=members.take("name", str),
        type=_read_type(members.take("type", dict), f"{where}.type"),
        property_id=members.take("property_id", int),
        description=members.take_optional("description", str),
        default=members.take_scalar("default"),
        embed=None if embed is None else _read_embed(embed, f"{where}.embed"),
        annotations=members.take_list("annotations", _read_annotation),
    )
    members.done()
    return found


def _read_embed(value: object, where: str) -> Embed:
    members = Members.of(value, where)
    found = Embed(members.take("source", str), members.take_optional("model", str))
    members.done()
    return found


def _read_type(value: object, where: str) -> PropertyType:
    members = Members.of(value, where)
    name = members.take("scalar", str)
    if name not in {scalar.value for scalar in ScalarType}:
        raise IrError(f"{where}.scalar '{name}' is unknown")
    found = PropertyType(
        ScalarType(name),
        nullable=members.take("nullable", bool),
        is_list=members.take("list", bool),
        enum_values=members.take_list("enum_values", _read_text),
        dimension=members.take_optional("dimension", int),
    )
    members.done()
    well_sized = found.dimension is not None and found.dimension > 0
    if found.is_vector != (found.dimension is not None) or (found.is_vector and not well_sized):
        raise IrError(f"{where}.dimension does not fit {name}")
    return found


def _read_annotation(value: object, where: str) -> Annotation:
    members = Members.of(value, where)
    found = Annotation(members.take("name", str), members.take("arguments", str))
    members.done()
    return found


def _read_constraint(value: object, where: str) -> Constraint:
    members = Members.of(value, where)
    found: Constraint
    match members.take("kind", str):
        case "key":
            found = Key(members.take_list("columns", _read_text))
        case "unique":
            found = Unique(members.take_list("columns", _read_text))
        case "index":
            found = Index(members.take_list("columns", _read_text))
        case "range":
            found = Range(members.take("column", str), members.take_number("min"), members.take_number("max"))
        case "check":
            found = Check(members.take("column", str), members.take("pattern", str))
        case other:
            raise IrError(f"{where}.kind '{other}' is unknown")
    members.done()
    return found


def _read_text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise IrError(f"{where} is not a string")
    return value


def _refuse_bad_ids(catalog: Catalog, next_id: int) -> None:
    types: list[InterfaceType | NodeType | EdgeType] = [*catalog.interfaces, *catalog.nodes, *catalog.edges]
    ids = [number for known in types for number in (known.type_id, known.incarnation)]
    ids += [declared.property_id for known in types for declared in known.properties]
    if len(set(ids)) != len(ids):
        raise IrError("schema IR gives one id twice")
    if any(not 1 <= number < next_id for number in ids):
        raise IrError("schema IR has an id outside 1..next_identity_id")


def _refuse_bad_names(catalog: Catalog) -> None:
    types: list[InterfaceType | NodeType | EdgeType] = [*catalog.interfaces, *catalog.nodes, *catalog.edges]
    for kind in (catalog.interfaces, catalog.nodes, catalog.edges):
        _refuse_unsorted((known.name for known in kind), "types")
    nodes = {node.name for node in catalog.nodes}
    interfaces = {interface.name for interface in catalog.interfaces}
    for known in types:
        names = {declared.name for declared in known.properties}
        _refuse_unsorted((declared.name for declared in known.properties), f"properties of '{known.name}'")
        allowed = names | {"src", "dst"} if isinstance(known, EdgeType) else names
        for constraint in known.constraints:
            columns = constraint.columns if isinstance(constraint, Key | Unique | Index) else (constraint.column,)
            if not columns or not set(columns) <= allowed:
                raise IrError(f"{constraint} of '{known.name}' names an unknown property")
        if isinstance(known, EdgeType) and not {known.src_type, known.dst_type} <= nodes:
            raise IrError(f"edge '{known.name}' has an unknown endpoint")
        if isinstance(known, NodeType) and not set(known.implements) <= interfaces:
            raise IrError(f"node '{known.name}' implements an unknown interface")


def _refuse_unsorted(names: Iterable[str], what: str) -> None:
    if any(a >= b for a, b in pairwise(names)):
        raise IrError(f"{what} are not sorted by name")


def _refuse_constant(text: str) -> NoReturn:
    raise IrError(f"schema IR holds {text}")


def _refuse_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) != len(pairs):
        raise IrError("a JSON member is given twice")
    return dict(pairs)
