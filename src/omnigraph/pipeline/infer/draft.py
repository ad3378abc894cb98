"""The draft as values: types, edges and mappings, decided on profiles alone.

Holds for every Draft: names are unique in any case, none is reserved, every edge runs between keyed types, and each
column is a property, an edge, or left out with a reason.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from omnigraph.catalog.types import ScalarType
from omnigraph.pipeline.infer import names
from omnigraph.pipeline.infer.profile import ENUM_ROWS_MIN, TO_JSON, ColumnProfile, Reference, TableProfile

_ENUM_VALUE = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True)
class PropertyDraft:
    name: str
    type: str
    expression: str
    comment: str = ""
    is_key: bool = False


@dataclass(frozen=True)
class NodeDraft:
    """`source` is None where the records name their types themselves and need no mapping."""

    name: str
    source: str | None
    properties: tuple[PropertyDraft, ...]
    comments: tuple[str, ...] = ()


@dataclass(frozen=True)
class EdgeDraft:
    name: str
    src_type: str
    dst_type: str
    source: str | None
    src: str = ""
    dst: str = ""
    where: str = ""
    properties: tuple[PropertyDraft, ...] = ()
    comments: tuple[str, ...] = ()


@dataclass(frozen=True)
class SourceDraft:
    name: str
    format: str
    paths: tuple[str, ...]
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Draft:
    sources: tuple[SourceDraft, ...] = ()
    nodes: tuple[NodeDraft, ...] = ()
    edges: tuple[EdgeDraft, ...] = ()


@dataclass
class Taken:
    """Names that are given away, in lower case."""

    nodes: set[str] = field(default_factory=set)
    edges: set[str] = field(default_factory=set)
    sources: set[str] = field(default_factory=set)


def make_draft(tables: Sequence[TableProfile], references: Sequence[Reference], taken: Taken | None = None) -> Draft:
    taken = taken or Taken()
    types = [names.unique(names.type_name(table.title), taken.nodes) for table in tables]
    sources = [names.unique(names.source_name(table.title), taken.sources) for table in tables]
    linked = {k: found for k in range(len(tables)) if (found := _link(k, tables[k], references))}
    # A table that is an edge has no nodes to point at; it has no key either.
    nodes, edges = [], []
    for k, table in enumerate(tables):
        if k in linked:
            edges.append(_link_draft(table, linked[k], tables, types, sources[k], taken))
            continue
        mine = [r for r in references if r.table == k and table.key is not None]
        nodes.append(_node(table, types[k], sources[k], mine, references, k, tables))
        edges += [_edge(table, r, tables, types, sources[k], taken) for r in mine]
    drafted = [SourceDraft(s, t.format, t.paths, t.options) for s, t in zip(sources, tables, strict=True)]
    return Draft(tuple(drafted), tuple(nodes), tuple(edges))


def _link(place: int, table: TableProfile, references: Sequence[Reference]) -> tuple[Reference, Reference] | None:
    """The two ends of a table that only links others: no key of its own, two complete references."""
    if table.key is not None:
        return None
    order = [column.name for column in table.columns]
    mine = sorted((r for r in references if r.table == place), key=lambda r: order.index(r.column))
    complete = [r for r in mine if not table.column(r.column).nulls]
    return (complete[0], complete[1]) if len(complete) >= 2 else None


def quoted(column: str) -> str:
    return f"`{column.replace('`', '``')}`"


def plain(column: str) -> str:
    """A column by its name alone, in quotes of SQL where it is no plain word."""
    return column if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", column) else quoted(column)


def expression(column: ColumnProfile) -> str:
    if column.cast is None:
        return plain(column.name)
    is_json = column.cast == TO_JSON
    return f"to_json({quoted(column.name)})" if is_json else f"cast({quoted(column.name)} as {column.cast})"


def _end(column: ColumnProfile) -> str:
    """A column as an id. A text is one already, unless the id of its key is a number of days or milliseconds."""
    kinds = {ScalarType.DATE: "date", ScalarType.DATETIME: "timestamp"}
    if column.is_text_at_source and column.scalar in kinds:
        return f"cast({quoted(column.name)} as {kinds[column.scalar]})"
    return plain(column.name)


def type_text(column: ColumnProfile, *, is_key: bool = False) -> str:
    core = column.scalar.value
    if is_enum(column) and not is_key:
        core = f"enum({', '.join(column.distinct or ())})"
    elif column.is_list:
        core = f"[{core}]"
    return core + ("?" if column.nulls else "")


def is_enum(column: ColumnProfile) -> bool:
    if column.scalar is not ScalarType.STRING or column.is_list or column.rows < ENUM_ROWS_MIN:
        return False
    return bool(column.distinct) and all(_ENUM_VALUE.fullmatch(value) for value in column.distinct or ())


def property_draft(column: ColumnProfile, name: str, *, is_key: bool = False, extra: str = "") -> PropertyDraft:
    told = []
    if is_key:
        told.append(f"unique and complete in {column.rows} rows")
    if column.nulls:
        told.append(f"{column.nulls} of {column.rows} empty")
    if not is_key and column.distinct and column.rows >= ENUM_ROWS_MIN and not column.is_list:
        few = f"{len(column.distinct)} different values in {column.rows} rows"
        told.append(few if is_enum(column) else f"{few}, no enum because of their characters")
    told += [text for text in (column.note, extra) if text]
    if name != column.name:
        told.insert(0, f"column {_told(column.name)}")
    return PropertyDraft(name, type_text(column, is_key=is_key), expression(column), "; ".join(told), is_key)


def _told(column: str) -> str:
    return "'" + "".join(c if c.isprintable() else "�" for c in column) + "'"


def left_out(columns: Sequence[ColumnProfile]) -> tuple[str, ...]:
    return tuple(f"left out: {_told(c.name)}, {c.left_out}" for c in columns if c.left_out)


def _properties(
    table: TableProfile, owner: str, without: set[str], reserved: frozenset[str], extras: dict[str, str]
) -> tuple[PropertyDraft, ...]:
    taken: set[str] = set()
    kept = [c for c in table.columns if not c.left_out and c.name not in without]
    # Names that can stay as they are come first, so that a renamed column gives way to them.
    wanted = {c.name: names.property_name(c.name, c.position, owner, reserved) for c in kept}
    given = {c.name: names.unique(wanted[c.name], taken) for c in sorted(kept, key=lambda c: wanted[c.name] != c.name)}
    return tuple(
        property_draft(c, given[c.name], is_key=c.name == table.key, extra=extras.get(c.name, "")) for c in kept
    )


def _node(
    table: TableProfile,
    type_: str,
    source: str,
    mine: Sequence[Reference],
    references: Sequence[Reference],
    place: int,
    tables: Sequence[TableProfile],
) -> NodeDraft:
    edges = {r.column for r in mine if r.column != table.key}
    extras = {}
    if table.key is None:
        held = [r for r in references if r.table == place]
        extras = {r.column: f"every value is a {tables[r.target].title} key; an edge needs a key here" for r in held}
    comments = [f"{table.rows} rows of {', '.join(table.paths)}", *table.notes, *left_out(table.columns)]
    if table.key is None:
        comments.append("no column is unique and complete, so there is no @key: every load adds the rows again")
    properties = _properties(table, source, edges, names.NODE_RESERVED, extras)
    return NodeDraft(type_, source, properties, tuple(comments))


def _edge(
    table: TableProfile,
    reference: Reference,
    tables: Sequence[TableProfile],
    types: Sequence[str],
    source: str,
    taken: Taken,
) -> EdgeDraft:
    assert table.key is not None
    column, target = table.column(reference.column), tables[reference.target]
    name = names.unique(names.edge_name(types[reference.table], column.name), taken.edges)
    known = column.rows - column.nulls
    told = f"all {known} values of {_told(column.name)} occur in {types[reference.target]}.{_told(target.key or '')}"
    comments = [f"a guess: {told}"]
    if column.name != table.key:
        comments.append("the column is this edge and no property")
    where = f"{quoted(column.name)} is not null"
    ends = (types[reference.table], types[reference.target])
    return EdgeDraft(name, *ends, source, _end(table.column(table.key)), _end(column), where, (), tuple(comments))


def _link_draft(
    table: TableProfile,
    ends: tuple[Reference, Reference],
    tables: Sequence[TableProfile],
    types: Sequence[str],
    source: str,
    taken: Taken,
) -> EdgeDraft:
    name = names.unique(types[ends[0].table], taken.edges)
    src, dst = (table.column(end.column) for end in ends)
    comments = [f"{table.rows} rows of {', '.join(table.paths)}", *table.notes, *left_out(table.columns)]
    for column, end in ((src, ends[0]), (dst, ends[1])):
        key = tables[end.target].key or ""
        comments.append(f"a guess: every {_told(column.name)} occurs in {types[end.target]}.{_told(key)}")
    comments.append("no column is unique and complete, so these rows link others and are no nodes")
    properties = _properties(table, source, {src.name, dst.name}, names.EDGE_RESERVED, {})
    between = (types[ends[0].target], types[ends[1].target])
    return EdgeDraft(name, *between, source, _end(src), _end(dst), "", properties, tuple(comments))
