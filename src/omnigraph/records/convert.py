"""Python values, as JSON gives them, to Arrow columns. One converter for loads, parameters and literals.

Holds for every conversion:
  1. Nothing is coerced: a value of another JSON type, or one that would lose something, is bad and null in the column.
  2. A column whose values are all good is looked at by C code only; bad ones are told apart in one pass.
  3. Every bad value has a reason and a message, made only when somebody asks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from types import NoneType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.catalog import Property
from omnigraph.catalog.types import FLOATS, INTEGER_RANGES, PropertyType, ScalarType, arrow_type
from omnigraph.records.blobs import BadBlob, blob_of
from omnigraph.records.explain import Fault, explain, missing
from omnigraph.records.times import parse_days, parse_ms

Values = Sequence[Any]
_TEXTS = frozenset({str, NoneType})
_INTEGERS = frozenset({int, NoneType})
_NUMBERS = frozenset({int, float, NoneType})
_BOOLS = frozenset({bool, NoneType})
_ARRAYS = frozenset({list, tuple, NoneType})
_STORED_INTS = {ScalarType.DATE: pa.int32(), ScalarType.DATETIME: pa.int64()}


@dataclass(frozen=True)
class Converted:
    """A column and the rows whose value did not fit; those are null in it."""

    array: pa.Array
    bad: list[int]


def column_of(
    declared: Property, values: Values, *, owner: str = "", allowed_blob_prefixes: Sequence[str] = ()
) -> tuple[pa.Array, list[tuple[int, str, str]]]:
    """The column of a property, and `(index, reason, message)` for every value that does not fit it."""
    converted = convert(declared.type, values, allowed_blob_prefixes)
    faults = [(i, *why_not(declared, values[i], owner, allowed_blob_prefixes)) for i in converted.bad]
    if not declared.type.nullable:
        faults += [(i, *missing(declared)) for i, value in enumerate(values) if value is None]
    return converted.array, sorted(faults)


def why_not(declared: Property, value: Any, owner: str, allowed_blob_prefixes: Sequence[str] = ()) -> Fault:
    """The reason code and the message for a value that `convert` found bad."""
    type_, element = declared.type, 0
    if type_.is_list and isinstance(value, list | tuple):
        misfits = set(convert(PropertyType(type_.scalar), value).bad)
        element = next(i for i, item in enumerate(value) if item is None or i in misfits)
    return explain(declared, value, owner, allowed_blob_prefixes, element)


def convert(type_: PropertyType, values: Values, allowed_blob_prefixes: Sequence[str] = ()) -> Converted:
    if type_.is_vector:
        return _vectors(type_, values)
    if type_.is_list:
        return _lists(type_, values)
    if type_.is_blob:
        return _blobs(values, allowed_blob_prefixes)
    if type_.is_enum:
        return _members(type_, values)
    return _SCALARS[type_.scalar](type_.scalar, values)


def _without(values: Values, bad: list[int]) -> list[Any]:
    kept = list(values)
    for i in bad:
        kept[i] = None
    return kept


def _merged(*found: list[int]) -> list[int]:
    return sorted(set(chain.from_iterable(found)))


def _texts(_scalar: ScalarType, values: Values) -> Converted:
    if _TEXTS.issuperset(map(type, values)):
        try:
            return Converted(pa.array(values, pa.string()), [])
        except UnicodeEncodeError:
            bad = [i for i, value in enumerate(values) if value is not None and not _is_unicode(value)]
            return Converted(pa.array(_without(values, bad), pa.string()), bad)
    bad = [i for i, value in enumerate(values) if type(value) is not str and value is not None]
    rest = _texts(_scalar, _without(values, bad))
    return Converted(rest.array, _merged(bad, rest.bad))


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _members(type_: PropertyType, values: Values) -> Converted:
    texts = _texts(type_.scalar, values)
    known = pc.is_in(texts.array, value_set=pa.array(type_.enum_values, pa.string()))
    if known.true_count + texts.array.null_count == len(known):
        return texts
    strange = pc.and_(pc.invert(known), pc.is_valid(texts.array))
    bad = np.flatnonzero(_flags(strange)).tolist()
    return Converted(pc.if_else(strange, pa.scalar(None, pa.string()), texts.array), _merged(texts.bad, bad))


def _flags(mask: pa.Array) -> np.ndarray[Any, Any]:
    return np.asarray(mask.to_numpy(zero_copy_only=False), np.bool_)


def _integers(scalar: ScalarType, values: Values) -> Converted:
    low, high = INTEGER_RANGES[scalar]
    return _whole(values, arrow_type(PropertyType(scalar)), low, high)


def _whole(values: Values, storage: pa.DataType, low: int, high: int) -> Converted:
    if _INTEGERS.issuperset(map(type, values)):
        try:
            return Converted(pa.array(values, storage), [])
        except (pa.ArrowInvalid, OverflowError):
            pass
    bad = [i for i, v in enumerate(values) if v is not None and (type(v) is not int or not low <= v <= high)]
    return Converted(pa.array(_without(values, bad), storage), bad)


def _bools(_scalar: ScalarType, values: Values) -> Converted:
    if _BOOLS.issuperset(map(type, values)):
        return Converted(pa.array(values, pa.bool_()), [])
    bad = [i for i, value in enumerate(values) if type(value) is not bool and value is not None]
    return Converted(pa.array(_without(values, bad), pa.bool_()), bad)


def _floats(scalar: ScalarType, values: Values) -> Converted:
    kinds = set(map(type, values))
    bad: list[int] = []
    if not kinds <= _NUMBERS:
        bad = [i for i, v in enumerate(values) if v is not None and type(v) is not float and type(v) is not int]
        values = _without(values, bad)
    if int in kinds:
        values, too_big = _as_floats(values)
        bad = _merged(bad, too_big)
    array = pa.array(values, pa.float64())
    array = array.cast(pa.float32()) if scalar is ScalarType.F32 else array
    finite = pc.is_finite(array)
    if finite.false_count:
        bad = _merged(bad, np.flatnonzero(_flags(pc.invert(finite).fill_null(False))).tolist())
        array = pc.if_else(finite, array, pa.scalar(None, array.type))
    return Converted(array, bad)


def _as_floats(values: Values) -> tuple[list[float | None], list[int]]:
    try:
        return [None if value is None else float(value) for value in values], []
    except OverflowError:
        bad = [i for i, value in enumerate(values) if type(value) is int and abs(value) >> 1024]
        return _as_floats(_without(values, bad))[0], bad


def _times(scalar: ScalarType, values: Values) -> Converted:
    """Integers and texts may stand side by side in one column."""
    kinds = set(map(type, values))
    storage, target = _STORED_INTS[scalar], arrow_type(PropertyType(scalar))
    if kinds <= _INTEGERS:
        whole = _whole_times(storage, values)
        return Converted(whole.array.cast(target), whole.bad)
    if kinds <= _TEXTS:
        texts = _text_times(scalar, values)
        return Converted(texts.array.cast(target), texts.bad)
    bad = [i for i, v in enumerate(values) if v is not None and type(v) is not int and type(v) is not str]
    whole = _whole_times(storage, [value if type(value) is int else None for value in values])
    texts = _text_times(scalar, [value if type(value) is str else None for value in values])
    return Converted(pc.coalesce(whole.array, texts.array).cast(target), _merged(bad, whole.bad, texts.bad))


def _whole_times(storage: pa.DataType, values: Values) -> Converted:
    limit = 2 ** (storage.bit_width - 1)
    return _whole(values, storage, -limit, limit - 1)


def _text_times(scalar: ScalarType, values: Values) -> Converted:
    texts = _texts(ScalarType.STRING, values)
    numbers, good = (parse_days if scalar is ScalarType.DATE else parse_ms)(texts.array)
    array = pa.array(numbers.astype(_STORED_INTS[scalar].to_pandas_dtype()), mask=~good)
    if array.null_count == texts.array.null_count:
        return Converted(array, texts.bad)
    present = ~_flags(pc.is_null(texts.array))
    return Converted(array, _merged(texts.bad, np.flatnonzero(present & ~good).tolist()))


def _lists(type_: PropertyType, values: Values) -> Converted:
    bad, values = _non_arrays(values)
    sizes = np.fromiter((0 if value is None else len(value) for value in values), np.int64, len(values))
    items = list(chain.from_iterable(value for value in values if value is not None))
    elements = convert(PropertyType(type_.scalar), items)
    if elements.array.null_count:
        misfits = [i for i, item in enumerate(items) if item is None] + elements.bad
        worse = sorted(set(np.repeat(np.arange(len(values)), sizes)[misfits].tolist()))
        return Converted(_lists(type_, _without(values, worse)).array, _merged(bad, worse))
    offsets = pa.array(np.concatenate([[0], np.cumsum(sizes)]), pa.int32())
    absent = np.fromiter((value is None for value in values), np.bool_, len(values))
    array = pa.ListArray.from_arrays(offsets, elements.array, type=arrow_type(type_), mask=pa.array(absent))
    return Converted(array, bad)


def _non_arrays(values: Values) -> tuple[list[int], Values]:
    if _ARRAYS.issuperset(map(type, values)):
        return [], values
    bad = [i for i, value in enumerate(values) if type(value) not in _ARRAYS]
    return bad, _without(values, bad)


def _vectors(type_: PropertyType, values: Values) -> Converted:
    assert type_.dimension is not None
    bad, values = _non_arrays(values)
    numbers = _numbers(values, type_.dimension)
    if numbers is None:
        worse = _bad_vectors(values, type_.dimension)
        values = _without(values, worse)
        numbers, bad = _numbers(values, type_.dimension), _merged(bad, worse)
        assert numbers is not None
    absent = np.fromiter((value is None for value in values), np.bool_, len(values))
    if absent.any():
        filled = np.zeros((len(values), type_.dimension), np.float32)
        filled[~absent] = numbers.reshape(-1, type_.dimension)
        numbers = filled.reshape(-1)
    flat = pa.array(numbers, pa.float32())
    return Converted(pa.FixedSizeListArray.from_arrays(flat, type=arrow_type(type_), mask=pa.array(absent)), bad)


def _numbers(values: Values, dimension: int) -> np.ndarray[Any, Any] | None:
    """The numbers of all vectors in one row, None if any vector is bad."""
    vectors = [value for value in values if value is not None]
    if any(len(vector) != dimension for vector in vectors):
        return None
    if not {int, float}.issuperset(map(type, chain.from_iterable(vectors))):
        return None
    try:
        wide = np.fromiter(chain.from_iterable(vectors), np.float64, len(vectors) * dimension)
    except OverflowError:
        return None
    narrow = _narrowed(wide)
    return narrow if np.isfinite(narrow).all() else None


def _narrowed(wide: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    with np.errstate(over="ignore"):
        return wide.astype(np.float32)


def _bad_vectors(values: Values, dimension: int) -> list[int]:
    """The rows whose vector has another length or holds something that is no finite number."""
    sized = [i for i, value in enumerate(values) if value is not None and len(value) == dimension]
    items: list[Any] = list(chain.from_iterable(values[i] for i in sized))
    if not {int, float}.issuperset(map(type, items)):
        items = [item if type(item) is float or type(item) is int else math.inf for item in items]
    numbers, _ = _as_floats(items)
    wide = np.array(numbers, np.float64)  # what is too great for a float is None, which becomes NaN
    finite = np.isfinite(_narrowed(wide)).reshape(-1, dimension).all(axis=1)
    good = set(np.asarray(sized, np.int64)[finite].tolist())
    return [i for i, value in enumerate(values) if value is not None and i not in good]


def _blobs(values: Values, allowed_prefixes: Sequence[str]) -> Converted:
    contents: list[bytes | None] = []
    bad = []
    for i, value in enumerate(values):
        content = None
        try:
            if isinstance(value, str | bytes):
                content = blob_of(value, allowed_prefixes)
            elif value is not None:
                bad.append(i)
        except BadBlob:
            bad.append(i)
        contents.append(content)
    return Converted(pa.array(contents, pa.large_binary()), bad)


_SCALARS: dict[ScalarType, Callable[[ScalarType, Values], Converted]] = {
    ScalarType.STRING: _texts,
    ScalarType.BOOL: _bools,
    **dict.fromkeys(INTEGER_RANGES, _integers),
    **dict.fromkeys(FLOATS, _floats),
    ScalarType.DATE: _times,
    ScalarType.DATETIME: _times,
}
