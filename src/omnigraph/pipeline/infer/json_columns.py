"""Columns of JSON records: which property type holds every value, given what Spark makes of the same lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from omnigraph.catalog.types import ScalarType
from omnigraph.pipeline.infer.profile import SAMPLE_VALUES_MAX, TO_JSON, ColumnProfile, narrowest_whole
from omnigraph.pipeline.infer.texts import TextColumn

_DECIMAL_MAX = 10**38
_KINDS: dict[type, str] = {str: "text", bool: "flag", int: "whole", float: "number", list: "list", dict: "object"}


class _Scalars:
    """What kinds of single values were seen, and how large the whole ones are."""

    def __init__(self) -> None:
        self.kinds: set[str] = set()
        self.low = self.high = 0

    def add(self, values: Sequence[Any]) -> None:
        self.kinds |= {_KINDS[kind] for kind in set(map(type, values)) if kind in _KINDS}
        if "whole" in self.kinds:
            whole = [value for value in values if type(value) is int]
            if whole:
                self.low, self.high = min(self.low, *whole, 0), max(self.high, *whole, 0)

    def scalar(self) -> ScalarType | None:
        """The type of values that are all of one kind; None if no type holds them as they are."""
        if self.kinds == {"flag"}:
            return ScalarType.BOOL
        if self.kinds == {"whole"}:
            return narrowest_whole(self.low, self.high)
        if self.kinds and self.kinds <= {"whole", "number"}:
            return ScalarType.F64
        return ScalarType.STRING if self.kinds <= {"text"} else None


class JsonColumn:
    """`strict` columns are read by the load itself, which takes neither objects nor mixed values for texts."""

    def __init__(self, name: str, position: int, *, strict: bool = False) -> None:
        self._name, self._position, self._strict = name, position, strict
        self.rows = self.nulls = 0
        self._single, self._elements = _Scalars(), _Scalars()
        self._texts = TextColumn(name, position, typed=True)
        self._is_solid = self._has_null_elements = False
        self._whole: set[int] = set()
        self._is_unique = True

    def add(self, values: Sequence[Any]) -> None:
        """The values of some records; None where a record has none."""
        given = [value for value in values if value is not None]
        self.rows += len(values)
        self.nulls += len(values) - len(given)
        self._single.add(given)
        texts = [value for value in given if type(value) is str]
        if texts:
            self._texts.add(pa.array(texts, pa.string()))
        whole = [value for value in given if type(value) is int]
        if whole:
            different = set(whole)
            self._is_unique = self._is_unique and len(different) == len(whole)
            for value in different:
                if len(self._whole) >= SAMPLE_VALUES_MAX:
                    break
                self._whole.add(value)
        for value in given:
            if type(value) is list:
                self._has_null_elements = self._has_null_elements or None in value
                self._elements.add(value)
            if not self._is_solid and type(value) in (list, dict):
                self._is_solid = _has_value(value)

    def profile(self) -> ColumnProfile:
        kinds = self._single.kinds
        if kinds == {"text"}:
            return self._finished(self._texts.profile())
        base = ColumnProfile(self._name, self._position, ScalarType.STRING, self.rows, self.nulls)
        if not kinds:
            return self._finished(base, note="no value at all")
        if kinds == {"list"}:
            return self._lists(base)
        if kinds == {"object"}:
            if self._strict or not self._is_solid:
                return self._finished(base, left_out="objects" if self._strict else "only empty objects")
            return self._finished(base, cast=TO_JSON, note="objects, kept as JSON text")
        scalar = self._single.scalar()
        low, high = self._single.low, self._single.high
        if scalar is not None:
            found = self._finished(base, scalar=scalar, may_be_unique=self._is_unique)
            return self._finished(found, low=low, high=high, sample=tuple(str(value) for value in self._whole))
        if kinds == {"whole"}:
            return self._beyond(base, low, high)
        told = "values of several kinds"
        return self._finished(base, left_out=told) if self._strict else self._finished(base, note=f"{told}, as texts")

    def _beyond(self, base: ColumnProfile, low: int, high: int) -> ColumnProfile:
        """Whole numbers that no property type holds; Spark has them as decimals, if at all."""
        if self._strict or max(-low, high) >= _DECIMAL_MAX:
            return self._finished(base, scalar=ScalarType.F64, note="whole numbers beyond 64 bits, rounded")
        return self._finished(base, cast="string", note="whole numbers beyond 64 bits, as texts")

    def _lists(self, base: ColumnProfile) -> ColumnProfile:
        scalar = None if self._has_null_elements else self._elements.scalar()
        if scalar is not None:
            return self._finished(base, scalar=scalar, is_list=True)
        if self._strict or not self._is_solid:
            told = "lists that no property type holds"
            return self._finished(base, left_out=told if self._strict else "only empty values in lists")
        return self._finished(base, cast=TO_JSON, note="lists that no property type holds, kept as JSON text")

    def _finished(self, found: ColumnProfile, **changes: Any) -> ColumnProfile:
        return replace(found, rows=self.rows, nulls=self.nulls, **changes)


def _has_value(value: Any) -> bool:
    """Whether anything but empty objects and nulls is inside; Spark drops what is empty all the way down."""
    if type(value) is dict:
        return any(map(_has_value, value.values()))
    return any(map(_has_value, value)) if type(value) is list else value is not None
