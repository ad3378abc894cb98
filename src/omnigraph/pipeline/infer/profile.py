"""What was found out about one column, as values; the draft is decided on these alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from omnigraph.catalog.types import INTEGER_RANGES, ScalarType

ENUM_VALUES_MAX, ENUM_ROWS_MIN = 16, 100
SAMPLE_VALUES_MAX = 64
TO_JSON = "json"
Family = Literal["text", "whole", "time"]


@dataclass(frozen=True)
class ColumnProfile:
    """`cast` is what Spark must do to give a value of the type: a type to cast to, `json` for to_json, or nothing.

    `left_out` says why the column can be no property; the rest then means nothing.
    """

    name: str
    position: int
    scalar: ScalarType
    rows: int
    nulls: int
    is_list: bool = False
    cast: str | None = None
    distinct: tuple[str, ...] | None = None
    """Every value of a text column, if they are few and short."""
    sample: tuple[str, ...] = ()
    """Some values as ids are written, to refute a reference cheaply."""
    low: int | None = None
    high: int | None = None
    may_be_unique: bool = False
    is_text_at_source: bool = False
    """Whether Spark reads texts, so that dates and times must be cast where a value of the key is wanted."""
    note: str = ""
    left_out: str = ""

    @property
    def family(self) -> Family | None:
        """Columns of one family can be compared by the texts of their ids. None: cannot be a key."""
        if self.is_list or self.left_out or self.cast == TO_JSON or (self.nulls == self.rows):
            return None
        if self.scalar is ScalarType.STRING:
            return "text"
        if self.scalar in INTEGER_RANGES:
            return "whole"
        return "time" if self.scalar in (ScalarType.DATE, ScalarType.DATETIME) else None

    @property
    def may_be_key(self) -> bool:
        return self.may_be_unique and not self.nulls and self.family is not None


@dataclass(frozen=True)
class TableProfile:
    """One input. `key` is the column found to be unique and complete, checked exactly over all rows read."""

    title: str
    format: Literal["csv", "parquet", "json"]
    paths: tuple[str, ...]
    options: tuple[tuple[str, str], ...]
    rows: int
    columns: tuple[ColumnProfile, ...]
    key: str | None = None
    notes: tuple[str, ...] = ()

    def column(self, name: str) -> ColumnProfile:
        return next(column for column in self.columns if column.name == name)


@dataclass(frozen=True)
class Reference:
    """Every value of a column occurs in the key of another table; tables are named by their place in the list."""

    table: int
    column: str
    target: int


def narrowest_whole(low: int, high: int) -> ScalarType | None:
    """The first of I32, I64 and U64 that holds both."""
    for scalar in (ScalarType.I32, ScalarType.I64, ScalarType.U64):
        least, most = INTEGER_RANGES[scalar]
        if least <= low and high <= most:
            return scalar
    return None
