"""Files of rows on the way into a table: written once, read by whoever works on the load, part of no table.

Holds for every RowFile: it was closed before anybody heard of it, so a reader never meets half of one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

from omnigraph.base.errors import Unavailable
from omnigraph.base.ids import new_ulid

_COMPRESSION = pa.ipc.IpcWriteOptions(compression="lz4")


@dataclass(frozen=True)
class RowFolder:
    """A folder for such files, on a local disk or in an object store; everybody who works on a load can reach it."""

    uri: str
    options: Mapping[str, str] | None = field(default=None, repr=False)

    def new_file(self, name: str) -> str:
        """A fresh place; a task that runs twice writes two files."""
        return f"{self.uri}/{name.replace(':', '-')}-{new_ulid()}.arrow"


@dataclass(frozen=True)
class RowFile:
    """`first` and `last` bound the positions of its rows, if they have any."""

    uri: str
    rows: int
    first: int = 0
    last: int = 0


class RowFileWriter:
    """Takes batches; the file appears with the first one."""

    def __init__(self, folder: RowFolder, name: str, schema: pa.Schema, position: str | None = None) -> None:
        self._folder = folder
        self._uri = folder.new_file(name)
        self._schema = schema
        self._position = position
        self._sink: Any = None
        self._writer: Any = None
        self._rows = 0
        self._first = self._last = 0

    def append(self, batch: pa.RecordBatch, keep_empty: bool = False) -> None:
        """`keep_empty`: a batch without rows is counted too."""
        if not batch.num_rows and not keep_empty:
            return
        try:
            if self._writer is None:
                self._sink = _opened_for_writing(self._folder, self._uri)
                self._writer = pa.ipc.new_file(self._sink, self._schema, options=_COMPRESSION)
            self._writer.write_batch(batch)
        except OSError as error:
            raise _unavailable(self._uri, error) from error
        if self._position is not None and batch.num_rows:
            positions = batch.column(self._position).to_numpy()
            first, last = int(positions.min()), int(positions.max())
            self._first = min(self._first, first) if self._rows else first
            self._last = max(self._last, last)
        self._rows += batch.num_rows

    def close(self) -> RowFile | None:
        """The finished file; None when there were no rows."""
        if self._writer is None:
            return None
        try:
            self._writer.close()
            self._sink.close()
        except OSError as error:
            raise _unavailable(self._uri, error) from error
        return RowFile(self._uri, self._rows, self._first, self._last)


def read_row_file(
    file: RowFile, options: Mapping[str, str] | None = None, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows in order, a batch at a time."""
    try:
        with _opened_for_reading(file.uri, options) as source:
            reader = pa.ipc.open_file(source)
            if columns is not None:
                places = sorted(reader.schema.get_field_index(name) for name in columns)
                chosen = pa.ipc.IpcReadOptions(included_fields=places, use_threads=False)
                reader = pa.ipc.open_file(source, options=chosen)
            for number in range(reader.num_record_batches):
                batch = reader.get_batch(number)
                yield batch if columns is None else batch.select(list(columns))
    except OSError as error:
        raise _unavailable(file.uri, error) from error


def read_row_batches(
    file: RowFile, first: int, step: int, options: Mapping[str, str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Every `step`-th batch of a file from the `first` on, those without rows left out."""
    try:
        with _opened_for_reading(file.uri, options) as source:
            reader = pa.ipc.open_file(source)
            for number in range(first, reader.num_record_batches, step):
                batch = reader.get_batch(number)
                if batch.num_rows:
                    yield batch
    except OSError as error:
        raise _unavailable(file.uri, error) from error


def _unavailable(uri: str, error: OSError) -> Unavailable:
    hint = "Nothing was committed. Look at the space and the rights there, and run again."
    return Unavailable(f"intermediate rows at {uri} cannot be written or read: {error}", hint, what="disk")


def _opened_for_writing(folder: RowFolder, uri: str) -> Any:
    if folder.options is None:
        os.makedirs(os.path.dirname(uri), exist_ok=True)
        return pa.OSFile(uri, "wb")
    return s3_files(folder.options).open_output_stream(uri.removeprefix("s3://"))


def _opened_for_reading(uri: str, options: Mapping[str, str] | None) -> Any:
    return pa.OSFile(uri) if options is None else s3_files(options).open_input_file(uri.removeprefix("s3://"))


def s3_files(options: Mapping[str, str]) -> pafs.S3FileSystem:
    """Plain reading and writing of whole files in an object store, by the same options Lance takes."""
    endpoint = options.get("aws_endpoint")
    scheme, _, host = (endpoint or "https://").partition("://")
    given = {
        "access_key": options.get("aws_access_key_id"),
        "secret_key": options.get("aws_secret_access_key"),
        "session_token": options.get("aws_session_token"),
        "region": options.get("aws_region"),
        "endpoint_override": host.rstrip("/") or None,
    }
    known: Any = {name: value for name, value in given.items() if value is not None}
    virtual = options.get("aws_virtual_hosted_style_request") == "true" and endpoint is not None
    return pafs.S3FileSystem(scheme=scheme, force_virtual_addressing=virtual, **known)
