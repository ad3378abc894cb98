"""Stored rows as JSON.

Holds for every value:
  1. The loader reads an exported line back as the same stored value, whatever its type and size.
  2. Dates and moments of the years 0001 to 9999 are text, others the integer the loader takes for them.
  3. A float that JSON cannot say is never written as something else: an export refuses the row by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.base.errors import BadRequest
from omnigraph.catalog.catalog import NodeType, TableType
from omnigraph.records.blobs import blob_text
from omnigraph.records.times import FIRST_DAY, FIRST_MS, LAST_DAY, LAST_MS

_JSON_SAFE = 9_007_199_254_740_991


def export_lines(table: TableType, rows: pa.RecordBatch | pa.Table) -> bytes:
    """The rows as lines a load accepts, each with its newline."""
    if not rows.num_rows:
        return b""
    _refuse_non_finite(table, rows)
    columns = {name: json_column(rows.column(name)) for name in table.arrow_schema.names}
    names = ("id", *(declared.name for declared in table.properties))
    datas = [dict(zip(names, values, strict=True)) for values in zip(*(columns[name] for name in names), strict=True)]
    name = table.name
    if isinstance(table, NodeType):
        return _lines([{"type": name, "data": data} for data in datas], b'{"type":')
    ends = zip(columns["src"], columns["dst"], datas, strict=True)
    return _lines([{"edge": name, "from": src, "to": dst, "data": data} for src, dst, data in ends], b'{"edge":')


def _lines(records: list[dict[str, Any]], beginning: bytes) -> bytes:
    """One array, written at once and cut at its commas, which takes a tenth of the time of a call for each record.

    Only a record begins like this: inside a string the quote would be escaped, and after a string's last quote comes no
    letter.
    """
    array = orjson.dumps(records, option=orjson.OPT_SERIALIZE_NUMPY)
    return array[1:-1].replace(b"}," + beginning, b"}\n" + beginning) + b"\n"


def json_rows(table: pa.Table) -> list[dict[str, Any]]:
    """The rows for a program that may keep numbers as doubles: integers beyond 2^53 are decimal text."""
    columns = [safe_column(column) for column in table.columns]
    return [dict(zip(table.column_names, values, strict=True)) for values in zip(*columns, strict=True)]


def safe_column(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values of a column as `json_rows` has them."""
    return _as_lists(_safe_integers(json_column(column)))


def json_column(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values of a column as JSON has them; vectors stay numpy arrays, which orjson writes as they are."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    type_ = column.type
    encoder = _ENCODERS.get(type_)
    if encoder is not None:
        return encoder(column)
    if pa.types.is_timestamp(type_):
        return _moments(column.cast(pa.timestamp("ms", tz="UTC"), safe=False))
    if pa.types.is_fixed_size_list(type_) and type_.value_type == pa.float32():
        return _vectors(column)
    if pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_):
        return _lists(column)
    values: list[Any] = column.to_pylist()
    return values


def _objects(column: pa.Array) -> list[Any]:
    # Much quicker than to_pylist for texts and bytes.
    values: list[Any] = column.to_numpy(zero_copy_only=False).tolist()
    return values


def _blobs(column: pa.Array) -> list[Any]:
    return [None if value is None else blob_text(value) for value in _objects(column)]


def _narrow_floats(column: pa.Array) -> list[Any]:
    """Doubles whose shortest text is the shortest text of the 32-bit number."""
    return _reread(column.to_numpy(zero_copy_only=False))


def _reread(numbers: np.ndarray[Any, Any]) -> list[Any]:
    values: list[Any] = orjson.loads(orjson.dumps(numbers, option=orjson.OPT_SERIALIZE_NUMPY))
    return values


def _days(column: pa.Array) -> list[Any]:
    return _texts_or_integers(column, column.cast(pa.int32()), FIRST_DAY, LAST_DAY, _date_texts)


def _moments(column: pa.Array) -> list[Any]:
    return _texts_or_integers(column, column.cast(pa.int64()), FIRST_MS, LAST_MS, _moment_texts)


def _texts_or_integers(
    column: pa.Array, numbers: pa.Array, first: int, last: int, texts: Callable[[pa.Array], list[Any]]
) -> list[Any]:
    low, high = pa.scalar(first, numbers.type), pa.scalar(last, numbers.type)
    inside = pc.and_(pc.greater_equal(numbers, low), pc.less_equal(numbers, high))
    if not inside.false_count:
        return texts(column)
    found = texts(pc.if_else(inside, column, pa.scalar(None, column.type)))
    for k in np.flatnonzero(pc.invert(inside).fill_null(False).to_numpy(zero_copy_only=False)).tolist():
        found[k] = numbers[k].as_py()
    return found


def _date_texts(column: pa.Array) -> list[Any]:
    return _objects(column.cast(pa.string()))


def _moment_texts(column: pa.Array) -> list[Any]:
    return _objects(pc.replace_substring(column.cast(pa.string()), " ", "T", max_replacements=1))


def _vectors(column: pa.Array) -> list[Any]:
    matrix = column.flatten() if not column.null_count else column.fill_null(_zeros(column.type)).flatten()
    rows = list(matrix.to_numpy(zero_copy_only=False).reshape(len(column), column.type.list_size))
    return _with_nulls(rows, column)


def _zeros(type_: pa.DataType) -> pa.Scalar:
    return pa.scalar([0.0] * type_.list_size, type_)


def _lists(column: pa.Array) -> list[Any]:
    sizes = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    ends = np.cumsum(sizes).tolist()
    items = json_column(column.flatten())
    rows = [items[end - size : end] for end, size in zip(ends, sizes.tolist(), strict=True)]
    return _with_nulls(rows, column)


def _with_nulls(rows: list[Any], column: pa.Array) -> list[Any]:
    if column.null_count:
        for k in np.flatnonzero(pc.is_null(column).to_numpy(zero_copy_only=False)).tolist():
            rows[k] = None
    return rows


_ENCODERS: dict[pa.DataType, Callable[[pa.Array], list[Any]]] = {
    pa.string(): _objects,
    pa.large_string(): _objects,
    pa.binary(): _blobs,
    pa.large_binary(): _blobs,
    pa.float32(): _narrow_floats,
    pa.date32(): _days,
    pa.timestamp("ms", tz="UTC"): _moments,
}


def _refuse_non_finite(table: TableType, rows: pa.RecordBatch | pa.Table) -> None:
    for declared in table.properties:
        column = rows.column(declared.name)
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        numbers = column.flatten() if pa.types.is_nested(column.type) else column
        if pa.types.is_floating(numbers.type) and pc.is_finite(numbers).false_count:
            row = next(k for k, value in enumerate(column.to_pylist()) if not np.isfinite(_numbers(value)).all())
            text = f"{table.name}.{declared.name} of id '{rows.column('id')[row].as_py()}' is not a finite number"
            raise BadRequest(f"{text}, which JSON cannot say", "Set it to null or to a number, then export again.")


def _numbers(value: float | list[float] | None) -> list[float]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _safe_integers(values: list[Any]) -> list[Any]:
    if not {int, list}.isdisjoint(map(type, values)):
        return [_safe(value) for value in values]
    return values


def _safe(value: Any) -> Any:
    if type(value) is int and abs(value) > _JSON_SAFE:
        return str(value)
    return [_safe(item) for item in value] if type(value) is list else value


def _as_lists(values: list[Any]) -> list[Any]:
    return [_reread(value) if isinstance(value, np.ndarray) else value for value in values]
