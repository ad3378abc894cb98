"""Lines of objects in an S3-compatible store, read where the work is: by executors, in ranges.

A line ends as Spark's own text reader ends it: with LF, CRLF or CR. A range holds the lines that begin in it, so that
ranges that meet hold every line of the object once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from omnigraph.storage.s3 import S3Access
from omnigraph.storage.s3_files import S3File

LINE_COLUMNS = "__file string, __row bigint, value string"
COUNT_COLUMNS = "__file string, start bigint, rows bigint"
RANGE_COLUMNS = "__file string, start bigint, end bigint, first_row bigint"
_CHUNK_BYTES = 1 << 20
_BATCH_ROWS, _BATCH_BYTES = 8_192, 8 << 20
_BOM = b"\xef\xbb\xbf"
_COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}


@dataclass(frozen=True)
class LineRules:
    """Which lines are rows: `skips_blank` as csv and json do, `comment` begins lines to skip, `header` heads a file."""

    skips_blank: bool = False
    comment: str = ""
    header: bool = False

    def is_row(self, line: bytes) -> bool:
        if self.skips_blank and not line.strip():
            return False
        return not (self.comment and line.startswith(self.comment.encode()))


@dataclass(frozen=True)
class LineRange:
    """Bytes of one object. `first_row` is the number of the first row that begins in it, header included."""

    uri: str
    start: int
    end: int
    first_row: int = 1


def is_compressed(uri: str) -> bool:
    return any(uri.endswith(ending) for ending in _COMPRESSIONS)


def read_ranges(batches: Iterator[pa.RecordBatch], access: S3Access, rules: LineRules) -> Iterator[pa.RecordBatch]:
    """For mapInArrow: ranges in, rows with their place out."""
    schema = pa.schema([("__file", pa.string()), ("__row", pa.int64()), ("value", pa.string())])
    for wanted in _ranges(batches):
        rows, values, size = [], [], 0
        for row, line in numbered_lines(wanted, access, rules):
            rows.append(row)
            values.append(line.decode("utf-8", errors="replace"))
            size += len(line)
            if len(rows) >= _BATCH_ROWS or size >= _BATCH_BYTES:
                yield pa.record_batch([[wanted.uri] * len(rows), rows, values], schema=schema)
                rows, values, size = [], [], 0
        if rows:
            yield pa.record_batch([[wanted.uri] * len(rows), rows, values], schema=schema)


def count_ranges(batches: Iterator[pa.RecordBatch], access: S3Access, rules: LineRules) -> Iterator[pa.RecordBatch]:
    """For mapInArrow: how many rows begin in each range, a header counted as one."""
    schema = pa.schema([("__file", pa.string()), ("start", pa.int64()), ("rows", pa.int64())])
    for wanted in _ranges(batches):
        rows = sum(1 for line in _lines(wanted, access) if rules.is_row(line))
        yield pa.record_batch([[wanted.uri], [wanted.start], [rows]], schema=schema)


def numbered_lines(wanted: LineRange, access: S3Access, rules: LineRules) -> Iterator[tuple[int, bytes]]:
    """The rows that begin in a range, without the header, each with its number in the object."""
    row = wanted.first_row - 1
    is_header_due = rules.header and wanted.start == 0
    for line in _lines(wanted, access):
        if not rules.is_row(line):
            continue
        row += 1
        if is_header_due:
            is_header_due = False
        else:
            yield row, line


def _ranges(batches: Iterator[pa.RecordBatch]) -> Iterator[LineRange]:
    for batch in batches:
        for row in batch.to_pylist():
            yield LineRange(row["__file"], row["start"], row["end"], row["first_row"])


def _lines(wanted: LineRange, access: S3Access) -> Iterator[bytes]:
    """The lines that begin in the range; the last one may end behind it."""
    # A line begins after an end of line, which may be the last byte before the range.
    offset = max(0, wanted.start - 1)
    skips_first = wanted.start > 0
    rest, is_first = b"", True
    for chunk in _chunks(wanted, access, offset):
        if is_first and offset == 0:
            stripped = chunk.removeprefix(_BOM)
            offset += len(chunk) - len(stripped)
            chunk = stripped
        is_first = False
        rest += chunk
        # A CR at the end may be half of a CRLF: it waits for the next chunk.
        cut = len(rest) - 1 if rest.endswith(b"\r") else len(rest)
        pieces = rest[:cut].splitlines(keepends=True)
        if pieces and not pieces[-1].endswith((b"\n", b"\r")):
            cut -= len(pieces.pop())
        rest = rest[cut:]
        for piece in pieces:
            if not skips_first and offset >= wanted.end:
                return
            if not skips_first:
                yield piece.rstrip(b"\r\n") if piece.endswith(b"\r\n") else piece[:-1]
            skips_first = False
            offset += len(piece)
    if rest and not skips_first and offset < wanted.end:
        yield rest[:-1] if rest.endswith(b"\r") else rest


def _chunks(wanted: LineRange, access: S3Access, offset: int) -> Iterator[bytes]:
    with S3File(wanted.uri, access).open() as stored:
        reader: Any = stored
        compression = next((kind for end, kind in _COMPRESSIONS.items() if wanted.uri.endswith(end)), None)
        if compression is not None:
            reader = pa.CompressedInputStream(pa.PythonFile(stored, mode="r"), compression)
        elif offset:
            reader.seek(offset)
        while chunk := bytes(reader.read(_CHUNK_BYTES)):
            yield chunk
