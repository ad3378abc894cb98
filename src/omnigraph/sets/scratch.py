"""Room to work in: SQL over Arrow relations, with memory bounded and the rest on disk, gone afterwards.

Holds at every return:
  1. One DuckDB per process and setting serves all small work; what spilled has its own, so that its memory goes with
     it. Neither reads a file or loads an extension, and both spill only below the spill folder.
  2. A relation is read anew by each scan of it; what is in memory is a few batches.
  3. Leaving a scratch removes its files, whatever happened inside; those of a killed process go with the next scratch.
"""

from __future__ import annotations

import atexit
import ctypes
import fcntl
import os
import shutil
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
_PREFIX, _ALIVE = "omnigraph-spill-", "alive"
_MIB = 1 << 20
# Below this DuckDB cannot partition what it joins.
_SQL_BYTES_MIN = 64 * _MIB
_THREADS = 2


class Relation:
    """Rows that can be read any number of times; DuckDB scans it like a table."""

    def __init__(
        self,
        schema: pa.Schema,
        open_reader: Callable[[], Iterator[pa.RecordBatch]],
        row_count: int,
        table: pa.Table | None = None,
    ) -> None:
        self.schema = schema
        self.row_count = row_count
        self._open = open_reader
        self.table = table
        """The rows, if they are in memory anyway."""

    @staticmethod
    def of(table: pa.Table) -> Relation:
        return Relation(table.schema, lambda: iter(table.to_batches()), table.num_rows, table)

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

        def batches() -> Iterator[pa.RecordBatch]:
            return (pa.RecordBatch.from_arrays(b.columns, schema=schema) for b in self._open())

        return Relation(schema, batches, self.row_count)

    def selected(self, names: list[str]) -> Relation:
        """Some of the columns."""
        if names == self.schema.names:
            return self
        if self.table is not None:
            return Relation.of(self.table.select(names))
        schema = pa.schema([self.schema.field(name) for name in names])
        return Relation(schema, lambda: (batch.select(names) for batch in self._open()), self.row_count)

    def with_nulls(self, name: str, type_: pa.DataType) -> Relation:
        """The same rows with one more column, which says nothing."""
        if self.table is not None:
            return Relation.of(self.table.append_column(name, pa.nulls(self.table.num_rows, type_)))

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in self._open():
                yield pa.RecordBatch.from_arrays([*batch.columns, pa.nulls(batch.num_rows, type_)], schema=schema)

        schema = self.schema.append(pa.field(name, type_))
        return Relation(schema, batches, self.row_count)

    def followed_by(self, other: Relation) -> Relation:
        """These rows and then the other's, whose columns are the same."""
        if self.table is not None and other.table is not None:
            return Relation.of(pa.concat_tables([self.table, other.table]))
        return Relation(self.schema, lambda: chain(self._open(), other._open()), self.row_count + other.row_count)

    def __arrow_c_schema__(self) -> Any:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.reader().__arrow_c_stream__(requested_schema)


class WorkFolder:
    """A folder for one owner's files. It is locked while its owner lives, so that others can tell what was left behind
    by a process that was killed."""

    def __init__(self, spill_dir: str) -> None:
        os.makedirs(spill_dir, exist_ok=True)
        _sweep(spill_dir)
        self.name = tempfile.mkdtemp(prefix=_PREFIX, dir=spill_dir)
        self._lock = open(os.path.join(self.name, _ALIVE), "wb")  # noqa: SIM115
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def cleanup(self) -> None:
        shutil.rmtree(self.name, ignore_errors=True)
        self._lock.close()


def _sweep(spill_dir: str) -> None:
    """Remove the folders of owners that are gone."""
    for entry in os.scandir(spill_dir):
        if not entry.name.startswith(_PREFIX):
            continue
        try:
            with open(os.path.join(entry.path, _ALIVE), "rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(entry.path, ignore_errors=True)
        except OSError:
            continue  # Not one of ours, still in use, or being made at this moment.


class _Databases:
    """The process's DuckDB instances, one for each spill folder and memory bound in use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[tuple[int, str, int], tuple[duckdb.DuckDBPyConnection, WorkFolder]] = {}

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


def _connect(spill_dir: str, memory_bytes: int) -> tuple[duckdb.DuckDBPyConnection, WorkFolder]:
    # Imported when first needed: a process that only reads never loads it.
    import duckdb

    folder = WorkFolder(spill_dir)
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


def _trim() -> None:
    """Return freed memory to the system; the C library would keep it for this process."""
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # only the GNU C library has it
    if trim is not None:
        trim(0)


class Spills(Protocol):
    """Something that keeps rows in memory and can move them to disk."""

    memory_bytes: int

    def spill(self) -> None: ...


class Scratch:
    """What one call may use: `spool_bytes` of memory for its spools together, `sql_bytes` for a question."""

    def __init__(self, settings: Settings) -> None:
        self._spill_dir = settings.limits_spill_dir or tempfile.gettempdir()
        self.sql_bytes = max(settings.limits_memory_bytes // 2, _SQL_BYTES_MIN)
        self.spool_bytes = settings.limits_memory_bytes // 8
        self._folder: WorkFolder | None = None
        self._cursor: duckdb.DuckDBPyConnection | None = None
        self._own: tuple[duckdb.DuckDBPyConnection, WorkFolder] | None = None
        self._files = 0
        self.spools: list[Spills] = []

    def __enter__(self) -> Scratch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.release()
        folder, self._folder = self._folder, None
        if folder is not None:
            folder.cleanup()

    def release(self) -> None:
        """Give the memory of past questions back; another one may still be asked."""
        cursor, self._cursor = self._cursor, None
        if cursor is not None:
            cursor.close()
        own, self._own = self._own, None
        if own is not None:
            own[0].close()
            own[1].cleanup()
            _trim()

    def spill_all(self) -> None:
        """Keep no rows in memory, if some are on disk already: what comes next needs it."""
        if self._folder is not None:
            for spool in self.spools:
                if spool.memory_bytes:
                    spool.spill()
            _trim()

    def _connected(self) -> duckdb.DuckDBPyConnection:
        if self._folder is None:
            if self._cursor is None:
                self._cursor = _databases.cursor(self._spill_dir, self.sql_bytes)
            return self._cursor
        # DuckDB keeps what it once had; only closing it returns the memory of a large comparison.
        if self._own is None:
            self._own = _connect(self._spill_dir, self.sql_bytes)
        return self._own[0]

    def new_file(self) -> str:
        """A name for a file that lives as long as the scratch."""
        if self._folder is None:
            self._folder = WorkFolder(self._spill_dir)
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
    def stream(
        self, sql: str, relations: Mapping[str, Relation], batch_rows: int = BATCH_ROWS
    ) -> Iterator[Iterator[pa.RecordBatch]]:
        """The answer batch by batch; nothing else may be asked of this scratch meanwhile."""
        with self._answer(sql, relations, batch_rows) as reader:
            yield iter(reader)

    @contextmanager
    def _answer(
        self, sql: str, relations: Mapping[str, Relation], batch_rows: int = BATCH_ROWS
    ) -> Iterator[pa.RecordBatchReader]:
        import duckdb

        cursor = self._connected()

        try:
            for name, relation in relations.items():
                cursor.register(name, relation)
            with cursor.sql(sql).to_arrow_reader(batch_rows) as reader:
                # Closed also when the asker fails half-way: an open answer would refuse what comes next.
                yield reader
        except (duckdb.OutOfMemoryException, OSError) as error:
            # Once the first rows are out, DuckDB's errors come through Arrow's stream.
            if isinstance(error, OSError) and "Out of Memory Error" not in str(error):
                raise
            raise LimitExceeded(
                f"{self.sql_bytes} bytes do not suffice to compare this many rows",
                "Nothing was written. Raise limits.memory_bytes (OMNIGRAPH_MEMORY_BYTES).",
                limit="limits.memory_bytes",
                value=self.sql_bytes,
            ) from error
        except duckdb.Error as error:
            raise InternalError(f"a check could not be run: {error}") from error
        finally:
            for name in relations:
                cursor.unregister(name)
