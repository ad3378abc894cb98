"""CSV files as Spark will read them: a header, RFC 4180 quotes, an empty cell is null whether quoted or not."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc

from omnigraph.base.errors import BadRequest, OmniError
from omnigraph.pipeline.infer.inputs import Input, is_zst, refuse_pattern
from omnigraph.pipeline.infer.profile import ColumnProfile
from omnigraph.pipeline.infer.texts import TextColumn, id_texts, shown
from omnigraph.records.sources import refuse_input

_BLOCK_BYTES = 4 << 20
_HEADER_BYTES = 1 << 20
_SEPARATORS = (",", ";", "\t", "|")


class CsvTable:
    """One table; reading it again gives the same rows."""

    format = "csv"

    def __init__(self, given: Input) -> None:
        self.input = given
        for file in given.files:
            if is_zst(file):
                raise BadRequest(f"Spark does not read '{file}' without further libraries", "Unpack it, or use .gz.")
        self._separator = _separator(given.files[0])
        self.names = self._header(given.files[0])
        for file in given.files[1:]:
            other = self._header(file)
            if other != self.names:
                raise unequal(given.files[0], file, self.names, other)
        self._columns = [TextColumn(name, k + 1) for k, name in enumerate(self.names)]

    def profile(self, batches: Iterator[pa.RecordBatch]) -> Iterator[int]:
        """Look at every batch; yields the rows of each."""
        for batch in batches:
            for column, values in zip(self._columns, batch.columns, strict=True):
                column.add(values)
            yield batch.num_rows

    def columns(self) -> tuple[ColumnProfile, ...]:
        return tuple(column.profile() for column in self._columns)

    def options(self) -> tuple[tuple[str, str], ...]:
        found = [("header", "true"), ("escape", '"')]
        found += [("sep", self._separator)] if self._separator != "," else []
        has_newline = any(c.has_newline for c in self._columns) or any("\n" in n or "\r" in n for n in self.names)
        if not has_newline:
            return tuple(found)
        refuse_pattern(self.input.files[0])
        return (*found, ("multiLine", "true"))

    def notes(self) -> tuple[str, ...]:
        odd = [name for name in self.names if name[:1].isdigit() or name[:1] == "-"]
        return (f"a column is named {shown(odd[0])}: is the first row a header?",) if odd else ()

    def batches(self, only: Sequence[str] = ()) -> Iterator[pa.RecordBatch]:
        """The rows, each column as texts; of all columns, or of some."""
        names = [str(k) for k in range(len(self.names))]
        wanted = [names[self.names.index(name)] for name in only] if only else names
        for file in self.input.files:
            yield from self._read(file, names, wanted)

    def id_texts(self, profile: ColumnProfile, batch: pa.RecordBatch) -> pa.Array:
        return id_texts(profile, batch.column(0))

    def _read(self, file: str, names: list[str], wanted: list[str]) -> Iterator[pa.RecordBatch]:
        faults: list[OmniError] = []

        def ragged(row: Any) -> str:
            if not str(row.text).strip():
                return "skip"
            place = f" in row {row.number}" if row.number is not None else ""
            text = f"'{file}' has {row.actual_columns} cells{place}, but {row.expected_columns} columns"
            faults.append(BadRequest(f"{text}: {shown(str(row.text))}", "Quote cells that hold the separator."))
            return "error"

        convert = pc.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            include_columns=wanted,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=True,
        )
        parse = pc.ParseOptions(delimiter=self._separator, newlines_in_values=True, invalid_row_handler=ragged)
        read = pc.ReadOptions(column_names=names, skip_rows_after_names=1, block_size=_BLOCK_BYTES, use_threads=False)
        try:
            with pa.input_stream(file, compression="detect") as stream:
                yield from pc.open_csv(stream, read_options=read, parse_options=parse, convert_options=convert)
        except (pa.ArrowInvalid, OSError) as error:
            if faults:
                raise faults[0] from None
            raise _unreadable(file, error) from None

    def _header(self, file: str) -> list[str]:
        """The names as Spark will know them: a column without one is `_c` and its place, counted from 0."""
        found = next((row for row in csv.reader(_head(file), delimiter=self._separator) if row), [])
        if not any(cell.strip() for cell in found):
            raise BadRequest(f"'{file}' has no header", "Its first row must name the columns.")
        if all(cell.strip() and not cell.strip()[0].isalpha() and cell.strip()[0] not in "_#$@\"'" for cell in found):
            told = f"the first row of '{file}' holds values, not names: {shown(', '.join(found))}"
            raise BadRequest(told, "Its first row must name the columns; write one above it.")
        names = [cell or f"_c{k}" for k, cell in enumerate(found)]
        refuse_repeated(file, names)
        return names


def refuse_repeated(file: str, names: Sequence[str]) -> None:
    seen: dict[str, str] = {}
    for name in names:
        other = seen.get(name.lower())
        seen[name.lower()] = name
        if other == name:
            raise BadRequest(f"'{file}' has two columns named '{name}'", "Give each column a name of its own.")
        if other is not None:
            told = f"columns '{other}' and '{name}' of '{file}' differ only in case, which Spark does not tell apart"
            raise BadRequest(told, "Rename one of them.")


def unequal(first: str, other: str, names: Sequence[str], others: Sequence[str]) -> BadRequest:
    odd = [name for name in [*others, *names] if (name in names) != (name in others)]
    what = f"differ in '{odd[0]}'" if odd else "have another order"
    return BadRequest(
        f"the columns of '{first}' and '{other}' {what}",
        "A folder is one table: its files need equal columns. Name the files one by one to make a type of each.",
    )


def _head(file: str) -> io.StringIO:
    try:
        with pa.input_stream(file, compression="detect") as stream:
            data = bytes(stream.read(_HEADER_BYTES))
    except OSError as error:
        if error.errno is not None:
            refuse_input(file, error)
        raise _unreadable(file, error) from None
    if not data.strip():
        raise BadRequest(f"'{file}' is empty", "Give files with a header and at least one row.")
    try:
        # The end may cut a character in two.
        return io.StringIO(data.decode("utf-8-sig"), newline="")
    except UnicodeDecodeError as error:
        if error.start >= len(data) - 4:
            return io.StringIO(data[: error.start].decode("utf-8-sig"), newline="")
        raise _not_utf8(file) from None


def _separator(file: str) -> str:
    line = _head(file).readline()
    if "\x00" in line:
        raise _not_utf8(file)
    if "," in line:
        return "\t" if ".tsv" in file.lower() and "\t" in line else ","
    return max(_SEPARATORS, key=line.count) if any(s in line for s in _SEPARATORS) else ","


def _not_utf8(file: str) -> BadRequest:
    return BadRequest(f"'{file}' is not UTF-8 text", "Save it as UTF-8, for example with iconv.")


def _unreadable(file: str, error: Exception) -> BadRequest:
    text = str(error).splitlines()[0]
    if "UTF8" in text or "utf-8" in text.lower():
        return _not_utf8(file)
    if "straddling" in text:
        told = f"'{file}' has a row of more than {_BLOCK_BYTES >> 20} MiB"
        return BadRequest(told, "Is a quote left open? Close it, or double quotes inside a quoted cell.")
    return BadRequest(f"'{file}' cannot be read: {text}", "Check that the file is whole.")
