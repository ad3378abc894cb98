"""Frames as loads: Arrow tables, pandas and polars frames, each column converted without loss.

What pandas calls missing (NaN, None, NaT, NA) is null, in float columns too. In Arrow and polars frames null and NaN
are told apart, and NaN stays NaN. A position is the number of the frame and of the row, counted from 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.base.errors import BadRequest
from omnigraph.catalog.catalog import Catalog, NodeType, Property, TableType
from omnigraph.catalog.types import FLOATS, INTEGER_RANGES, ScalarType, arrow_type
from omnigraph.engine.scratch import Scratch
from omnigraph.engine.write.intake import Intake, Progress
from omnigraph.engine.write.quarantine import RAW, Rejects
from omnigraph.records.convert import convert, why_not
from omnigraph.records.decode import POSITION
from omnigraph.records.explain import missing, shown
from omnigraph.records.faults import RejectedRow
from omnigraph.records.ids import fresh_ids, key_texts
from omnigraph.records.violations import FILE_SHIFT, Findings, Stage, Violation
from omnigraph.settings import Settings

Frame: TypeAlias = Any
"""A pyarrow Table, or anything with `__arrow_c_stream__` or `to_arrow`, or a pandas DataFrame."""

_ENDS = {"from": "src", "to": "dst"}
_TIMES = (ScalarType.DATE, ScalarType.DATETIME)


def read_frames(
    frames: Mapping[str, Frame],
    catalog: Catalog,
    settings: Settings,
    scratch: Scratch,
    max_errors: int,
    quarantine: bool,
    progress: Progress,
) -> Intake:
    names = tuple(frames)
    rejects = Rejects(scratch, names) if quarantine else None
    intake = Intake(catalog, names, Findings(max_errors), rejects=rejects)
    tables = [(_table_type(catalog, name), _arrow(name, frame)) for name, frame in frames.items()]
    prepared = [(type_, _named(type_, table)) for type_, table in tables]
    seen = 0
    progress("read", 0)
    for number, (type_, table) in enumerate(prepared):
        row = 1
        for batch in table.to_batches(settings.load_batch_rows):
            if batch.num_rows:
                decoder = _FrameBatch(type_, batch, (number << FILE_SHIFT) + row)
                if rejects is not None:
                    rejects.keep_raw(decoder.raw())
                rows = decoder.decode()
                decoder.tell(intake.findings, rejects)
                if rows.num_rows:
                    intake.take(type_.table_key, rows, scratch)
            row += batch.num_rows
            seen += batch.num_rows
            progress("read", seen)
    return intake


def _table_type(catalog: Catalog, name: str) -> TableType:
    found: list[TableType] = [t for t in (catalog.find_table(name),) if t is not None]
    found = found or [t for t in (catalog.find_node(name), catalog.find_edge(name)) if t is not None]
    if not found:
        raise BadRequest(f"unknown type '{name}'", "See omnigraph schema show.")
    if len(found) > 1:
        raise BadRequest(f"'{name}' is a node and an edge type", f"Use 'node:{name}' or 'edge:{name}'.")
    return found[0]


def _arrow(name: str, frame: Frame) -> pa.Table:
    if isinstance(frame, pa.Table):
        return frame
    if isinstance(frame, pa.RecordBatch):
        return pa.Table.from_batches([frame])
    if type(frame).__module__.split(".")[0] == "pandas":
        try:
            return pa.Table.from_pandas(frame, preserve_index=False)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise BadRequest(f"frame '{name}' cannot be read: {error}", "Give every column one type.") from error
    if hasattr(frame, "to_arrow"):
        return frame.to_arrow()
    if hasattr(frame, "__arrow_c_stream__"):
        return pa.table(frame)
    raise BadRequest(f"'{name}' is no frame: {type(frame).__name__}", "Give an Arrow, pandas or polars table.")


def _named(type_: TableType, table: pa.Table) -> pa.Table:
    """The frame with edges' ends under their stored names; unknown and repeated columns are refused."""
    names = [_ENDS.get(n, n) if not isinstance(type_, NodeType) else n for n in table.column_names]
    known = [*type_.arrow_schema.names]
    for name in names:
        if name not in known:
            raise BadRequest(f"{type_.name} has no property '{name}'", f"It has: {', '.join(known)}.")
        if names.count(name) > 1:
            raise BadRequest(f"column '{name}' of {type_.name} is given twice", "Drop one.")
    for end in ("src", "dst") if not isinstance(type_, NodeType) else ():
        if end not in names:
            other = {"src": "from", "dst": "to"}[end]
            raise BadRequest(f"edges of {type_.name} need a column '{other}'", f"'{end}' is understood too.")
    return table.rename_columns(names)


class _FrameBatch:
    """One batch of a frame; what is wrong with its rows is noted by row and told afterwards."""

    def __init__(self, type_: TableType, batch: pa.RecordBatch, first: int) -> None:
        self._type = type_
        self._batch = batch
        self._positions = np.arange(first, first + batch.num_rows, dtype=np.int64)
        self._faults: dict[int, list[Violation]] = {}
        self._ids: pa.Array = pa.nulls(batch.num_rows, pa.string())

    def decode(self) -> pa.RecordBatch:
        columns = {p.name: self._property(p) for p in self._type.properties}
        if not isinstance(self._type, NodeType):
            for end in ("src", "dst"):
                columns[end] = self._text(end, Stage.PARSE, "missing_from" if end == "src" else "missing_to")
        columns["id"] = self._ids = self._id_column(columns)
        columns[POSITION] = pa.array(self._positions)
        wanted = self._type.arrow_schema.append(pa.field(POSITION, pa.int64(), nullable=False))
        rows = pa.RecordBatch.from_arrays([columns[n] for n in wanted.names], names=wanted.names)
        if self._faults:
            good = np.ones(rows.num_rows, np.bool_)
            good[list(self._faults)] = False
            rows = rows.filter(pa.array(good))
        return pa.RecordBatch.from_arrays(rows.columns, schema=wanted)

    def raw(self) -> pa.RecordBatch:
        """The rows as JSON objects, for a rejects file."""
        texts = [self._raw_text(row) for row in range(self._batch.num_rows)]
        return pa.RecordBatch.from_arrays([pa.array(self._positions), pa.array(texts, pa.binary())], schema=RAW)

    def _raw_text(self, row: int) -> bytes:
        return orjson.dumps(self._batch.slice(row, 1).to_pylist()[0], default=str)

    def tell(self, findings: Findings, rejects: Rejects | None) -> None:
        for row, found in sorted(self._faults.items()):
            first = min(v.stage for v in found)
            told = tuple(sorted((v for v in found if v.stage == first), key=Violation.order))
            if rejects is None:
                for violation in told:
                    findings.add(violation)
                continue
            id_ = self._ids[row].as_py()
            position = int(self._positions[row])
            rejects.take_row(_rejected(position, self._raw_text(row), self._type, id_, told))

    def _given(self, name: str) -> pa.Array | None:
        return self._batch.column(name) if name in self._batch.schema.names else None

    def _property(self, declared: Property) -> pa.Array:
        given = self._given(declared.name)
        wanted = arrow_type(declared.type)
        if given is None:
            converted = pa.nulls(self._batch.num_rows, wanted)
            bad: Sequence[int] = ()
        else:
            converted, bad = _converted(declared, given)
            for row in bad:
                value = given[row].as_py()
                reason, message = why_not(declared, value, self._type.name)
                self._fault(row, Stage.CONVERT, declared.name, reason, message)
        if not declared.type.nullable and converted.null_count > len(bad):
            reason, message = missing(declared)
            for row in np.flatnonzero(converted.is_null().to_numpy(zero_copy_only=False)).tolist():
                if row not in bad:
                    self._fault(row, Stage.CONVERT, declared.name, reason, message)
        return converted

    def _id_column(self, columns: Mapping[str, pa.Array]) -> pa.Array:
        keyed = isinstance(self._type, NodeType) and self._type.key_properties
        derived = key_texts(self._type, columns) if isinstance(self._type, NodeType) and keyed else None
        if self._given("id") is None:
            return fresh_ids(self._batch.num_rows) if derived is None else derived
        explicit = self._text("id", Stage.IDS, None)
        if derived is None:
            return pc.coalesce(explicit, fresh_ids(self._batch.num_rows)) if explicit.null_count else explicit
        differs = pc.not_equal(explicit, derived).fill_null(False).to_numpy(zero_copy_only=False)
        for row in np.flatnonzero(differs).tolist():
            given, key = shown(explicit[row].as_py()), shown(derived[row].as_py())
            message = f"explicit id {given} does not match @key, which gives {key}"
            self._fault(row, Stage.IDS, "id", "key_mismatch", message)
        return derived

    def _text(self, name: str, stage: Stage, absent: str | None) -> pa.Array:
        """A column of ids. `absent` is the reason for refusing a null, None if nulls may stay."""
        given = self._given(name)
        assert given is not None
        plain = _plain(given)
        if not pa.types.is_string(plain.type) and plain.null_count < len(plain):
            told = "explicit id must be a string" if name == "id" else f"'{name}' expects a string"
            for row in np.flatnonzero(plain.is_valid().to_numpy(zero_copy_only=False)).tolist():
                self._fault(row, stage, name, "bad_id" if name == "id" else "wrong_type", told)
        if not pa.types.is_string(plain.type):
            plain = pa.nulls(len(plain), pa.string())
        if absent is not None and plain.null_count:
            other = {"src": "from", "dst": "to"}[name]
            for row in np.flatnonzero(plain.is_null().to_numpy(zero_copy_only=False)).tolist():
                self._fault(row, stage, name, absent, f"edge has no '{other}'")
        return plain

    def _fault(self, row: int, stage: Stage, property_: str, reason: str, message: str) -> None:
        position = int(self._positions[row])
        found = Violation(stage, position, self._type.name, property_, reason, message)
        self._faults.setdefault(row, []).append(found)


def _rejected(position: int, raw: bytes, type_: TableType, id_: str | None, told: tuple[Violation, ...]) -> RejectedRow:
    return RejectedRow(position, raw, type_.table_key, type_.name, id_, told)


def _converted(declared: Property, given: pa.Array) -> tuple[pa.Array, Sequence[int]]:
    """The column in its stored type, and the rows that do not fit."""
    plain = _plain(given)
    if plain.null_count == len(plain):
        return pa.nulls(len(plain), arrow_type(declared.type)), ()
    if _is_native(declared, plain.type):
        try:
            return plain.cast(arrow_type(declared.type), safe=True), ()
        except pa.ArrowInvalid:
            pass
    result = convert(declared.type, _values(declared, plain))
    return result.array, result.bad


def _plain(given: pa.Array) -> pa.Array:
    """Without dictionaries, views and large offsets, which say nothing about the values."""
    if isinstance(given, pa.ChunkedArray):
        given = given.combine_chunks()
    if pa.types.is_dictionary(given.type):
        given = given.dictionary_decode()
    if pa.types.is_large_string(given.type) or pa.types.is_string_view(given.type):
        given = given.cast(pa.string())
    return given


def _is_native(declared: Property, given: pa.DataType) -> bool:
    """Whether Arrow's own cast means the same as the loader's rules for this pair of types."""
    type_, scalar = declared.type, declared.type.scalar
    if type_.is_list or type_.is_vector or type_.is_enum:
        return False
    if scalar is ScalarType.STRING:
        return bool(pa.types.is_string(given))
    if scalar is ScalarType.BOOL:
        return bool(pa.types.is_boolean(given))
    if scalar in INTEGER_RANGES:
        # A float without a fraction is how pandas keeps integers next to missing values.
        return bool(pa.types.is_integer(given) or pa.types.is_floating(given))
    if scalar in FLOATS:
        return bool(scalar is ScalarType.F64 and (pa.types.is_integer(given) or pa.types.is_floating(given)))
    if scalar in _TIMES:
        return bool(pa.types.is_date(given) or pa.types.is_timestamp(given))
    return bool(pa.types.is_binary(given) or pa.types.is_large_binary(given))


def _values(declared: Property, plain: pa.Array) -> list[Any]:
    """The values as JSON would have them, for the loader's own rules."""
    if declared.type.scalar in _TIMES and (pa.types.is_date(plain.type) or pa.types.is_timestamp(plain.type)):
        plain = plain.cast(pa.string())
    if declared.type.scalar in INTEGER_RANGES and pa.types.is_floating(plain.type):
        return [int(v) if v is not None and v.is_integer() else v for v in plain.to_pylist()]
    values: list[Any] = plain.to_pylist()
    return values
