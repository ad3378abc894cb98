"""Gives types, properties and tables their lasting ids.

Holds for every schema of a graph:
  1. All ids come from one counter that starts at 1, only grows, and never gives an id twice.
  2. A declaration keeps its ids while it keeps its kind and name, or is renamed with a hint; otherwise it is new.
  3. New ids go to types (interface, node, edge; then name), to properties (owners in that order; then name), and
     then to incarnations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import TypeVar

from omnigraph.base.errors import CatalogError
from omnigraph.catalog.catalog import Catalog, EdgeType, InterfaceType, NodeType, Property
from omnigraph.catalog.ir import SchemaIr

AnyType = InterfaceType | NodeType | EdgeType
T = TypeVar("T", InterfaceType, NodeType, EdgeType)
_CONSUMED = "the accepted declaration is consumed by more than one"
_NO_HINT = "Correct the hint, or leave it out to add something new."
_ONE_HINT = "Let one declaration go on from it and leave the other hints out."


@dataclass(eq=False)
class WrongRenameHint(CatalogError):
    """A `@rename_from` that names nothing which could be renamed so; `entity` is where it stands."""

    entity: str = ""


@dataclass(frozen=True)
class _Ids:
    """Every id of one schema, by (kind, type name) and by (kind, type name, property name)."""

    types: dict[tuple[str, str], int]
    properties: dict[tuple[str, str, str], int]
    incarnations: dict[tuple[str, str], int]


def assign(declared: Catalog, previous: SchemaIr | None, domain: str | None = None) -> SchemaIr:
    """The declared catalog with ids; those of `previous` are kept. A first schema needs its `domain`."""
    if previous is None:
        assert domain is not None, "a first schema needs an identity domain"
        return _numbered(declared, Catalog(), {}, 1, domain)
    matched = match_declarations(declared, previous.catalog)
    return _numbered(declared, previous.catalog, matched, previous.next_identity_id, previous.schema_identity_domain)


Matches = Mapping[tuple[str, str], AnyType]


def match_declarations(declared: Catalog, accepted: Catalog) -> Matches:
    """For each (kind, name) that is not new, the accepted type it continues. A wrong rename hint is refused."""
    before = {(known.kind, known.name): known for known in _types(accepted)}
    now = {(known.kind, known.name): known for known in _types(declared)}
    matched: dict[tuple[str, str], AnyType] = {place: before[place] for place in now if place in before}
    claimed: dict[tuple[str, str], str] = {}
    for (kind, name), known in now.items():
        if known.rename_from is None or (kind, name) in matched:
            continue
        source = (kind, known.rename_from)
        what = f"@rename_from(\"{known.rename_from}\") on {kind} '{name}'"
        if source not in before:
            other = any(old == known.rename_from for _, old in before)
            why = _why_unmatched(other, "renames across declaration kinds are not supported")
            raise WrongRenameHint(f"{what}: {why}", _NO_HINT, entity=f"{kind}:{name}")
        if source in now or source in claimed:
            raise WrongRenameHint(f"{what}: {_CONSUMED}", _ONE_HINT, entity=f"{kind}:{name}")
        claimed[source] = name
        matched[kind, name] = before[source]
    return matched


def match_properties(declared: AnyType, old: AnyType | None, accepted: Catalog) -> Mapping[str, Property]:
    """For each property name that is not new, the accepted property it continues within its owner."""
    before = {} if old is None else {known.name: known for known in old.properties}
    now = {known.name for known in declared.properties}
    matched = {name: before[name] for name in sorted(now) if name in before}
    claimed: set[str] = set()
    for known in declared.properties:
        if known.rename_from is None or known.name in matched or old is None:
            continue
        what = f'@rename_from("{known.rename_from}") on property {declared.name}.{known.name}'
        if known.rename_from not in before:
            elsewhere = any(known.rename_from == p.name for owner in _types(accepted) for p in owner.properties)
            why = _why_unmatched(elsewhere, "property moves across owners are not supported")
            raise WrongRenameHint(f"{what}: {why}", _NO_HINT, entity=f"{declared.kind}:{declared.name}.{known.name}")
        if known.rename_from in now or known.rename_from in claimed:
            place = f"{declared.kind}:{declared.name}.{known.name}"
            raise WrongRenameHint(f"{what}: {_CONSUMED}", _ONE_HINT, entity=place)
        claimed.add(known.rename_from)
        matched[known.name] = before[known.rename_from]
    return matched


def _why_unmatched(elsewhere: bool, moved: str) -> str:
    return moved if elsewhere else "no accepted declaration has that name"


def _types(catalog: Catalog) -> tuple[AnyType, ...]:
    return (*catalog.interfaces, *catalog.nodes, *catalog.edges)


def _numbered(declared: Catalog, accepted: Catalog, matched: Matches, next_id: int, domain: str) -> SchemaIr:
    ids = _Ids({}, {}, {})
    fresh = count(next_id)
    for known in _types(declared):
        old = matched.get((known.kind, known.name))
        ids.types[known.kind, known.name] = next(fresh) if old is None else old.type_id
    for known in _types(declared):
        continued = match_properties(known, matched.get((known.kind, known.name)), accepted)
        for member in known.properties:
            before = continued.get(member.name)
            property_id = next(fresh) if before is None else before.property_id
            ids.properties[known.kind, known.name, member.name] = property_id
    for known in _types(declared):
        old = matched.get((known.kind, known.name))
        ids.incarnations[known.kind, known.name] = next(fresh) if old is None else old.incarnation
    catalog = Catalog(
        tuple(_with_ids(known, ids) for known in declared.interfaces),
        tuple(_with_ids(known, ids) for known in declared.nodes),
        tuple(_with_ids(known, ids) for known in declared.edges),
    )
    return SchemaIr(domain, next(fresh), catalog)


def _with_ids(known: T, ids: _Ids) -> T:
    kind, name = known.kind, known.name
    members = tuple(
        replace(member, property_id=ids.properties[kind, name, member.name], rename_from=None)
        for member in known.properties
    )
    type_id, incarnation = ids.types[kind, name], ids.incarnations[kind, name]
    return replace(known, properties=members, type_id=type_id, incarnation=incarnation, rename_from=None)
