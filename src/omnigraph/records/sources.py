"""The inputs of a load: files, directories and standard input, as numbered lines.

Holds for every batch:
  1. Its lines are whole, not blank, in file order, and carry the number they have in their file, counted from 1.
  2. No line longer than the limit was ever held whole; such a line is told apart, with its size and its beginning.
  3. Memory is bounded by the batch: a few chunks, or one line of the greatest length allowed.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np
import pyarrow as pa

from omnigraph.base.errors import BadRequest, NotFound, OmniError
from omnigraph.records.violations import FILE_SHIFT
from omnigraph.storage.s3 import S3Access
from omnigraph.storage.s3_files import S3File

MAX_LINE_BYTES = 32 << 20
BATCH_ROWS = 8_192
STDIN = "-"
STDIN_NAME = "<stdin>"

_NAMES = (".jsonl", ".ndjson", ".json")
COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
_MAGICS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_REJECTS = ".rejects.jsonl"
_BOM = b"\xef\xbb\xbf"
_CHUNK_BYTES = 1 << 20
# A failing read of a compressed stream loses what it had unpacked so far, so these reads are small.
_UNPACKED_BYTES = 64 << 10
_BATCH_BYTES = 8 << 20
_PREFIX_BYTES = 200


@dataclass(frozen=True)
class Source:
    """One input. `number` is its place among the inputs, `name` what errors call it."""

    number: int
    name: str
    path: str | None = None
    stream: Any = field(default=None, compare=False)
    lines_before: int = 0
    """How many lines of the input come before the stream, which is then a piece from its middle."""
    remote: S3File | None = field(default=None, repr=False)
    """Where the input lies if it is no local file."""


@dataclass(frozen=True)
class Oversized:
    """A line that is too long; only its beginning was kept."""

    line_number: int
    size_bytes: int
    prefix: bytes


@dataclass(frozen=True)
class LineBatch:
    file_number: int
    lines: list[bytes]
    line_numbers: np.ndarray[Any, Any]
    oversized: tuple[Oversized, ...] = ()

    @property
    def positions(self) -> np.ndarray[Any, Any]:
        return self.line_numbers + (self.file_number << FILE_SHIFT)


def find_sources(inputs: Sequence[str | os.PathLike[str]], access: S3Access | None = None) -> tuple[Source, ...]:
    """The inputs in the order given; a directory stands for its files, sorted by name. With `access` S3 too."""
    found: list[str] = []
    for given in [os.fspath(each) for each in inputs]:
        if given == STDIN and STDIN in found:
            raise BadRequest("standard input is given twice", "Name '-' once.")
        is_remote = access is not None and given.startswith("s3://")
        found += [given] if given == STDIN or is_remote else _expanded(given)
    return tuple(_source(number, path, access) for number, path in enumerate(found))


def _source(number: int, path: str, access: S3Access | None) -> Source:
    if path == STDIN:
        return Source(number, STDIN_NAME)
    remote = S3File(path, access) if access is not None and path.startswith("s3://") else None
    return Source(number, path, path, remote=remote)


def stored_bytes(sources: Sequence[Source]) -> int | None:
    """How much the inputs hold as they are stored; None if one of them is a stream."""
    sizes = [None if source.path is None else size_of(source) for source in sources]
    return None if None in sizes else sum(size or 0 for size in sizes)


def size_of(source: Source) -> int:
    if source.remote is not None:
        return source.remote.size()
    assert source.path is not None
    try:
        return os.path.getsize(source.path)
    except OSError as error:
        refuse_input(source.name, error)


def read_batches(
    sources: Sequence[Source], *, max_line_bytes: int = MAX_LINE_BYTES, batch_rows: int = BATCH_ROWS
) -> Iterator[LineBatch]:
    """Every line of every input, in batches that never cross files."""
    for source in sources:
        lines = _LineReader(source, max_line_bytes)
        try:
            yield from _batched(source.number, lines, batch_rows)
        finally:
            lines.close()


def _expanded(given: str) -> list[str]:
    if "://" in given:
        raise BadRequest(f"input '{given}' is not a local path", "Copy the file to a local disk first.")
    try:
        if not stat.S_ISDIR(os.stat(given).st_mode):
            return [given]
        entries = sorted(os.scandir(given), key=lambda entry: entry.name)
    except OSError as error:
        refuse_input(given, error)
    files = [entry.path for entry in entries if _is_input(entry.name) and entry.is_file()]
    if not files:
        hint = f"Files are taken by name: {', '.join(_NAMES)}, each also with {' or '.join(COMPRESSIONS)}."
        raise BadRequest(f"directory '{given}' holds no input file", hint)
    return files


def _is_input(name: str) -> bool:
    """Hidden files, and the rows an earlier load set aside, are no inputs."""
    plain = next((name.removesuffix(end) for end in COMPRESSIONS if name.endswith(end)), name)
    return plain.endswith(_NAMES) and not name.startswith((".", "_")) and not plain.endswith(_REJECTS)


def refuse_input(name: str, error: OSError) -> NoReturn:
    if isinstance(error, FileNotFoundError):
        raise NotFound(f"input '{name}' not found", "Check the path; it is relative to the current directory.")
    if isinstance(error, IsADirectoryError):
        raise BadRequest(f"input '{name}' is a directory", "Name the directory itself or the files in it.")
    if isinstance(error, PermissionError):
        raise BadRequest(f"input '{name}' cannot be read: permission denied", "Allow this user to read it.")
    raise BadRequest(f"input '{name}' cannot be read: {error.strerror or error}", "Nothing was written.")


def _open(source: Source) -> Any:
    """The stored bytes of an input; the one place that knows where inputs lie."""
    if source.stream is not None:
        return source.stream
    if source.remote is not None:
        return source.remote.open()
    if source.path is None:
        return sys.stdin.buffer
    return open(source.path, "rb", buffering=0)


class _LineReader:
    """Blocks of consecutive lines of one input, and the lines that are too long."""

    def __init__(self, source: Source, line_bytes_max: int) -> None:
        self._source = source
        self._max = line_bytes_max
        self._compression = COMPRESSIONS.get(Path(source.path).suffix) if source.path else None
        self._lines_read = source.lines_before
        self._parts: list[bytes] = []
        self._prefix = b""
        self._size = 0
        try:
            self._stored = _open(source)
            self._head = _first_bytes(self._stored, 4)
        except OSError as error:
            refuse_input(source.name, error)
        self._refuse_disguise()
        joined = _Rejoined(self._head, self._stored)
        self._unpacked = joined if self._compression is None else _unpacking(joined, self._compression)

    def close(self) -> None:
        if self._source.path is not None:
            self._stored.close()

    def _refuse_disguise(self) -> None:
        if self._source.lines_before:
            return
        actual = next((kind for magic, kind in _MAGICS.items() if self._head.startswith(magic)), None)
        if actual == self._compression or (not self._head and self._compression is None):
            return
        name = self._source.name
        if actual is not None:
            ending = next(end for end, kind in COMPRESSIONS.items() if kind == actual)
            raise BadRequest(f"input '{name}' is {actual}-compressed", f"Let its name end in {ending}, or unpack it.")
        raise BadRequest(f"input '{name}' is not {self._compression}-compressed", "Its name says so; rename the file.")

    def _read(self) -> bytes:
        size = _CHUNK_BYTES if self._compression is None else _UNPACKED_BYTES
        try:
            return bytes(self._unpacked.read(size))
        except OSError as error:
            raise self._broken(error) from None

    def _broken(self, error: OSError) -> OmniError:
        name, line = self._source.name, self._lines_read
        if self._compression is None:
            return BadRequest(f"input '{name}' cannot be read after line {line}: {error.strerror or error}")
        what = "ends too early" if "truncated" in str(error).lower() else "is damaged"
        text = f"input '{name}' {what}: its {self._compression} data could be read up to line {line}"
        return BadRequest(text, "Nothing was written. Make or copy the file again.")

    def blocks(self) -> Iterator[tuple[int, list[bytes]] | Oversized]:
        """`(number of the first line, lines)`, or one line that is too long."""
        chunk = self._first_chunk()
        while chunk:
            yield from self._taken(chunk)
            chunk = self._read()
        if self._size:
            yield self._finished(b"")

    def _first_chunk(self) -> bytes:
        chunk = self._read()
        if self._source.lines_before:
            return chunk
        while 0 < len(chunk) < len(_BOM) and (more := self._read()):
            chunk += more
        return chunk.removeprefix(_BOM) or (self._read() if chunk else b"")

    def _taken(self, chunk: bytes) -> Iterator[tuple[int, list[bytes]] | Oversized]:
        pieces = chunk.split(b"\n")
        last = pieces.pop()
        if pieces:
            yield self._finished(pieces[0])
            lines = pieces[1:]
            if b"\r" in chunk:
                lines = [line[:-1] if line.endswith(b"\r") else line for line in lines]
            if lines and max(map(len, lines)) > self._max:
                for line in pieces[1:]:
                    yield self._finished(line)
            elif lines:
                self._lines_read += len(lines)
                yield self._lines_read - len(lines) + 1, lines
        self._size += len(last)
        # One byte more than allowed may be the CR of a CRLF.
        if self._size <= self._max + 1:
            self._parts.append(last)
        elif last:
            beginning = [self._prefix] if self._prefix else self._parts
            self._prefix = b"".join([*beginning, last])[:_PREFIX_BYTES]
            self._parts = [last[-1:]]

    def _finished(self, ending: bytes) -> tuple[int, list[bytes]] | Oversized:
        """The line that began in earlier chunks and ends with `ending`."""
        self._size += len(ending)
        self._lines_read += 1
        line, size = b"".join([*self._parts, ending]), self._size
        prefix = self._prefix + ending if self._prefix else line
        self._size, self._parts, self._prefix = 0, [], b""
        if line.endswith(b"\r"):
            line, size = line[:-1], size - 1
        if size <= self._max:
            return self._lines_read, [line]
        return Oversized(self._lines_read, size, prefix[: min(size, _PREFIX_BYTES)])


def _first_bytes(stream: BinaryIO, size: int) -> bytes:
    """A pipe may hand over less than was asked for."""
    head = b""
    while len(head) < size and (more := stream.read(size - len(head))):
        head += more
    return head


class _Rejoined:
    """A stream whose first bytes were looked at already, as a file object."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self._head = head
        self._rest = rest
        self.closed = False

    def close(self) -> None:
        """What reads from here is done; the stored bytes are closed by whoever opened them."""
        self.closed = True

    def read(self, size: int) -> bytes:
        if self._head:
            head, self._head = self._head[:size], self._head[size:]
            return head
        return self._rest.read(size) or b""


def _unpacking(stored: _Rejoined, compression: str) -> Any:
    return pa.CompressedInputStream(pa.PythonFile(stored, mode="r"), compression)


def _batched(file_number: int, reader: _LineReader, batch_rows: int) -> Iterator[LineBatch]:
    lines: list[bytes] = []
    numbers: list[np.ndarray[Any, Any]] = []
    oversized: list[Oversized] = []
    size = 0
    for block in reader.blocks():
        if isinstance(block, Oversized):
            oversized.append(block)
        else:
            kept, kept_numbers = _without_blanks(*block)
            lines += kept
            numbers.append(kept_numbers)
            size += sum(map(len, kept))
        while len(lines) >= batch_rows:
            joined = np.concatenate(numbers)
            yield LineBatch(file_number, lines[:batch_rows], joined[:batch_rows], tuple(oversized))
            lines, numbers, oversized = lines[batch_rows:], [joined[batch_rows:]], []
            size = sum(map(len, lines))
        if size >= _BATCH_BYTES or len(oversized) >= batch_rows:
            yield LineBatch(file_number, lines, np.concatenate([*numbers, _NONE]), tuple(oversized))
            lines, numbers, oversized, size = [], [], [], 0
    if lines or oversized:
        yield LineBatch(file_number, lines, np.concatenate([*numbers, _NONE]), tuple(oversized))


_NONE = np.zeros(0, np.int64)


def _without_blanks(first: int, lines: list[bytes]) -> tuple[list[bytes], np.ndarray[Any, Any]]:
    numbers = np.arange(first, first + len(lines), dtype=np.int64)
    if min(map(len, lines)) > 0 and not any(map(bytes.isspace, lines)):
        return lines, numbers
    kept = [i for i, line in enumerate(lines) if line.strip(b" \t\r")]
    return [lines[i] for i in kept], numbers[kept]
