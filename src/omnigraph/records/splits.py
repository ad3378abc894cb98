"""Inputs cut into pieces that several readers decode at once, with the line numbers of the whole.

Holds for every split:
  1. It owns the lines that start in its bytes, and reads the last of them to its end.
  2. The splits of a file together own each of its lines exactly once.
  3. A compressed file is one split.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from omnigraph.base.errors import BadRequest
from omnigraph.records.sources import COMPRESSIONS, LineBatch, Source, read_batches, refuse_input, size_of

SPLIT_BYTES = 16 << 20
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class Split:
    """The bytes from `start` to `end` of a file; `lines_before` is how many of its lines start before `start`."""

    source: Source
    start: int = 0
    end: int | None = None
    lines_before: int = 0


def split_sources(sources: Sequence[Source], split_bytes: int | None = None) -> tuple[Split, ...]:
    """Splits in the order of the input, their lines not counted yet."""
    split_bytes = split_bytes or SPLIT_BYTES
    found: list[Split] = []
    for source in sources:
        if source.path is None:
            raise BadRequest(
                "standard input cannot be read by several", "Save it to a file, or use the embedded engine."
            )
        size = size_of(source)
        if Path(source.path).suffix in COMPRESSIONS or size <= split_bytes:
            found.append(Split(source))
            continue
        starts = range(0, size, split_bytes)
        found += [Split(source, start, min(start + split_bytes, size)) for start in starts]
    return tuple(found)


def count_starts(split: Split) -> int:
    """How many lines start in the split."""
    with _opened(split) as file:
        begins = _starts_line(file, split)
        left = (split.end or 0) - split.start
        newlines, ends_line = 0, False
        while left > 0 and (chunk := file.read(min(left, _CHUNK_BYTES))):
            newlines += chunk.count(b"\n")
            ends_line = chunk.endswith(b"\n")
            left -= len(chunk)
    # A newline that ends the split starts a line of the next one.
    return newlines - int(ends_line) + int(begins)


def counted(splits: Iterable[Split], starts: Iterable[int]) -> tuple[Split, ...]:
    """The splits with the lines before each; `starts` are their own counts."""
    done: list[Split] = []
    before, file_number = 0, -1
    for split, count in zip(splits, starts, strict=True):
        if split.source.number != file_number:
            before, file_number = 0, split.source.number
        done.append(replace(split, lines_before=before))
        before += count
    return tuple(done)


def read_split(split: Split, *, max_line_bytes: int, batch_rows: int) -> Iterator[LineBatch]:
    """The lines the split owns, in batches, numbered as in the whole file."""
    if split.end is None:
        yield from read_batches([split.source], max_line_bytes=max_line_bytes, batch_rows=batch_rows)
        return
    with _opened(split) as file:
        piece = replace(split.source, stream=_Piece(file, split), lines_before=split.lines_before)
        yield from read_batches([piece], max_line_bytes=max_line_bytes, batch_rows=batch_rows)


def _opened(split: Split) -> BinaryIO:
    assert split.source.path is not None
    if split.source.remote is not None:
        return split.source.remote.open()
    try:
        return open(split.source.path, "rb")
    except OSError as error:
        refuse_input(split.source.name, error)


def _starts_line(file: BinaryIO, split: Split) -> bool:
    """Whether a line starts at the very start of the split, where the file stands afterwards."""
    if split.start == 0:
        return True
    file.seek(split.start - 1)
    return file.read(1) == b"\n"


class _Piece:
    """The owned lines of a split as a stream."""

    def __init__(self, file: BinaryIO, split: Split) -> None:
        self._file = file
        assert split.end is not None
        begins = _starts_line(file, split)
        self._left = split.end - split.start
        self._ended = False
        self._last = b"\n"
        if not begins:
            self._skip_line()

    def _skip_line(self) -> None:
        while self._left > 0:
            piece = self._file.readline(min(self._left, _CHUNK_BYTES))
            self._left -= len(piece)
            if not piece or piece.endswith(b"\n"):
                return

    def read(self, size: int = -1) -> bytes:
        if self._left > 0:
            chunk = self._file.read(min(size if size >= 0 else self._left, self._left))
            self._left -= len(chunk)
            self._last = chunk[-1:] or self._last
            return chunk
        # The last owned line may reach beyond the split.
        if self._ended or self._last == b"\n":
            return b""
        chunk = self._file.readline(size if size >= 0 else _CHUNK_BYTES)
        self._ended = not chunk or chunk.endswith(b"\n")
        return chunk

    def close(self) -> None:
        self._file.close()
