"""Rows of Arrow frames as rows of their table, each column converted without loss, on the driver or an executor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.catalog import Catalog, EdgeType, NodeType, Property, TableType
from omnigraph.catalog.types import FLOATS, INTEGER_RANGES, PropertyType, ScalarType, arrow_type
from omnigraph.records.blobs import EXTERNAL_MARKER
from omnigraph.records.convert import convert, why_not
from omnigraph.records.decode import POSITION
from omnigraph.records.explain import missing, shown
from omnigraph.records.faults import RAW, RejectedRow
from omnigraph.records.fit import Unfit, fit
from omnigraph.records.ids import fresh_ids, key_texts
from omnigraph.records.violations import Findings, Stage, Violation

Numbers: TypeAlias = "np.ndarray[Any, Any]"
_TIMES = (ScalarType.DATE, ScalarType.DATETIME)


class FrameRows:
    """One batch of a frame; what is wrong with its rows is noted by row and told afterwards."""

    def __init__(
        self,
        catalog: Catalog,
        type_: TableType,
        batch: pa.RecordBatch,
        positions: Numbers,
        has_no_lines: bool = False,
    ) -> None:
        self._catalog = catalog
        self._type = type_
        self._batch = batch
        self._positions = positions
        self._has_no_lines = has_no_lines
        self._faults: dict[int, list[Violation]] = {}
        self._ids: pa.Array = pa.nulls(batch.num_rows, pa.string())

    def decode(self) -> pa.RecordBatch:
        columns = {p.name: self._property(p) for p in self._type.properties}
        if not isinstance(self._type, NodeType):
            for end in ("src", "dst"):
                columns[end] = self._endpoint(end)
        columns["id"] = self._ids = self._id_column(columns)
        columns[POSITION] = pa.array(self._positions)
        wanted = self._type.arrow_schema.append(pa.field(POSITION, pa.int64(), nullable=False))
        rows = pa.RecordBatch.from_arrays([columns[n] for n in wanted.names], names=wanted.names)
        if self._faults:
            good = np.ones(rows.num_rows, np.bool_)
            good[list(self._faults)] = False
            rows = rows.filter(pa.array(good))
        return pa.RecordBatch.from_arrays(rows.columns, schema=wanted)

    @property
    def has_explicit_ids(self) -> bool:
        keyed = isinstance(self._type, NodeType) and bool(self._type.key_properties)
        return keyed or self._given("id") is not None

    def raw(self) -> pa.RecordBatch:
        """The rows as JSON objects, for a rejects file."""
        texts = [self._raw_text(row) for row in range(self._batch.num_rows)]
        return pa.RecordBatch.from_arrays([pa.array(self._positions), pa.array(texts, pa.binary())], schema=RAW)

    def _raw_text(self, row: int) -> bytes:
        return orjson.dumps(self._batch.slice(row, 1).to_pylist()[0], default=str)

    def tell(self, findings: Findings, rejects: Callable[[RejectedRow], None] | None) -> None:
        """What is wrong goes to `findings`, or row by row to `rejects`."""
        for row, found in sorted(self._faults.items()):
            first = min(v.stage for v in found)
            told = tuple(sorted((v for v in found if v.stage == first), key=Violation.order))
            if rejects is None:
                findings.add_many(first, [v.position for v in told], partial(self._shown, row, told))
                continue
            id_ = self._ids[row].as_py()
            position = int(self._positions[row])
            rejects(_rejected(position, self._raw_text(row), self._type, id_, told))

    def _shown(self, row: int, told: Sequence[Violation], k: int) -> Violation:
        return replace(told[k], row=self._raw_text(row).decode()) if self._has_no_lines else told[k]

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
                value = _values(declared, _plain(given.slice(row, 1)))[0]
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

    def _endpoint(self, end: str) -> pa.Array:
        absent = "missing_from" if end == "src" else "missing_to"
        given = self._given(end)
        assert given is not None
        plain = _plain(given)
        if pa.types.is_string(plain.type) or pa.types.is_null(plain.type):
            return self._texts_of(plain, end, Stage.PARSE, absent)
        return self._texts_of(self._derived_ids(plain, end), end, Stage.PARSE, absent)

    def _derived_ids(self, given: pa.Array, end: str) -> pa.Array:
        """Endpoints that are given as key values of their node instead of as ids; others stay as they are."""
        assert isinstance(self._type, EdgeType)
        node = self._catalog.find_node(self._type.src_type if end == "src" else self._type.dst_type)
        members = node.key_properties if node is not None else ()
        values = _members_of(given, [p.name for p in node.key_members] if node is not None else [])
        if node is None or not members or len(members) != len(values):
            return given
        converted: dict[str, pa.Array] = {}
        for member in members:
            column = values[member.name]
            converted[member.name], bad = _converted(member, column)
            for row in bad:
                reason, message = why_not(member, column[row].as_py(), node.name)
                self._fault(row, Stage.CONVERT, end, reason, message)
        texts = key_texts(node, converted)
        # What is wrong has been told; a text in its place is not missing as well.
        texts = texts.fill_null("")
        return pc.if_else(given.is_valid(), texts, pa.scalar(None, pa.string()))

    def _text(self, name: str, stage: Stage, absent: str | None) -> pa.Array:
        """A column of ids. `absent` is the reason for refusing a null, None if nulls may stay."""
        given = self._given(name)
        assert given is not None
        return self._texts_of(_plain(given), name, stage, absent)

    def _texts_of(self, plain: pa.Array, name: str, stage: Stage, absent: str | None) -> pa.Array:
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


def _members_of(given: pa.Array, names: Sequence[str]) -> dict[str, pa.Array]:
    """The columns of a key by the names of its members: a struct's by their own names, or else by their order."""
    if not pa.types.is_struct(given.type):
        return dict.fromkeys(names[:1], given)
    fields = [given.type.field(k).name for k in range(given.type.num_fields)]
    order = fields if set(fields) == set(names) else names
    return {name: given.field(k) for k, name in enumerate(order[: len(fields)])}


def _rejected(position: int, raw: bytes, type_: TableType, id_: str | None, told: tuple[Violation, ...]) -> RejectedRow:
    return RejectedRow(position, raw, type_.table_key, type_.name, id_, told)


def _converted(declared: Property, given: pa.Array) -> tuple[pa.Array, Sequence[int]]:
    """The column in its stored type, and the rows that do not fit."""
    plain = _plain(given)
    if plain.null_count == len(plain):
        return pa.nulls(len(plain), arrow_type(declared.type)), ()
    quick = _quick(declared, plain)
    if quick is not None:
        return quick, ()
    result = convert(declared.type, _values(declared, plain))
    return result.array, result.bad


def _quick(declared: Property, plain: pa.Array) -> pa.Array | None:
    """The whole column at once; None where a value may not fit, so that each has to be looked at."""
    type_, wanted = declared.type, arrow_type(declared.type)
    try:
        if type_.is_vector or type_.is_list:
            found = fit(plain, wanted) if _is_list_of(type_, plain.type) else None
            finite = found is None or not type_.is_vector or pc.all(pc.is_finite(found.flatten())).as_py() is not False
            return found if finite else None
        if type_.is_enum:
            known = pa.types.is_string(plain.type) and set(pc.unique(plain).to_pylist()) <= {None, *type_.enum_values}
            return plain if known else None
        if type_.scalar is ScalarType.F32 and _is_number(plain.type):
            return fit(plain, wanted)
        if type_.is_blob and pc.any(pc.starts_with(plain, pattern=EXTERNAL_MARKER)).as_py():
            return None
        return plain.cast(wanted, safe=True) if _is_native(declared, plain.type) else None
    except (Unfit, pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def _is_number(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_))


def _is_list_of(type_: PropertyType, given: pa.DataType) -> bool:
    """Whether the elements may be taken over as they are."""
    types = pa.types
    if not (types.is_list(given) or types.is_large_list(given) or types.is_fixed_size_list(given)):
        return False
    element, scalar = given.value_type, type_.scalar
    if type_.is_vector:
        return _is_number(element)
    if scalar is ScalarType.STRING:
        return bool(types.is_string(element) and not type_.is_enum)
    return bool(element == arrow_type(PropertyType(scalar)))


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
        return bool(pa.types.is_integer(given) or pa.types.is_floating(given) or pa.types.is_decimal(given))
    if scalar in FLOATS:
        # Spark reads a number with a point in SQL as a decimal.
        return scalar is ScalarType.F64 and _is_number(given)
    if scalar in _TIMES:
        return bool(pa.types.is_date(given) or pa.types.is_timestamp(given))
    return bool(pa.types.is_binary(given) or pa.types.is_large_binary(given))


def _values(declared: Property, plain: pa.Array) -> list[Any]:
    """The values as JSON would have them, for the loader's own rules."""
    if declared.type.scalar in _TIMES and (pa.types.is_date(plain.type) or pa.types.is_timestamp(plain.type)):
        plain = plain.cast(pa.string())
    if declared.type.scalar in INTEGER_RANGES and _is_number(plain.type):
        return [int(v) if v is not None and v == v // 1 else v for v in plain.to_pylist()]
    values: list[Any] = plain.to_pylist()
    return values
