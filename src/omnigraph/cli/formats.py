"""Rows as table, key-value lines, CSV, JSON lines or Arrow; the cells of a table are the same wherever it is shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from omnigraph.cli.failures import UsageMistake
from omnigraph.cli.output import json_text, on_terminal, one_line, put_bytes, put_line

TEXT = "text"
TABLE, KV, CSV, JSONL, JSON, ARROW = "table", "kv", "csv", "jsonl", "json", "arrow"
ALL_FORMATS = (TABLE, KV, CSV, JSONL, JSON, ARROW)
ROW_FORMATS = (TABLE, KV, CSV, JSONL, JSON)
TEXT_FORMATS = (TABLE, JSON)
_WIDTH_MIN, _WIDTH_MAX = 8, 80


@dataclass(frozen=True)
class Rows:
    """A result: `target` is `{"branch": name}` or `{"snapshot": id}`, `via` the query or command behind it."""

    via: str
    target: Mapping[str, str]
    columns: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]
    arrow_types: tuple[str, ...] = ()

    @property
    def headline(self) -> str:
        kind, name = next(iter(self.target.items()))
        return f"{len(self.rows)} rows from {kind} {name} via {self.via}"


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


def put_rows(result: Rows, how: str) -> None:
    """Print rows as table, kv, csv, jsonl or arrow."""
    match how:
        case "kv":
            _put_all(_kv(result))
        case "csv":
            _put_all(_csv(result))
        case "jsonl":
            _put_all(_jsonl(result))
        case "arrow":
            put_bytes(_arrow(result))
        case _ if on_terminal():
            _draw(result)
        case _:
            _put_all(_plain_table(result))


def _put_all(lines: Iterator[str]) -> None:
    put_line("\n".join(lines))


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


def _plain_table(result: Rows) -> Iterator[str]:
    from rich.cells import cell_len

    yield result.headline
    if not result.rows:
        yield "(no rows)"
        return
    lines = [result.columns, *(tuple(cell(v) for v in row) for row in result.rows)]
    widths = _widths(lines)
    for line in lines:
        padded = (text + " " * (width - cell_len(text)) for text, width in zip(line, widths, strict=True))
        yield " | ".join(padded).rstrip()


def _widths(lines: Sequence[tuple[str, ...]]) -> list[int]:
    from rich.cells import cell_len

    return [max(_WIDTH_MIN, *(cell_len(text) for text in column)) for column in zip(*lines, strict=True)]


def _draw(result: Rows) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    put_line(result.headline)
    if not result.rows:
        put_line("(no rows)")
        return
    console, table = Console(highlight=False), Table()
    lines = [result.columns, *(tuple(cell(v) for v in row) for row in result.rows)]
    widths = _widths(lines)
    widest = widths.index(max(widths))
    # Ids and times stay whole where there is room: then only the widest column is folded.
    room = console.width - sum(widths) - 3 * len(widths) - 1 + widths[widest] >= _WIDTH_MIN
    for i, column in enumerate(result.columns):
        table.add_column(Text(column), min_width=_WIDTH_MIN, overflow="fold", no_wrap=room and i != widest)
    for row, line in zip(result.rows, lines[1:], strict=True):
        cells = zip(row, line, strict=True)
        table.add_row(*(Text(text, style="dim" if value is None else "") for value, text in cells))
    console.print(table)


def _kv(result: Rows) -> Iterator[str]:
    yield result.headline
    if not result.rows:
        yield "(no rows)"
    for number, row in enumerate(result.rows, 1):
        yield f"row {number}"
        for column, value in zip(result.columns, row, strict=True):
            yield f"  {column}: {one_line(_words(value))}"


def _csv(result: Rows) -> Iterator[str]:
    yield ",".join(_quoted(c) for c in result.columns)
    for row in result.rows:
        yield ",".join("" if value is None else _quoted(_words(value)) for value in row)


def _quoted(text: str) -> str:
    if text == "" or any(c in text for c in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


def _jsonl(result: Rows) -> Iterator[str]:
    head = {"kind": "metadata", "query_name": result.via, "target": result.target, "row_count": len(result.rows)}
    yield json_text(head)
    for row in result.rows:
        yield json_text(dict(zip(result.columns, row, strict=True)))


def _arrow(result: Rows) -> bytes:
    import pyarrow as pa

    types = [pa.type_for_alias(alias) for alias in result.arrow_types]
    columns = [pa.array([row[i] for row in result.rows], type_) for i, type_ in enumerate(types)]
    table = pa.table(dict(zip(result.columns, columns, strict=True)))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data
