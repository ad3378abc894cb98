"""Strict NDJSON to Arrow: stages 2, 3 and the part of stage 4 that looks at one row alone.

Holds for every batch that is returned:
  1. Each row has every column of its table in its stored type, no null where the property is required, and an id.
  2. A row is returned, or it has violations of exactly one stage, its first failing one, and all of that stage.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.catalog import Catalog, NodeType, Property, TableType
from omnigraph.catalog.types import INTEGER_RANGES, ScalarType
from omnigraph.records.convert import convert, why_not
from omnigraph.records.explain import Fault, missing, shown
from omnigraph.records.faults import BatchFaults, RejectedRow
from omnigraph.records.ids import fresh_ids, key_texts
from omnigraph.records.parse import Group, Parser
from omnigraph.records.sources import MAX_LINE_BYTES, LineBatch, Oversized
from omnigraph.records.strict import exact
from omnigraph.records.violations import Findings, Stage, Violation, position_of

POSITION = "__position"
_WHOLE = frozenset({*INTEGER_RANGES, ScalarType.DATE, ScalarType.DATETIME})
_PREFIX_BYTES = 200


class Decoder:
    """Decodes batches of lines against one catalog. `rejects` receives every row that is not returned."""

    def __init__(
        self,
        catalog: Catalog,
        *,
        max_line_bytes: int = MAX_LINE_BYTES,
        allowed_blob_prefixes: Sequence[str] = (),
        rejects: Callable[[RejectedRow], None] | None = None,
    ) -> None:
        self._max_line_bytes = max_line_bytes
        self._prefixes = tuple(allowed_blob_prefixes)
        self._rejects = rejects
        self._parser = Parser(catalog)
        self.explicit_ids: set[str] = set()
        """The tables of which some row came with an id of its own, or has one by its key."""
        self._schemas = {
            table.table_key: table.arrow_schema.append(pa.field(POSITION, pa.int64(), nullable=False))
            for table in catalog.tables()
        }

    def decode(self, batch: LineBatch, findings: Findings) -> dict[str, pa.RecordBatch]:
        """The good rows by table key, in the order of their lines; what is wrong with the others goes to `findings`."""
        batch = self._without_oversized(batch, findings)
        faults = BatchFaults(batch.positions)
        groups = self._parser.parse(batch.lines, faults)
        rejected = faults.rows()
        decoded: dict[str, pa.RecordBatch] = {}
        for group in groups:
            group_decoder = _GroupDecoder(group.without(rejected), batch, self._prefixes, faults)
            rows = group_decoder.decode(self._schemas)
            if group_decoder.has_explicit_ids:
                self.explicit_ids.add(group.table.table_key)
            if rows.num_rows:
                decoded[group.table.table_key] = rows
        faults.tell(findings)
        if self._rejects is not None:
            self._reject(groups, batch, faults)
        return decoded

    def _without_oversized(self, batch: LineBatch, findings: Findings) -> LineBatch:
        oversized = list(batch.oversized)
        if batch.lines and max(map(len, batch.lines)) > self._max_line_bytes:
            long = [k for k, line in enumerate(batch.lines) if len(line) > self._max_line_bytes]
            for k in long:
                line = batch.lines[k]
                oversized.append(Oversized(int(batch.line_numbers[k]), len(line), line[:_PREFIX_BYTES]))
            kept = np.setdiff1d(np.arange(len(batch.lines)), long)
            lines = [batch.lines[k] for k in kept]
            batch = LineBatch(batch.file_number, lines, batch.line_numbers[kept])
        for found in oversized:
            position = position_of(batch.file_number, found.line_number)
            message = f"line has {found.size_bytes} bytes, more than the {self._max_line_bytes} allowed"
            violation = Violation(Stage.PARSE, position, None, None, "line_too_long", message)
            findings.add(violation)
            if self._rejects is not None:
                self._rejects(RejectedRow(position, found.prefix, None, None, None, (violation,)))
        return batch

    def _reject(self, groups: list[Group], batch: LineBatch, faults: BatchFaults) -> None:
        assert self._rejects is not None
        violations = faults.by_row()
        tables: dict[int, tuple[TableType, str | None]] = {}
        for group in groups:
            ks = [k for k, row in enumerate(group.rows) if row in violations]
            ids = self._readable_ids(group.table, [group.datas[k] for k in ks])
            tables |= {group.rows[k]: (group.table, id_) for k, id_ in zip(ks, ids, strict=True)}
        for row, found in violations.items():
            table, id_ = tables.get(row, (None, None))
            key = table.table_key if table else None
            self._rejects(RejectedRow(found[0].position, batch.lines[row], key, found[0].type, id_, found))

    def _readable_ids(self, table: TableType, datas: list[dict[str, Any]]) -> list[str | None]:
        """The ids the records would have had, None where they cannot be told."""
        if isinstance(table, NodeType) and table.key_properties:
            members = {p.name: convert(p.type, [d.get(p.name) for d in datas]).array for p in table.key_properties}
            found: list[str | None] = key_texts(table, members).to_pylist()
            return found
        return [data["id"] if isinstance(data.get("id"), str) else None for data in datas]


class _GroupDecoder:
    """Stages 3 and 4 for the records of one type."""

    def __init__(self, group: Group, batch: LineBatch, prefixes: Sequence[str], faults: BatchFaults) -> None:
        self._group = group
        self._table = group.table
        self._batch = batch
        self._prefixes = prefixes
        self._faults = faults
        self._given: set[str] = set().union(*group.datas)

    @property
    def has_explicit_ids(self) -> bool:
        return "id" in self._given or (isinstance(self._table, NodeType) and bool(self._table.key_properties))

    def decode(self, schemas: dict[str, pa.Schema]) -> pa.RecordBatch:
        rows = np.asarray(self._group.rows, np.int64)
        bad: set[int] = set()
        columns = {p.name: self._column(p, bad) for p in self._table.properties}
        if not isinstance(self._table, NodeType):
            columns["src"] = pa.array([record["from"] for record in self._group.records], pa.string())
            columns["dst"] = pa.array([record["to"] for record in self._group.records], pa.string())
        columns[POSITION] = pa.array(self._batch.positions[rows])
        columns["id"] = self._ids(columns, bad)
        schema = schemas[self._table.table_key]
        built = pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=_nullable(schema))
        if bad:
            keep = np.ones(len(rows), np.bool_)
            keep[list(bad)] = False
            built = built.filter(pa.array(keep))
        return pa.RecordBatch.from_arrays(built.columns, schema=schema)

    def _column(self, declared: Property, bad: set[int]) -> pa.Array:
        """The column of a property; rows that do not fit are added to `bad`."""
        name, datas = declared.name, self._group.datas
        values: list[Any]
        try:
            values = list(map(itemgetter(name), datas))
        except KeyError:
            values = [data.get(name) for data in datas] if name in self._given else [None] * len(datas)
        converted = convert(declared.type, values, self._prefixes)
        if converted.bad:
            self._fault(Stage.CONVERT, name, converted.bad, lambda k: self._misfit(declared, converted.bad[k]))
            bad.update(converted.bad)
        if not declared.type.nullable and converted.array.null_count > len(converted.bad):
            absent = [k for k, value in enumerate(values) if value is None]
            self._fault(Stage.CONVERT, name, absent, lambda _: missing(declared))
            bad.update(absent)
        return converted.array

    def _misfit(self, declared: Property, k: int) -> Fault:
        value = self._group.datas[k][declared.name]
        items = value if declared.type.is_list and type(value) is list else (value,)
        if declared.type.scalar in _WHOLE and float in map(type, items):
            # The quick parser reads integers beyond 64 bits as floats; what is told is what is written.
            value = exact(self._batch.lines[self._group.rows[k]])["data"][declared.name]
        return why_not(declared, value, self._table.name, self._prefixes)

    def _ids(self, columns: dict[str, pa.Array], bad: set[int]) -> pa.Array:
        """The id of every row; rows whose explicit id is wrong are added to `bad`, unless they were bad before."""
        derived = (
            key_texts(self._table, columns)
            if isinstance(self._table, NodeType) and self._table.key_properties
            else None
        )
        if "id" not in self._given:
            return fresh_ids(len(self._group.datas)) if derived is None else derived
        given = [data.get("id") for data in self._group.datas]
        if set(map(type, given)) != {str}:
            wrong = [
                k
                for k, data in enumerate(self._group.datas)
                if "id" in data and type(given[k]) is not str and k not in bad
            ]
            self._fault(Stage.IDS, "id", wrong, lambda _: ("bad_id", "explicit id must be a string"))
            bad.update(wrong)
            given = [value if type(value) is str else None for value in given]
        explicit = pa.array(given, pa.string())
        if derived is None:
            return explicit if not explicit.null_count else pc.coalesce(explicit, fresh_ids(len(explicit)))
        self._check_key(explicit, derived, bad)
        return derived

    def _check_key(self, explicit: pa.Array, derived: pa.Array, bad: set[int]) -> None:
        differs = pc.not_equal(explicit, derived)
        if not differs.true_count:
            return
        places = np.flatnonzero(differs.fill_null(False).to_numpy(zero_copy_only=False)).tolist()
        wrong = [k for k in places if k not in bad]

        def told(k: int) -> Fault:
            given, key = explicit[wrong[k]].as_py(), derived[wrong[k]].as_py()
            return "key_mismatch", f"explicit id {shown(given)} does not match @key, which gives {shown(key)}"

        self._fault(Stage.IDS, "id", wrong, told)
        bad.update(wrong)

    def _fault(self, stage: Stage, name: str, ks: Sequence[int], make: Callable[[int], Fault]) -> None:
        self._faults.add(stage, self._table.name, name, [self._group.rows[k] for k in ks], make)


def _nullable(schema: pa.Schema) -> pa.Schema:
    """The same columns while rows that will be dropped still hold nulls."""
    return pa.schema([field.with_nullable(True) for field in schema])
