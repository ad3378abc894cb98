"""`nodes` and `edges` of a pipeline: each checked against the schema and its view, then made into a frame to load."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from omnigraph.catalog.catalog import Catalog, EdgeType, NodeType, TableType
from omnigraph.catalog.types import PropertyType
from omnigraph.pipeline.inputs import FILE_COLUMN, ROW_COLUMN, FrameInput
from omnigraph.pipeline.job.analysis import analysed
from omnigraph.pipeline.job.columns import cast_hint, is_text, may_hold, may_point_at
from omnigraph.pipeline.job.definition import Expression, Source, TypeMapping
from omnigraph.pipeline.job.problems import Problems, nearest
from omnigraph.pipeline.job.views import Rows, Views


@dataclass(frozen=True)
class CheckedMapping:
    """A mapping whose every part was found to fit. `keys` are the key members of the nodes an edge runs between."""

    mapping: TypeMapping
    table: TableType
    rows: Rows
    keys: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())

    def frame_input(self, located: Callable[[Source], DataFrame | None]) -> FrameInput:
        """The rows to load. `located` gives a source's rows with their places, where it has any."""
        placed = located(self.rows.source) if self.rows.source is not None else None
        frame = self.rows.frame if placed is None else placed
        if self.mapping.where is not None:
            frame = frame.where(sf.expr(self.mapping.where.text))
        columns = [_column(frame, found.text).alias(name) for name, found in self.mapping.columns]
        if isinstance(self.table, EdgeType):
            ends = zip(("src", "dst"), (self.mapping.src, self.mapping.dst), self.keys, strict=True)
            columns += [_end(frame, members, key).alias(end) for end, members, key in ends]
        if placed is not None:
            columns += [sf.col(FILE_COLUMN), sf.col(ROW_COLUMN)]
        return FrameInput(self.table.table_key, frame.select(*columns), self.rows.name, placed is not None)


def check_mapping(mapping: TypeMapping, catalog: Catalog, views: Views, problems: Problems) -> CheckedMapping | None:
    """The mapping resolved; None when something is wrong, which was told."""
    before = len(problems)
    table = _table(mapping, catalog, problems)
    rows = views.find(mapping.origin)
    if table is not None:
        _check_properties(mapping, table, problems)
    if rows is not None:
        if mapping.where is not None:
            _check_where(mapping.where, rows, problems)
        if table is not None:
            _check_columns(mapping, table, rows, problems)
            if isinstance(table, EdgeType):
                _check_end("src", mapping.src, catalog.find_node(table.src_type), rows, problems)
                _check_end("dst", mapping.dst, catalog.find_node(table.dst_type), rows, problems)
    if table is None or rows is None or len(problems) > before:
        return None
    ends = (table.src_type, table.dst_type) if isinstance(table, EdgeType) else ("", "")
    checked = CheckedMapping(mapping, table, rows, (_key(catalog, ends[0]), _key(catalog, ends[1])))
    # Parts that are well by themselves may not go together: an aggregate beside a column, for one.
    with analysed(problems, mapping.spot, f"analysing {mapping.spot.path}", rows.frame.columns):
        _ = checked.frame_input(lambda _: None).frame.schema
        return checked
    return None


def _key(catalog: Catalog, name: str) -> tuple[str, ...]:
    node = catalog.find_node(name)
    return tuple(member.name for member in node.key_members) if node is not None else ()


def _table(mapping: TypeMapping, catalog: Catalog, problems: Problems) -> TableType | None:
    found: TableType | None
    known: Sequence[str]
    if mapping.kind == "node":
        found, known = catalog.find_node(mapping.type), [node.name for node in catalog.nodes]
    else:
        found, known = catalog.find_edge(mapping.type), [edge.name for edge in catalog.edges]
    if found is None:
        told = f"the graph has no {mapping.kind} type '{mapping.type}'{nearest(mapping.type, known)}"
        problems.add(mapping.spot.member("type"), "unknown_type", told)
    return found


def _check_properties(mapping: TypeMapping, table: TableType, problems: Problems) -> None:
    names = [known.name for known in table.properties]
    is_keyed = isinstance(table, NodeType) and bool(table.key_properties)
    for name, found in mapping.columns:
        if name == "id":
            if is_keyed:
                told = f"{table.name} has a key, which makes its ids; map the key instead"
                problems.add(found.spot, "key_mismatch", told)
        elif table.find_property(name) is None:
            told = f"{table.name} has no property '{name}'{nearest(name, names)}"
            problems.add(found.spot, "unknown_field", told)
    mapped = {name for name, _ in mapping.columns}
    for known in table.properties:
        if not known.type.nullable and known.name not in mapped:
            told = f"{table.name}.{known.name} is {known.type} and must be mapped"
            problems.add(mapping.spot.member("map"), "missing_required", told)


def _check_where(where: Expression, rows: Rows, problems: Problems) -> None:
    with analysed(problems, where.spot, f"analysing {where.spot.path}", rows.frame.columns):
        given = rows.frame.select(sf.expr(where.text)).schema[0].dataType
        if not isinstance(given, st.BooleanType):
            told = f"expects a condition, but '{where.text}' is {given.simpleString()}"
            problems.add(where.spot, "wrong_type", told)


def _check_columns(mapping: TypeMapping, table: TableType, rows: Rows, problems: Problems) -> None:
    for name, found in mapping.columns:
        known = table.find_property(name)
        given = _type_of(found, rows, problems)
        if given is None:
            continue
        if name == "id" and not is_text(given):
            told = f"explicit id must be a string, but '{found.text}' is {given.simpleString()}"
            problems.add(found.spot, "bad_id", told)
        elif known is not None and not may_hold(given, known.type):
            problems.add(found.spot, "wrong_type", _unfit(f"{table.name}.{name}", known.type, found, given))


def _check_end(end: str, given: Sequence[Expression], node: NodeType | None, rows: Rows, problems: Problems) -> None:
    types = [_type_of(each, rows, problems) for each in given]
    key = node.key_members if node is not None else ()
    name = node.name if node is not None else end
    if len(given) == 1 and types[0] is not None and not may_point_at(types[0], node):
        wanted = f"an id, a text{f' or {key[0].type}' if len(key) == 1 else ''}"
        told = f"'{end}' expects {wanted}, but '{given[0].text}' is {types[0].simpleString()}"
        problems.add(given[0].spot, "wrong_type", told)
    if len(given) < 2:
        return
    if len(given) != len(key):
        told = (
            f"the key of {name} has {len(key)} members ({', '.join(k.name for k in key) or 'none'}), not {len(given)}"
        )
        problems.add(given[0].spot, "wrong_value", told)
        return
    for each, type_, member in zip(given, types, key, strict=True):
        if type_ is not None and not may_hold(type_, member.type):
            problems.add(each.spot, "wrong_type", _unfit(f"{name}.{member.name}", member.type, each, type_))


def _unfit(what: str, wanted: PropertyType, found: Expression, given: st.DataType) -> str:
    told = f"{what} is {wanted}, but '{found.text}' is {given.simpleString()}"
    return f"{told}; if the change is meant, write {cast_hint(found.text, wanted)}"


def _type_of(found: Expression, rows: Rows, problems: Problems) -> st.DataType | None:
    with analysed(problems, found.spot, f"analysing {found.spot.path}", rows.frame.columns):
        return rows.frame.select(_column(rows.frame, found.text)).schema[0].dataType
    return None


def _column(frame: DataFrame, text: str) -> Column:
    """A column of exactly that name, whatever characters it has; else an SQL expression."""
    if text in frame.columns:
        return sf.col(f"`{text.replace('`', '``')}`")
    return sf.expr(text)


def _end(frame: DataFrame, members: Sequence[Expression], key: Sequence[str]) -> Column:
    columns = [_column(frame, member.text) for member in members]
    if len(columns) == 1:
        return columns[0]
    return sf.struct(*(column.alias(name) for column, name in zip(columns, key, strict=True)))
