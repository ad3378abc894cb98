"""NDJSON in OmniGraph's own form: the records name their types, so types and edges are read off them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from omnigraph.base.errors import BadRequest
from omnigraph.catalog.types import ScalarType
from omnigraph.pipeline.infer import names
from omnigraph.pipeline.infer.draft import EdgeDraft, NodeDraft, left_out, property_draft
from omnigraph.pipeline.infer.inputs import Input
from omnigraph.pipeline.infer.json_lines import Record, is_own, read_records
from omnigraph.pipeline.infer.json_table import Members, member_texts
from omnigraph.pipeline.infer.keys import Values, is_contained, is_unique, relation
from omnigraph.pipeline.infer.profile import ColumnProfile
from omnigraph.pipeline.infer.sampling import sampled
from omnigraph.sets.scratch import Scratch

_KEYS_MAX = 8
_ENDS = ("from", "to")


@dataclass
class OwnType:
    """A node or edge type of some files, its members as columns; an edge has its ends among them."""

    kind: str
    name: str
    members: Members
    columns: tuple[ColumnProfile, ...] = ()
    files: list[str] = field(default_factory=list)
    limit: int | None = None

    def values(self, column: ColumnProfile) -> Iterator[pa.Array]:
        for records in sampled(read_records(self.files), self.limit):
            chosen = [flat(r) for r in records if r.get(self.kind) == self.name]
            yield member_texts(column, chosen)

    def column(self, name: str) -> ColumnProfile | None:
        return next((column for column in self.columns if column.name == name), None)

    @property
    def candidates(self) -> list[ColumnProfile]:
        """What may be the key, the most likely first. Where records give ids, only what equals the id may be."""
        found = [c for c in self.columns if c.may_be_key and c.name != "id"]
        found.sort(key=lambda c: (names.key_rank(c.name, self.name), c.position))
        return found[:_KEYS_MAX]


def flat(record: Record) -> Record:
    data = record.get("data") or {}
    return {**data, **{end: record[end] for end in _ENDS}} if "edge" in record else data


def read_types(given: Input, limit: int | None, found: dict[tuple[str, str], OwnType]) -> Iterator[int]:
    """Look at every record and add to the types; yields the rows of each batch."""
    for records in sampled(read_records(given.files), limit):
        grouped: dict[tuple[str, str], list[Record]] = {}
        for record in records:
            if not is_own(record):
                told = f"'{given.given}' mixes records of OmniGraph's form with others"
                raise BadRequest(told, 'Each line must be {"type":…,"data":…} or {"edge":…,"from":…,"to":…}, or none.')
            kind = "type" if "type" in record else "edge"
            grouped.setdefault((kind, str(record[kind])), []).append(flat(record))
        for key, members in grouped.items():
            if key not in found:
                found[key] = OwnType(*key, Members(given.given, strict=True), limit=limit)
            found[key].members.add(members)
            found[key].files += [file for file in given.files if file not in found[key].files]
        yield len(records)


def draft_types(types: Sequence[OwnType], scratch: Scratch) -> tuple[tuple[NodeDraft, ...], tuple[EdgeDraft, ...]]:
    """Nodes with the keys that the edges use, and edges between them."""
    for each in types:
        each.columns = each.members.columns()
        _refuse_unholdable(each)
    nodes = [each for each in types if each.kind == "type"]
    keys = {node.name: _unique_keys(node, scratch) for node in nodes}
    chosen: dict[str, ColumnProfile | None] = {}
    edges = [
        _edge(each, *(_end(each, end, nodes, keys, chosen, scratch) for end in _ENDS))
        for each in types
        if each.kind == "edge"
    ]
    for node in nodes:
        chosen.setdefault(node.name, keys[node.name][0] if keys[node.name] else None)
    return tuple(_node(node, chosen[node.name]) for node in nodes), tuple(edges)


def _unique_keys(node: OwnType, scratch: Scratch) -> list[ColumnProfile]:
    ids = node.column("id")
    if ids is not None and (ids.nulls or not _texts_only(ids)):
        return []
    values: Values = node.values
    found = [c for c in node.candidates if is_unique(scratch, values, c)]
    return [c for c in found if ids is None or _same(node, c)]


def _texts_only(column: ColumnProfile) -> bool:
    return column.family in ("text", "time")


def _same(node: OwnType, column: ColumnProfile) -> bool:
    """Whether each record's explicit id is the one that the column would make."""
    ids = replace(column, name="id", scalar=ScalarType.STRING)
    pairs = zip(node.values(ids), node.values(column), strict=True)
    return all(given.equals(made) for given, made in pairs)


def _end(
    edge: OwnType,
    end: str,
    nodes: Sequence[OwnType],
    keys: dict[str, list[ColumnProfile]],
    chosen: dict[str, ColumnProfile | None],
    scratch: Scratch,
) -> tuple[str, str]:
    """The node type that holds all ends, and what to say about it."""
    column = edge.column(end)
    if column is None or not _texts_only(column) or not nodes:
        told = f"no node type is known for '{end}' of edge {edge.name}"
        raise BadRequest(told, "Give the files with the nodes too, and ends as texts.")
    part = relation(edge.values, replace(column, scalar=ScalarType.STRING))
    for node in nodes:
        ids = node.column("id")
        if ids is not None and not ids.nulls and node.name not in chosen and not keys[node.name]:
            whole = relation(node.values, replace(ids, scalar=ScalarType.STRING))
            if is_contained(scratch, part, whole):
                return node.name, f"every '{end}' is the id of a {node.name}"
        known = chosen.get(node.name)
        for key in [known] if known is not None else keys[node.name]:
            if is_contained(scratch, part, relation(node.values, key)):
                chosen[node.name] = key
                return node.name, f"every '{end}' is the {key.name} of a {node.name}"
    return nodes[0].name, f"a guess: no type holds every '{end}'; loading will name those that are missing"


def _refuse_unholdable(each: OwnType) -> None:
    for column in each.columns:
        if column.left_out:
            told = f"member '{column.name}' of {each.name} holds {column.left_out}, which no property type holds"
            raise BadRequest(told, 'Load plain rows instead ({"name":…} without type and data), or change them.')


def _node(node: OwnType, key: ColumnProfile | None) -> NodeDraft:
    properties = tuple(
        property_draft(column, column.name, is_key=key is not None and column.name == key.name)
        for column in node.columns
        if column.name != "id"
    )
    comments = [f"{node.members.rows} records of {', '.join(node.files)}", *left_out(node.columns)]
    return NodeDraft(node.name, None, properties, tuple(comments))


def _edge(edge: OwnType, src: tuple[str, str], dst: tuple[str, str]) -> EdgeDraft:
    properties = tuple(property_draft(c, c.name) for c in edge.columns if c.name not in ("id", *_ENDS))
    comments = (f"{edge.members.rows} records of {', '.join(edge.files)}", src[1], dst[1])
    # Edges are found whatever the case of their names; in a schema they begin with a capital.
    name = edge.name[0].upper() + edge.name[1:]
    return EdgeDraft(name, src[0], dst[0], None, properties=properties, comments=comments)
