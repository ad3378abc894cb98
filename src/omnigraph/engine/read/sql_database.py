"""DuckDB instances that user SQL may run in: nothing but registered tables can be reached from them.

Holds for every instance:
  1. No file, URL, extension, secret or Python variable can be named, and no setting be changed.
  2. It serves one statement at a time. It is kept for the next, unless one was stopped or lacked memory.
  3. What it spilled is gone when it is closed.
"""

from __future__ import annotations

import atexit
import os
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from omnigraph.base.errors import BadRequest
from omnigraph.sets.scratch import WorkFolder
from omnigraph.settings import Settings

if TYPE_CHECKING:
    import duckdb

_MIB = 1 << 20
# Below this DuckDB cannot partition what it joins.
_MEMORY_MIN = 64 * _MIB
_THREADS = 2
_KEPT_BYTES_MAX = 256 * _MIB
_CHARACTERS_MAX = 1 << 20
_ITEMS_MAX = 100_000
_SHUT = (
    "TimeZone='UTC'",
    "python_enable_replacements=false",
    "enable_external_access=false",
    "lock_configuration=true",
)


def _bounded(name: str, arguments: str, size: str, bound: int, what: str) -> str:
    """One form of a macro in place of a function: `size` is checked before the function is called.

    The check is in an argument: constant expressions are evaluated from the inside out, whatever CASE is around them.
    """
    first, _, others = arguments.partition(", ")
    refusal = f"error('{name} would make more than {bound} {what}')"
    checked = f"CASE WHEN {size} > {bound} THEN {refusal} ELSE {first} END"
    return f"({arguments}) AS system.main.{name}({', '.join([checked, *([others] if others else [])])})"


def _series(name: str) -> str:
    def number(value: str) -> str:
        return f"TRY_CAST({value}::VARCHAR AS DOUBLE)"

    def seconds(value: str) -> str:
        return f"epoch(TRY_CAST({value}::VARCHAR AS TIMESTAMPTZ))"

    steps = f"abs(({number('b')} - {number('a')}) / {number('c')})"
    moments = f"abs({seconds('b')} - {seconds('a')}) / abs(epoch(TRY_CAST(c::VARCHAR AS INTERVAL)))"
    counts = {
        "a": number("a"),
        "a, b": f"abs({number('b')} - {number('a')})",
        "a, b, c": f"coalesce({steps}, {moments})",
    }
    what = f"items; FROM {name}(...) gives them as rows"
    return f"{name} {', '.join(_bounded(name, given, count, _ITEMS_MAX, what) for given, count in counts.items())}"


# DuckDB makes one value without asking for its memory limit or whether it was interrupted, so functions that make a
# large value out of a number are bounded.
_MACROS = (
    *(_series(name) for name in ("range", "generate_series")),
    f"repeat {_bounded('repeat', 'a, b', 'len(a) * b', _CHARACTERS_MAX, 'characters')}",
    *(f"{name} {_bounded(name, 'a, b, c', 'b', _CHARACTERS_MAX, 'characters')}" for name in ("lpad", "rpad")),
    f"bitstring {_bounded('bitstring', 'a, b', 'b', _CHARACTERS_MAX, 'bits')}",
    *(
        f"{name} {', '.join(_bounded(name, given, 'b', _ITEMS_MAX, 'items') for given in ('a, b', 'a, b, c'))}"
        for name in ("list_resize", "array_resize")
    ),
)


@dataclass
class Database:
    connection: duckdb.DuckDBPyConnection
    folder: WorkFolder
    is_clean: bool = True
    """Whether nothing of an earlier statement is left in it."""

    def forget(self, tables: Iterable[str]) -> None:
        """Take registered tables away. A statement that failed half-way may still hold on to them."""
        import duckdb

        try:
            for name in tables:
                self.connection.unregister(name)
        except duckdb.Error:
            self.is_clean = False

    def takes_another(self) -> bool:
        """Whether it is free for the next statement after one that failed."""
        import duckdb

        try:
            return self.is_clean and self.connection.execute("SELECT 1").fetchall() == [(1,)]
        except duckdb.Error:
            return False

    def close(self) -> None:
        self.connection.close()
        self.folder.cleanup()


class _Idle:
    """Databases that wait for their next statement, one for each process and setting."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[tuple[int, str, int], Database] = {}

    def take(self, key: tuple[int, str, int]) -> Database | None:
        with self._lock:
            return self._waiting.pop(key, None)

    def put(self, key: tuple[int, str, int], database: Database) -> None:
        with self._lock:
            if key not in self._waiting:
                self._waiting[key] = database
                return
        database.close()

    def close(self) -> None:
        for (pid, _, _), database in self._waiting.items():
            if pid == os.getpid():
                database.close()
        self._waiting.clear()


_idle = _Idle()
atexit.register(_idle.close)


@contextmanager
def closed_database(settings: Settings) -> Iterator[Database]:
    """A database for one statement; no other reaches it meanwhile."""
    spill_dir = settings.limits_spill_dir or tempfile.gettempdir()
    memory_bytes = max(settings.limits_query_memory_bytes, _MEMORY_MIN)
    key = (os.getpid(), spill_dir, memory_bytes)
    before = resident_bytes()
    database = _idle.take(key) or _opened(spill_dir, memory_bytes)
    keep = False
    try:
        yield database
        keep = database.is_clean
    except BadRequest:
        keep = database.takes_another()
        raise
    finally:
        # DuckDB keeps the memory it once had; only closing it returns that of a large statement.
        if keep and resident_bytes() - before <= _KEPT_BYTES_MAX:
            _idle.put(key, database)
        else:
            database.close()


def _opened(spill_dir: str, memory_bytes: int) -> Database:
    # Imported when first needed: a process that runs no SQL never loads it.
    import duckdb

    folder = WorkFolder(spill_dir)
    connection = duckdb.connect(
        ":memory:",
        config={
            "memory_limit": f"{memory_bytes // _MIB}MiB",
            "temp_directory": folder.name,
            "threads": str(_THREADS),
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "errors_as_json": "true",
        },
    )
    for macro in _MACROS:
        connection.execute(f"CREATE MACRO {macro}")
    for setting in _SHUT:
        connection.execute(f"SET {setting}")
    return Database(connection, folder)


def resident_bytes() -> int:
    """The memory of this process; 0 where the system does not tell."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
