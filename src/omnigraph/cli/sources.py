"""Source files named on the command line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from omnigraph.base.errors import BadRequest, NotFound, SourceError

_SHOWN_CHARS = 100


def read_source(path: str, what: str, option: str) -> str:
    """The text of a file as it lies there; `what` and `option` say in errors which file was meant."""
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except FileNotFoundError:
        raise NotFound(f"{what} file '{path}' not found", f"Give another file with {option}.") from None
    except UnicodeDecodeError as error:
        raise BadRequest(f"{what} file '{path}' is not UTF-8 (byte {error.start})", "Save it as UTF-8.") from error
    except OSError as error:
        raise BadRequest(f"{what} file '{path}' cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise BadRequest(f"{what} file {path!r} cannot be read: {error}") from error


def stored_queries(folder: str) -> dict[str, str]:
    """The `.gq` files of a folder of stored queries: their texts by path, in the order of their names."""
    try:
        files = sorted(entry for entry in os.listdir(folder) if entry.endswith(".gq"))
    except OSError as error:
        raise NotFound(f"the folder of stored queries '{folder}' cannot be read: {error.strerror}") from error
    paths = [os.path.join(folder, file) for file in files]
    return {path: read_source(path, "query", "queries: in omnigraph.yaml") for path in paths}


@contextmanager
def shown_in(source: str, path: str | None) -> Iterator[None]:
    """An error of this text names its file, if it is in one, and shows the line it stands in."""
    try:
        yield
    except SourceError as error:
        error.file = error.file or path
        error.excerpt = excerpt(source, error.line, error.column or 1)
        raise


def excerpt(source: str, line: int | None, column: int) -> tuple[str, ...]:
    """The line of a text and a mark below the column."""
    lines = source.split("\n")
    if line is None or line > len(lines):
        return ()
    # A tab counts as one column and must take one.
    whole = lines[line - 1].rstrip("\r").replace("\t", " ")
    start = max(0, min(column - 1 - _SHOWN_CHARS // 2, len(whole) - _SHOWN_CHARS))
    end = start + _SHOWN_CHARS
    shown = f"{'…' if start else ''}{whole[start:end]}{'…' if end < len(whole) else ''}"
    mark = " " * (column - 1 - start + (1 if start else 0)) + "^"
    number = str(line)
    return f"{number} | {shown}", f"{' ' * len(number)} | {mark}"
