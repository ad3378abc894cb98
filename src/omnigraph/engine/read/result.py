"""What a query answers: rows in the order of the projection, and where they were read.

Holds for every QueryResult:
  1. Nothing is converted before it is asked for; a one-row answer costs a few microseconds.
  2. Rows that lie in memory or in a file can be read any number of times; a stream that was not kept, once.
"""

from __future__ import annotations

import html
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from omnigraph.base.errors import BadRequest, Unavailable
from omnigraph.catalog.types import PropertyType
from omnigraph.engine.read.found import Found
from omnigraph.engine.read.json_values import json_values

if TYPE_CHECKING:
    import pandas as pd

_SHOWN_ROWS = 50
_SHOWN_CHARACTERS = 200
_TIMES = (OverflowError, ValueError)


class KeptRows(Protocol):
    """Rows that lie somewhere and can be read again and again."""

    schema: pa.Schema
    num_rows: int

    def batches(self) -> Iterator[pa.RecordBatch]: ...


class QueryResult:
    """The answer to a query. `types` says what each column is in the schema's own words, where it has one."""

    __slots__ = (
        "__weakref__",
        "_columns",
        "_kept",
        "_reader",
        "_rows",
        "_table",
        "graph_commit_id",
        "plan",
        "query_name",
        "target",
        "types",
    )

    def __init__(
        self,
        rows: pa.Table | pa.RecordBatchReader | KeptRows,
        types: Sequence[PropertyType | None] = (),
        *,
        query_name: str,
        target: Mapping[str, str],
        graph_commit_id: str | None,
        plan: str | None = None,
        on_gone: Callable[[], None] | None = None,
    ) -> None:
        """`target` is `{"branch": name}` or `{"snapshot": id}`; `on_gone` frees what kept rows lie in."""
        self._table: pa.Table | None = rows if isinstance(rows, pa.Table) else None
        self._reader: pa.RecordBatchReader | None = rows if isinstance(rows, pa.RecordBatchReader) else None
        self._kept: KeptRows | None = rows if self._table is None and self._reader is None else None
        self._columns: list[str] = rows.schema.names
        self._rows: list[dict[str, Any]] | None = None
        self.types = tuple(types)
        self.query_name = query_name
        self.target = target
        self.graph_commit_id = graph_commit_id
        self.plan = plan
        """How it was answered, with rows and times, if that was asked for."""
        if on_gone is not None:
            weakref.finalize(self, on_gone)

    @property
    def columns(self) -> list[str]:
        return self._columns

    @property
    def rows(self) -> list[dict[str, Any]]:
        """All rows as Python values: dates as `date`, moments as `datetime` in UTC, vectors as lists."""
        if self._rows is None:
            found = self._kept if isinstance(self._kept, Found) else self.to_arrow()
            self._rows = _dicts(self._columns, found, _python_values)
        return self._rows

    @property
    def row_count(self) -> int:
        if self._kept is not None:
            return self._kept.num_rows
        count: int = self.to_arrow().num_rows
        return count

    @property
    def schema(self) -> pa.Schema:
        """The columns as Arrow has them."""
        return self._source.schema

    def to_arrow(self) -> pa.Table:
        """All rows as one table in memory."""
        if self._table is None:
            batches = self._kept.batches() if self._kept is not None else iter(self._unread())
            self._table = pa.Table.from_batches(batches, self.schema)
            self._kept = self._reader = None
        return self._table

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows piece by piece; of a stream that was not read yet, only once and without keeping them."""
        if self._table is not None:
            return iter(self._table.to_batches())
        return self._kept.batches() if self._kept is not None else self._poured()

    def to_pandas(self) -> pd.DataFrame:
        frame: pd.DataFrame = self.to_arrow().to_pandas()
        return frame

    def to_polars(self) -> Any:
        """A polars DataFrame; polars is not one of our requirements."""
        try:
            polars: Any = import_module("polars")
        except ImportError:
            hint = "Install it with pip install polars, or use to_arrow() or to_pandas()."
            raise Unavailable("polars is not installed", hint, what="polars") from None
        return polars.from_arrow(self.to_arrow())

    def to_json(self) -> dict[str, Any]:
        """The answer as HTTP and `--json` give it."""
        if self._reader is not None:
            self.to_arrow()
        rows = [row for batch in self.to_batches() for row in _dicts(self._columns, batch, json_values)]
        return {
            "query_name": self.query_name,
            "target": dict(self.target),
            "graph_commit_id": self.graph_commit_id,
            "row_count": len(rows),
            "columns": self._columns,
            "rows": rows,
        }

    def json_tuples(self) -> Iterator[tuple[Any, ...]]:
        """The rows as JSON values in the order of the columns, converted as they are taken."""
        return (row for batch in self.to_batches() for row in _tuples(batch, json_values))

    @property
    def _source(self) -> pa.Table | pa.RecordBatchReader | KeptRows:
        for source in (self._table, self._kept, self._reader):
            if source is not None:
                return source
        raise _poured_out()

    def _unread(self) -> pa.RecordBatchReader:
        if self._reader is None:
            raise _poured_out()
        return self._reader

    def _poured(self) -> Iterator[pa.RecordBatch]:
        reader, self._reader = self._unread(), None
        return iter(reader)

    def __len__(self) -> int:
        return self.row_count

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Rows as Python values; of kept rows only a piece is in memory."""
        if self._kept is None or isinstance(self._kept, Found):
            return iter(self.rows)
        return (row for batch in self._kept.batches() for row in _dicts(self._columns, batch, _python_values))

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        kind, name = next(iter(self.target.items()))
        unread = self._table is None and self._kept is None
        count = "a stream of rows" if unread else _counted(self.row_count, "row")
        return f"<QueryResult {self.query_name}: {count}, {_counted(len(self._columns), 'column')}, from {kind} {name}>"

    def _repr_html_(self) -> str:
        count = self.row_count
        first = _dicts(self._columns, pa.Table.from_batches(_first(self.to_batches()), self.schema), json_values)
        heads = "".join(f"<th>{_escaped(name)}</th>" for name in self._columns)
        lines = "".join(f"<tr>{''.join(f'<td>{_escaped(value)}</td>' for value in row.values())}</tr>" for row in first)
        shown = f", the first {_SHOWN_ROWS} shown" if count > _SHOWN_ROWS else ""
        kind, name = next(iter(self.target.items()))
        told = f"{_counted(count, 'row')} from {kind} {name} via {self.query_name}{shown}"
        return (
            f"<table><caption>{_escaped(told)}</caption><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table>"
        )


def _poured_out() -> BadRequest:
    return BadRequest(
        "the rows of this result were already read as a stream", "Call to_arrow() first, which keeps them."
    )


def _tuples(
    data: Found | pa.Table | pa.RecordBatch, convert: Callable[[pa.Array | pa.ChunkedArray], list[Any]]
) -> Iterator[tuple[Any, ...]]:
    columns = _columns(data, convert)
    return zip(*columns, strict=True) if columns else iter([()] * data.num_rows)


def _columns(
    data: Found | pa.Table | pa.RecordBatch, convert: Callable[[pa.Array | pa.ChunkedArray], list[Any]]
) -> list[list[Any]]:
    return [column if isinstance(column, list) else convert(column) for column in data.columns]


def _dicts(
    names: Sequence[str],
    data: Found | pa.Table | pa.RecordBatch,
    convert: Callable[[pa.Array | pa.ChunkedArray], list[Any]],
) -> list[dict[str, Any]]:
    if len(names) == 1:
        (column,), name = _columns(data, convert), names[0]
        return [{name: value} for value in column]
    return [dict(zip(names, values, strict=True)) for values in _tuples(data, convert)]


def _python_values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    type_ = column.type
    try:
        values: list[Any] = (
            column.to_pylist(maps_as_pydicts="lossy") if pa.types.is_nested(type_) else column.to_pylist()
        )
    except _TIMES:
        # Python has no date before the year 1 or after 9999; the integer that stores it is what there is.
        return json_values(column)
    if pa.types.is_decimal(type_) and type_.scale == 0:
        return [int(value) if isinstance(value, Decimal) else value for value in values]
    return values


def _first(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    wanted = _SHOWN_ROWS
    for batch in batches:
        yield batch.slice(0, wanted)
        wanted -= batch.num_rows
        if wanted <= 0:
            return


def _escaped(value: Any) -> str:
    text = "null" if value is None else value if isinstance(value, str) else str(value)
    shown = text if len(text) <= _SHOWN_CHARACTERS else "".join(islice(text, _SHOWN_CHARACTERS - 1)) + "…"
    return html.escape(shown)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
