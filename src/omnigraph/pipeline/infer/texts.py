"""The narrowest type of a column of texts, decided batch by batch.

Holds for every answer: casting the text to the type and writing the value again gives the same value, so nothing is
lost and nothing is guessed. `007`, `+1`, ` 5`, `1,234` and `01/02/2024` are texts, and so is `NaN`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, InvalidOperation

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.types import ScalarType
from omnigraph.pipeline.infer.profile import (
    ENUM_VALUES_MAX,
    SAMPLE_VALUES_MAX,
    ColumnProfile,
    narrowest_whole,
)
from omnigraph.records.times import parse_days, parse_ms

_WHOLE = r"^(?:0|-?[1-9][0-9]*)$"
# An exponent needs a point or a sign: `1e5` alone is as likely a code.
_NUMBER = r"^-?(?:(?:0|[1-9][0-9]*)?\.[0-9]+(?:[eE][+-]?[0-9]+)?|(?:0|[1-9][0-9]*)(?:[eE][+-][0-9]+)?)$"
_FLAG = r"^(?i:true|false)$"
_SHORT, _DIGITS_MAX, _SHOWN = 200, 25, 40
_EXACT_LENGTH = 15  # numbers of at most fifteen digits are kept by 64 bits, whatever they are
_CASTS = {
    ScalarType.BOOL: "boolean",
    ScalarType.I32: "int",
    ScalarType.I64: "bigint",
    ScalarType.U64: "decimal(20,0)",
    ScalarType.F64: "double",
}
_TIMES = (ScalarType.DATE, ScalarType.DATETIME)


class TextColumn:
    """`typed` columns say of themselves that they are texts, so that only dates and times are looked for."""

    def __init__(self, name: str, position: int, *, typed: bool = False) -> None:
        self._name, self._position, self._typed = name, position, typed
        self.rows = self.nulls = 0
        self._low: int | None = None
        self._high: int | None = None
        self._is_huge = False
        self._alive: dict[str, Callable[[pa.Array], pa.BooleanArray]] = {"date": _are_days, "time": _are_moments}
        if not typed:
            self._alive |= {"flag": _matches(_FLAG), "whole": _matches(_WHOLE), "number": _are_numbers}
        self._misfit = ""
        self._seen: dict[str, None] = {}
        self._few = True
        self._is_unique = True
        self.has_newline = False

    def add(self, texts: pa.Array) -> None:
        values = texts.drop_null()
        self.rows += len(texts)
        self.nulls += len(texts) - len(values)
        if not len(values):
            return
        for kind, fits in list(self._alive.items()):
            good = fits(values)
            if not pc.all(good).as_py():
                del self._alive[kind]
                self._note_misfit(kind, values, good)
        if "whole" in self._alive:
            self._note_range(values)
        self._note_values(values)
        if not self.has_newline:
            self.has_newline = bool(pc.any(pc.match_substring_regex(values, "[\r\n]")).as_py())

    def _note_misfit(self, kind: str, values: pa.Array, good: pa.BooleanArray) -> None:
        """Worth telling only if nearly all values would have been of the kind."""
        if 2 * pc.sum(good).as_py() > len(values) and kind != "whole":
            value = values.filter(pc.invert(good))[0].as_py()
            self._misfit = f"not {_SPOKEN[kind]} because of {shown(value)}"

    def _note_range(self, values: pa.Array) -> None:
        try:
            found = pc.min_max(values.cast(pa.int64())).as_py()
            low, high = found["min"], found["max"]
        except pa.ArrowInvalid:
            if pc.max(pc.binary_length(values)).as_py() > _DIGITS_MAX:
                self._is_huge = True
                return
            whole = [int(value) for value in values.to_pylist()]
            low, high = min(whole), max(whole)
        self._low = low if self._low is None else min(low, self._low)
        self._high = high if self._high is None else max(high, self._high)

    def _note_values(self, values: pa.Array) -> None:
        if self._is_unique or len(self._seen) < SAMPLE_VALUES_MAX:
            different = pc.unique(values)
            self._is_unique = self._is_unique and len(different) == len(values)
            for value in different[: 2 * SAMPLE_VALUES_MAX].to_pylist():
                if len(self._seen) >= SAMPLE_VALUES_MAX:
                    break
                if len(value) > _SHORT:
                    self._few = False
                else:
                    self._seen[value] = None

    def _scalar(self) -> ScalarType:
        alive = self._alive
        if self.nulls == self.rows:
            return ScalarType.STRING
        if "flag" in alive:
            return ScalarType.BOOL
        if "whole" in alive:
            fits = self._low is not None and self._high is not None and not self._is_huge
            return (narrowest_whole(self._low or 0, self._high or 0) if fits else None) or ScalarType.STRING
        if "number" in alive:
            return ScalarType.F64
        return ScalarType.DATE if "date" in alive else ScalarType.DATETIME if "time" in alive else ScalarType.STRING

    def profile(self) -> ColumnProfile:
        scalar = self._scalar()
        is_text = scalar is ScalarType.STRING
        few = self._few and len(self._seen) <= ENUM_VALUES_MAX
        note = self._misfit if is_text else ""
        if is_text and "whole" in self._alive and self.nulls < self.rows:
            note = "whole numbers beyond 64 bits"
        return ColumnProfile(
            self._name,
            self._position,
            scalar,
            self.rows,
            self.nulls,
            cast=_CASTS.get(scalar),
            distinct=tuple(sorted(self._seen)) if is_text and few else None,
            sample=() if scalar in _TIMES else tuple(self._seen),
            low=self._low if scalar in _CASTS else None,
            high=self._high if scalar in _CASTS else None,
            # Readers disagree about line ends inside a value, so such values are compared by nobody.
            may_be_unique=self._is_unique and not self.has_newline,
            is_text_at_source=True,
            note=note,
        )


_SPOKEN = {"date": "Date", "time": "DateTime", "flag": "Bool", "number": "a number"}


def _matches(pattern: str) -> Callable[[pa.Array], pa.BooleanArray]:
    return lambda values: pc.match_substring_regex(values, pattern)


def _are_days(values: pa.Array) -> pa.BooleanArray:
    return pa.array(parse_days(values)[1])


def _are_moments(values: pa.Array) -> pa.BooleanArray:
    return pa.array(parse_ms(values)[1])


def _are_numbers(values: pa.Array) -> pa.BooleanArray:
    good = pc.match_substring_regex(values, _NUMBER)
    risky = pc.or_(pc.greater(pc.binary_length(values), _EXACT_LENGTH), pc.match_substring_regex(values, "[eE]"))
    doubtful = pc.and_(good, risky).to_numpy(zero_copy_only=False)
    if not doubtful.any():
        return good
    kept = good.to_numpy(zero_copy_only=False).copy()
    for row in np.flatnonzero(doubtful).tolist():
        kept[row] = _survives(values[row].as_py())
    return pa.array(kept)


def _survives(text: str) -> bool:
    """Whether the shortest text of the number in 64 bits is the same number."""
    value = float(text)
    if math.isinf(value):
        return False
    try:
        return Decimal(repr(value)) == Decimal(text)
    except InvalidOperation:
        return False


def id_texts(profile: ColumnProfile, values: pa.Array) -> pa.Array:
    """The values as ids are written, nulls left out."""
    values = values.drop_null()
    if pa.types.is_string(values.type):
        if profile.scalar is ScalarType.DATE:
            return pa.array(parse_days(values)[0]).cast(pa.string())
        if profile.scalar is ScalarType.DATETIME:
            return pa.array(parse_ms(values)[0]).cast(pa.string())
        return values
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.timestamp("ms", values.type.tz)).cast(pa.int64())
    elif pa.types.is_date(values.type):
        values = values.cast(pa.date32()).cast(pa.int32())
    return values.cast(pa.string())


def shown(value: str) -> str:
    """A value in a comment: one line, not too long."""
    text = value if len(value) <= _SHOWN else value[: _SHOWN - 1] + "…"
    return "'" + "".join(c if c.isprintable() else "�" for c in text) + "'"
