"""Stage 2: lines to records of known types.

Holds for every row of a group that has no fault: the record has exactly the members its kind has, none of them twice,
and every data member is `id` or a property of the type.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import orjson

from omnigraph.catalog.catalog import Catalog, EdgeType, NodeType, TableType
from omnigraph.lang.diagnostics import nearest_name
from omnigraph.records.explain import Fault, kind_of, shown
from omnigraph.records.faults import BatchFaults
from omnigraph.records.strict import exact, parsed_members, repeated_members, written_members
from omnigraph.records.violations import Stage

RESERVED = frozenset(
    {
        "_tombstone",
        "_rowid",
        "_rowaddr",
        "_rowoffset",
        "_row_created_at_version",
        "_row_last_updated_at_version",
    }
)
_NODE_MEMBERS = frozenset({"type", "data"})
_EDGE_MEMBERS = frozenset({"edge", "from", "to", "data"})
_NO_DATA: dict[str, Any] = {}
_INFINITE = "infinity"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
Record = dict[str, Any]


@dataclass
class Group:
    """Records of one type; `rows` are their places in the batch."""

    table: TableType
    rows: list[int]
    records: list[Record]
    datas: list[Record]

    def without(self, rejected: set[int]) -> Group:
        if rejected.isdisjoint(self.rows):
            return self
        kept = [k for k, row in enumerate(self.rows) if row not in rejected]
        return Group(
            self.table,
            [self.rows[k] for k in kept],
            [self.records[k] for k in kept],
            [self.datas[k] for k in kept],
        )


class _Repeats:
    """Finds the members that a line gives twice."""

    def __init__(self, lines: list[bytes], parsed: list[Any], faults: BatchFaults) -> None:
        self._lines = lines
        self._faults = faults
        if None in parsed:
            lines = [b"" if value is None else line for value, line in zip(parsed, lines, strict=True)]
        self._written = written_members(lines)

    def check_group(self, group: Group) -> None:
        count = len(group.rows)
        sizes = [np.fromiter(map(len, objects), np.int64, count) for objects in (group.records, group.datas)]
        # An object inside data is wrong in any case, so the others have the members of these two and no more.
        suspects = np.flatnonzero(sizes[0] + sizes[1] != self._written[group.rows]).tolist()
        rows, records = [group.rows[k] for k in suspects], [group.records[k] for k in suspects]
        self.check([group.table.name] * len(rows), rows, records)

    def check(self, types: Sequence[str | None], rows: list[int], records: list[Record]) -> None:
        if not rows:
            return
        written = self._written[rows]
        found = np.flatnonzero(parsed_members(records, written) != written).tolist()
        types, rows = [types[k] for k in found], [rows[k] for k in found]
        lines = [self._lines[row] for row in rows]
        self._faults.add(Stage.PARSE, types, None, rows, lambda k: _repeated(lines[k]))


class Parser:
    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._nodes = {node.name: node for node in catalog.nodes}
        self._edges = {edge.name: edge for edge in catalog.edges}
        self._known = {
            table.table_key: frozenset({"id", *(p.name for p in table.properties)} - RESERVED)
            for table in catalog.tables()
        }

    def parse(self, lines: list[bytes], faults: BatchFaults) -> list[Group]:
        """The records by type; groups still hold the rows whose data has faults, so that their ids can be read."""
        parsed = _loaded(lines, faults)
        repeats = _Repeats(lines, parsed, faults)
        groups = []
        for table, rows in self._sorted_out(parsed, repeats, faults):
            records = [parsed[row] for row in rows] if len(rows) < len(parsed) else parsed
            group = _shaped(table, rows, records, repeats, faults)
            if group.rows:
                self._check_fields(group, faults)
                repeats.check_group(group)
                groups.append(group)
        return groups

    def _sorted_out(
        self, parsed: list[Any], repeats: _Repeats, faults: BatchFaults
    ) -> Iterable[tuple[TableType, list[int]]]:
        """The places of the records of each type."""
        by_key: dict[str, tuple[TableType, list[int]]] = {}
        strays: list[int] = []
        # Rows by name as it is spelt; edges of several spellings share one list.
        nodes: dict[str, list[int]] = {}
        edges: dict[str, list[int]] = {}
        for row, record in enumerate(parsed):
            try:
                (nodes[record["type"]] if "type" in record else edges[record["edge"]]).append(row)
            except (KeyError, TypeError):
                if type(record) is dict:
                    is_node = "type" in record
                    name = record["type"] if is_node else record.get("edge")
                    table = self._table(is_node, name)
                    rows = strays if table is None else by_key.setdefault(table.table_key, (table, []))[1]
                    rows.append(row)
                    if table is not None:
                        (nodes if is_node else edges)[str(name)] = rows
        if strays:
            self._report_strays(strays, [parsed[row] for row in strays], repeats, faults)
        return by_key.values()

    def _table(self, is_node: bool, name: Any) -> TableType | None:
        if type(name) is not str:
            return None
        return self._nodes.get(name) if is_node else self._catalog.find_edge(name)

    def _report_strays(self, strays: list[int], records: list[Record], repeats: _Repeats, faults: BatchFaults) -> None:
        names = [record.get("type", record.get("edge")) for record in records]
        told = [name if isinstance(name, str) else None for name in names]
        faults.add(Stage.PARSE, told, None, strays, partial(self._unknown_type, records))
        repeats.check(told, strays, records)

    def _unknown_type(self, records: list[Record], k: int) -> Fault:
        record = records[k]
        if "type" not in record and "edge" not in record:
            return "unknown_type", "a line needs exactly one of 'type' and 'edge', it has none"
        member, kind = ("type", "node") if "type" in record else ("edge", "edge")
        name = record[member]
        if not isinstance(name, str):
            return "unknown_type", f"'{member}' expects a string, got {kind_of(name)}"
        text = f"unknown {kind} type {shown(name)}"
        if member == "type" and self._catalog.find_edge(name) is not None:
            return "unknown_type", f"{text}; '{name}' is an edge type: write 'edge', 'from' and 'to'"
        if member == "edge" and name in self._nodes:
            return "unknown_type", f"{text}; '{name}' is a node type: write 'type'"
        return "unknown_type", text + _meant(name, self._nodes if member == "type" else self._edges)

    def _check_fields(self, group: Group, faults: BatchFaults) -> None:
        known = self._known[group.table.table_key]
        if known.issuperset(set().union(*group.datas)):
            return
        placed = zip(group.rows, group.datas, strict=True)
        unknown = [(row, name) for row, data in placed for name in data.keys() - known]
        names = [name for _, name in unknown]
        rows = [row for row, _ in unknown]
        faults.add(Stage.PARSE, group.table.name, names, rows, lambda k: _unknown_field(group.table, names[k]))


def _shaped(table: TableType, rows: list[int], records: list[Record], repeats: _Repeats, faults: BatchFaults) -> Group:
    """The group without the records whose data is no object."""
    is_node = isinstance(table, NodeType)
    allowed = _NODE_MEMBERS if is_node else _EDGE_MEMBERS
    if not allowed.issuperset(set().union(*records)):
        _check_members(table, rows, records, allowed, faults)
    if not is_node:
        for member in ("from", "to"):
            _check_endpoint(table, member, rows, records, faults)
    default = None if is_node else _NO_DATA
    datas: list[Any] = [record.get("data", default) for record in records]
    group = Group(table, rows, records, datas)
    if set(map(type, datas)) == {dict}:
        return group
    wrong = [k for k, data in enumerate(datas) if type(data) is not dict]
    wrong_rows, wrong_records = [rows[k] for k in wrong], [records[k] for k in wrong]
    faults.add(Stage.PARSE, table.name, None, wrong_rows, lambda k: _bad_data(wrong_records[k]))
    repeats.check([table.name] * len(wrong), wrong_rows, wrong_records)
    return group.without(set(wrong_rows))


def _loaded(lines: list[bytes], faults: BatchFaults) -> list[Any]:
    """Every line parsed; None, with a fault, where it is no JSON object."""
    parsed: list[Any] = []
    broken: list[int] = []
    waiting = iter(lines)
    while True:
        try:
            parsed.extend(map(orjson.loads, waiting))
            break
        except orjson.JSONDecodeError as error:
            value = _beyond_floats(lines[len(parsed)]) if _INFINITE in error.msg else None
            if value is None:
                broken.append(len(parsed))
            parsed.append(value)
    faults.add(Stage.PARSE, None, None, broken, lambda k: _invalid(lines[broken[k]]))
    if set(map(type, parsed)) <= {dict}:
        return parsed
    skipped = set(broken)
    other = [row for row, value in enumerate(parsed) if type(value) is not dict and row not in skipped]
    kinds = [kind_of(parsed[row]) for row in other]
    faults.add(Stage.PARSE, None, None, other, lambda k: ("invalid_json", f"expects a JSON object, got {kinds[k]}"))
    return parsed


def _beyond_floats(line: bytes) -> Any:
    """A line with a number too great for the quick parser; None if it is wrong otherwise."""
    try:
        return exact(line)
    except ValueError:
        return None


def _invalid(line: bytes) -> Fault:
    try:
        line.decode()
    except UnicodeDecodeError as error:
        told = f"not UTF-8 text: byte 0x{line[error.start]:02x} at column {error.start + 1}"
        return "invalid_json", f"{told}; the file looks like UTF-16" if line.startswith(_UTF16) else told
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError as error:
        return "invalid_json", f"invalid JSON at column {error.colno}: {error.msg}"
    raise AssertionError("the line is JSON")


def _check_members(
    table: TableType, rows: list[int], records: list[Record], allowed: frozenset[str], faults: BatchFaults
) -> None:
    placed = zip(rows, records, strict=True)
    extra = [(row, name) for row, record in placed for name in record.keys() - allowed]
    names = [name for _, name in extra]
    faults.add(Stage.PARSE, table.name, names, [row for row, _ in extra], lambda k: _extra_member(names[k], allowed))


def _extra_member(name: str, allowed: frozenset[str]) -> Fault:
    if name == "edge" and "type" in allowed:
        return "unknown_field", "a line needs exactly one of 'type' and 'edge', it has both"
    form = "a node line has 'type' and 'data'" if "type" in allowed else "an edge line has 'edge', 'from', 'to', 'data'"
    return "unknown_field", f"unknown member {shown(name)}: {form}"


def _check_endpoint(table: TableType, member: str, rows: list[int], records: list[Record], faults: BatchFaults) -> None:
    ends = [record.get(member) for record in records]
    if set(map(type, ends)) == {str}:
        return
    wrong = [k for k, end in enumerate(ends) if type(end) is not str]

    def told(k: int) -> Fault:
        end = ends[wrong[k]]
        state = "is missing" if member not in records[wrong[k]] else f"expects a string, got {kind_of(end)}"
        return f"missing_{member}", f"'{member}' of edge {table.name} {state}"

    faults.add(Stage.PARSE, table.name, member, [rows[k] for k in wrong], told)


def _bad_data(record: Record) -> Fault:
    if "data" not in record:
        return "invalid_json", "'data' is missing: a node line has 'type' and 'data'"
    return "invalid_json", f"'data' expects a JSON object, got {kind_of(record['data'])}"


def _unknown_field(table: TableType, name: str) -> Fault:
    if name in RESERVED:
        return "unknown_field", f"field '{name}' is reserved"
    text = f"unknown field {shown(name)} of {table.name}"
    if isinstance(table, EdgeType) and name in ("src", "dst", "from", "to"):
        return "unknown_field", f"{text}: endpoints are 'from' and 'to' beside 'data'"
    return "unknown_field", text + _meant(name, [declared.name for declared in table.properties])


def _meant(name: str, candidates: Iterable[str]) -> str:
    meant = nearest_name(name, candidates)
    return f"; did you mean '{meant}'?" if meant is not None else ""


def _repeated(line: bytes) -> Fault:
    names = repeated_members(line)
    if not names:
        return "duplicate_member", "a member is given twice"
    return "duplicate_member", f"duplicate member {', '.join(map(shown, names))}"
