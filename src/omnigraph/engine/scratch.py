"""Room to work in: SQL over Arrow relations, with memory bounded and the rest on disk, gone afterwards.

Holds at every return:
  1. One DuckDB per process and setting; it reads no file, loads no extension and spills only below the spill folder.
  2. A relation is read anew by each scan of it; what is in memory is a few batches.
  3. Leaving a scratch removes its files, whatever happened inside.
"""

from __future__ import annotations

import atexit
import os
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from omnigraph.base.errors import InternalError, LimitExceeded
from omnigraph.settings import Settings

if TYPE_CHECKING:
    import duckdb

BATCH_ROWS = 8_192
_PREFIX = "omnigraph-"
_MIB = 1 << 20
# Below this DuckDB cannot partition what it joins.
_SQL_BYTES_MIN = 64 * _MIB
_THREADS = 2


class Relation:
    """Rows that can be read any number of times; DuckDB scans it like a table."""

    def __init__(
        self, schema: pa.Schema, open_reader: Callable[[], Iterator[pa.RecordBatch]], table: pa.Table | None = None
    ) -> None:
        self.schema = schema
        self._open = open_reader
        self.table = table
        """The rows, if they are in memory anyway."""

    @staticmethod
    def of(table: pa.Table) -> Relation:
        return Relation(table.schema, lambda: iter(table.to_batches()), table)

    @staticmethod
    def empty(schema: pa.Schema) -> Relation:
        return Relation.of(schema.empty_table())

    def reader(self) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(self.schema, self._open())

    def renamed(self, names: list[str]) -> Relation:
        """The same columns under other names."""
        schema = pa.schema([pa.field(n, f.type) for n, f in zip(names, self.schema, strict=True)])
        if self.table is not None:
            return Relation.of(pa.table(self.table.columns, schema=schema))
        return Relation(schema, lambda: (pa.RecordBatch.from_arrays(b.columns, schema=schema) for b in self._open()))

    def followed_by(self, other: Relation) -> Relation:
        """These rows and then the other's, whose columns are the same."""
        if self.table is not None and other.table is not None:
            return Relation.of(pa.concat_tables([self.table, other.table]))
        return Relation(self.schema, lambda: chain(self._open(), other._open()))

    def __arrow_c_schema__(self) -> Any:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.reader().__arrow_c_stream__(requested_schema)


class _Databases:
    """The process's DuckDB instances, one for each spill folder and memory bound in use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[tuple[int, str, int], tuple[duckdb.DuckDBPyConnection, Any]] = {}

    def cursor(self, spill_dir: str, memory_bytes: int) -> duckdb.DuckDBPyConnection:
        key = (os.getpid(), spill_dir, memory_bytes)
        with self._lock:
            if key not in self._open:
                self._open[key] = _connect(spill_dir, memory_bytes)
            return self._open[key][0].cursor()

    def close(self) -> None:
        for (pid, _, _), (connection, folder) in self._open.items():
            if pid == os.getpid():
                connection.close()
                folder.cleanup()
        self._open.clear()


def _connect(spill_dir: str, memory_bytes: int) -> tuple[duckdb.DuckDBPyConnection, Any]:
    # Imported when first needed: a process that only reads never loads it.
    import duckdb

    folder = tempfile.TemporaryDirectory(prefix=f"{_PREFIX}sql-", dir=spill_dir, ignore_cleanup_errors=True)
    connection = duckdb.connect(
        ":memory:",
        config={
            "memory_limit": f"{memory_bytes // _MIB}MiB",
            "temp_directory": folder.name,
            "threads": str(_THREADS),
            "preserve_insertion_order": "false",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
        },
    )
    for setting in ("python_enable_replacements=false", "enable_external_access=false", "lock_configuration=true"):
        connection.execute(f"SET {setting}")
    return connection, folder


_databases = _Databases()
atexit.register(_databases.close)


class Spills(Protocol):
    """Something that keeps rows in memory and can move them to disk."""

    memory_bytes: int

    def spill(self) -> None: ...


class Scratch:
    """What one call may use. `spool_bytes` is how much its spools may keep in memory together."""

    def __init__(self, settings: Settings) -> None:
        self._spill_dir = settings.limits_spill_dir or tempfile.gettempdir()
        self._sql_bytes = max(settings.limits_memory_bytes // 2, _SQL_BYTES_MIN)
        self.spool_bytes = settings.limits_memory_bytes // 8
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._cursor: duckdb.DuckDBPyConnection | None = None
        self._files = 0
        self.spools: list[Spills] = []

    def __enter__(self) -> Scratch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        cursor, self._cursor = self._cursor, None
        if cursor is not None:
            cursor.close()
        folder, self._folder = self._folder, None
        if folder is not None:
            folder.cleanup()

    def new_file(self) -> str:
        """A name for a file that lives as long as the scratch."""
        if self._folder is None:
            os.makedirs(self._spill_dir, exist_ok=True)
            self._folder = tempfile.TemporaryDirectory(prefix=_PREFIX, dir=self._spill_dir, ignore_cleanup_errors=True)
        self._files += 1
        return os.path.join(self._folder.name, f"{self._files}.arrow")

    def remove(self, path: str) -> None:
        """Give a file up before the end."""
        if os.path.exists(path):
            os.remove(path)

    def make_room(self) -> None:
        """Keep what the spools hold in memory within the bound."""
        while sum(spool.memory_bytes for spool in self.spools) > self.spool_bytes:
            max(self.spools, key=lambda spool: spool.memory_bytes).spill()

    def rows(self, sql: str, relations: Mapping[str, Relation]) -> pa.Table:
        """The answer whole; for answers known to be small."""
        with self._answer(sql, relations) as reader:
            return reader.read_all()

    @contextmanager
    def stream(self, sql: str, relations: Mapping[str, Relation]) -> Iterator[Iterator[pa.RecordBatch]]:
        """The answer batch by batch; nothing else may be asked of this scratch meanwhile."""
        with self._answer(sql, relations) as reader:
            yield iter(reader)

    @contextmanager
    def _answer(self, sql: str, relations: Mapping[str, Relation]) -> Iterator[pa.RecordBatchReader]:
        if self._cursor is None:
            os.makedirs(self._spill_dir, exist_ok=True)
            self._cursor = _databases.cursor(self._spill_dir, self._sql_bytes)
        cursor = self._cursor
        import duckdb

        try:
            for name, relation in relations.items():
                cursor.register(name, relation)
            yield cursor.sql(sql).to_arrow_reader(BATCH_ROWS)
        except duckdb.OutOfMemoryException as error:
            raise LimitExceeded(
                f"{self._sql_bytes} bytes do not suffice to compare this many rows",
                "Nothing was written. Raise limits.memory_bytes (OMNIGRAPH_MEMORY_BYTES).",
                limit="limits.memory_bytes",
                value=self._sql_bytes,
            ) from error
        except duckdb.Error as error:
            raise InternalError(f"a check could not be run: {error}") from error
        finally:
            for name in relations:
                cursor.unregister(name)
