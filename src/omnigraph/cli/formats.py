"""Rows as table, key-value lines, CSV, JSON lines or Arrow; the cells of a table are the same wherever it is shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from omnigraph.cli.failures import UsageMistake
from omnigraph.cli.output import json_text, on_terminal, one_line, put_bytes, put_json, put_line

if TYPE_CHECKING:
    import pyarrow as pa

    from omnigraph.engine.read.result import QueryResult

TEXT = "text"
TABLE, KV, CSV, JSONL, JSON, ARROW = "table", "kv", "csv", "jsonl", "json", "arrow"
ALL_FORMATS = (TABLE, KV, CSV, JSONL, JSON, ARROW)
ROW_FORMATS = (TABLE, KV, CSV, JSONL, JSON)
TEXT_FORMATS = (TABLE, JSON)
_WIDTH_MIN, _WIDTH_MAX = 8, 80
_PIECE_CHARACTERS = 1 << 16


@dataclass(frozen=True)
class Rows:
    """A result: `target` is `{"branch": name}` or `{"snapshot": id}`, `via` the query or command behind it."""

    via: str
    target: Mapping[str, str]
    columns: tuple[str, ...]
    rows: Iterable[tuple[Any, ...]]
    arrow_types: tuple[str, ...] = ()
    streamed: int | None = None
    """How many rows there are, where they are made only as they are read."""

    @property
    def row_count(self) -> int:
        assert self.streamed is not None or isinstance(self.rows, Sized)
        return self.streamed if self.streamed is not None else len(self.rows)  # type: ignore[arg-type]

    @property
    def headline(self) -> str:
        kind, name = next(iter(self.target.items()))
        return f"{self.row_count} rows from {kind} {name} via {self.via}"


def chosen_format(json: bool, named: str | None, default: str, allowed: Sequence[str]) -> str:
    """The format to print in; `text`, the command's own words, unless somebody asked for another."""
    if json and named is not None:
        raise UsageMistake("--json and --format cannot be given together", "--json means --format json.")
    if json:
        return JSON
    if named is not None:
        if named not in allowed:
            raise UsageMistake(f"'{named}' is not a format of this command", f"Use one of {', '.join(allowed)}.")
        if named == ARROW and on_terminal():
            raise UsageMistake("arrow is binary and stdout is a terminal", "Redirect it to a file or a pipe.")
        return named
    if default not in ALL_FORMATS:
        raise UsageMistake(f"cli.format '{default}' is unknown", f"Use one of {', '.join(ALL_FORMATS)}.")
    fits = default in allowed and default != TABLE and not (default == ARROW and on_terminal())
    return default if fits else TEXT


def put_result(result: QueryResult, how: str) -> None:
    """Print the answer to a query; csv, jsonl and arrow piece by piece, however large it is."""
    if how == JSON:
        put_json(result.to_json())
    elif how == ARROW:
        _put_arrow(result.schema, result.to_batches())
    else:
        # A header of csv needs no count, and asking for one would keep a stream in memory.
        count = 0 if how == CSV else result.row_count
        rows = result.json_tuples()
        put_rows(Rows(result.query_name, result.target, tuple(result.columns), rows, streamed=count), how)


def put_plan(plan: str) -> None:
    """How a query is or was answered; its lines may quote what the user wrote."""
    put_all(one_line(line) for line in plan.rstrip().splitlines())


def put_rows(result: Rows, how: str) -> None:
    """Print rows as table, kv, csv, jsonl or arrow."""
    match how:
        case "kv":
            put_all(_kv(result))
        case "csv":
            put_all(_csv(result))
        case "jsonl":
            put_all(_jsonl(result))
        case "arrow":
            table = _arrow(result)
            _put_arrow(table.schema, iter(table.to_batches()))
        case _ if on_terminal():
            _draw(result.headline, result.columns, list(result.rows))
        case _:
            put_all(_plain_table(result.headline, result.columns, list(result.rows)))


def put_all(lines: Iterable[str]) -> None:
    """The lines in pieces, so that neither many lines nor a long output make it slow or large."""
    waiting, size = [], 0
    for line in lines:
        waiting.append(line)
        size += len(line)
        if size >= _PIECE_CHARACTERS:
            put_line("\n".join(waiting))
            waiting, size = [], 0
    if waiting:
        put_line("\n".join(waiting))


def cell(value: Any) -> str:
    """A value as one line of text, at most 80 columns wide."""
    from rich.cells import cell_len, set_cell_size

    text = one_line(_words(value))
    return text if cell_len(text) <= _WIDTH_MAX else set_cell_size(text, _WIDTH_MAX - 1).rstrip() + "…"


def _words(value: Any) -> str:
    match value:
        case None:
            return "null"
        case str():
            return value
        case bool() | list() | tuple() | Mapping():
            return json_text(value)
        case _:
            return str(value)


def _plain_table(headline: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> Iterator[str]:
    from rich.cells import cell_len

    yield headline
    if not rows:
        yield "(no rows)"
        return
    lines = _cells(columns, rows)
    widths = _widths(lines)
    for line in lines:
        padded = (text + " " * (width - cell_len(text)) for text, width in zip(line, widths, strict=True))
        yield " | ".join(padded).rstrip()


def _cells(columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> list[tuple[str, ...]]:
    return [tuple(cell(name) for name in columns), *(tuple(cell(value) for value in row) for row in rows)]


def _widths(lines: Sequence[tuple[str, ...]]) -> list[int]:
    from rich.cells import cell_len

    return [max(_WIDTH_MIN, *(cell_len(text) for text in column)) for column in zip(*lines, strict=True)]


def _draw(headline: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    put_line(headline)
    if not rows:
        put_line("(no rows)")
        return
    console, table = Console(highlight=False), Table()
    lines = _cells(columns, rows)
    widths = _widths(lines)
    widest = widths.index(max(widths))
    # Ids and times stay whole where there is room: then only the widest column is folded.
    room = console.width - sum(widths) - 3 * len(widths) - 1 + widths[widest] >= _WIDTH_MIN
    for i, column in enumerate(lines[0]):
        table.add_column(Text(column), min_width=_WIDTH_MIN, overflow="fold", no_wrap=room and i != widest)
    for row, line in zip(rows, lines[1:], strict=True):
        cells = zip(row, line, strict=True)
        table.add_row(*(Text(text, style="dim" if value is None else "") for value, text in cells))
    console.print(table)


def _kv(result: Rows) -> Iterator[str]:
    yield result.headline
    if not result.row_count:
        yield "(no rows)"
    for number, row in enumerate(result.rows, 1):
        yield f"row {number}"
        for column, value in zip(result.columns, row, strict=True):
            yield f"  {one_line(column)}: {one_line(_words(value))}"


def _csv(result: Rows) -> Iterator[str]:
    yield ",".join(_quoted(c) for c in result.columns)
    for row in result.rows:
        yield ",".join("" if value is None else _quoted(_words(value)) for value in row)


def _quoted(text: str) -> str:
    if text == "" or any(c in text for c in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


def _jsonl(result: Rows) -> Iterator[str]:
    head = {"kind": "metadata", "query_name": result.via, "target": result.target, "row_count": result.row_count}
    yield json_text(head)
    for row in result.rows:
        yield json_text(dict(zip(result.columns, row, strict=True)))


def _arrow(result: Rows) -> pa.Table:
    import pyarrow as pa

    rows = list(result.rows)
    types = [pa.type_for_alias(alias) for alias in result.arrow_types]
    columns = [pa.array([row[i] for row in rows], type_) for i, type_ in enumerate(types)]
    return pa.table(dict(zip(result.columns, columns, strict=True)))


class _Stdout:
    """Stdout as Arrow writes to a file."""

    closed = False

    def write(self, data: pa.Buffer) -> int:
        put_bytes(bytes(data))
        return len(data)

    def flush(self) -> None:
        """`put_bytes` has done it."""


def _put_arrow(schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
    import pyarrow as pa

    with pa.ipc.new_stream(pa.PythonFile(_Stdout(), mode="w"), schema) as stream:
        for batch in batches:
            stream.write_batch(batch)
