"""SQL over one snapshot: one SELECT, the views `node_<T>` and `edge_<E>`, and nothing else.

Holds for every statement:
  1. It reads the versions its snapshot pins, of each table only the columns and rows it needs.
  2. It ends when it is done, when a limit is passed, or when the user interrupts it; whoever waits is told at once.
  3. Its whole result was computed before any of it is returned; what does not fit in memory lies in a file, which goes
     with the result.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Generic, TypeVar

import pyarrow as pa

from omnigraph.base.errors import InternalError, LimitExceeded, Unavailable
from omnigraph.catalog.catalog import TableType
from omnigraph.catalog.types import PropertyType, ScalarType, arrow_type
from omnigraph.engine.read.limits import ReadLimits
from omnigraph.engine.read.result import QueryResult
from omnigraph.engine.read.sql_check import SqlError, check
from omnigraph.engine.read.sql_database import Database, closed_database, resident_bytes
from omnigraph.engine.read.sql_errors import told
from omnigraph.engine.view import View
from omnigraph.engine.write.spool import RowSpool
from omnigraph.sets.scratch import Scratch
from omnigraph.settings import Settings
from omnigraph.storage.failures import Unreadable
from omnigraph.storage.sql_source import SqlSource

if TYPE_CHECKING:
    import duckdb

NAME = "sql"
_BATCH_ROWS = 8_192
_LOOK_S = 0.05
# So long an interrupted statement may take to notice; then it is left to end alone.
_PATIENCE_S = 2.0
# DuckDB does not count the values under its hands; together they may grow the process by this many times the limit.
_UNCOUNTED = 2
_Answer = TypeVar("_Answer")


@dataclass(frozen=True)
class Sql:
    """A statement and what it reads."""

    text: str
    view: View
    target: Mapping[str, str]
    settings: Settings
    timeout_ms: int | None = None

    @property
    def limits(self) -> ReadLimits:
        return ReadLimits.of(self.settings, self.timeout_ms)


def run_sql(sql: Sql, *, analyze: bool = False) -> QueryResult:
    """The rows of the statement; with `analyze` also the plan with rows and times, for which it runs once more."""

    def work(connection: duckdb.DuckDBPyConnection) -> QueryResult:
        relation = _bound(connection, sql.text)
        _refuse_twins(relation.columns)
        scratch = Scratch(sql.settings)
        try:
            with relation.to_arrow_reader(_BATCH_ROWS) as batches:
                spool = _spooled(batches, scratch, sql.limits)
            plan = _analyzed(connection, sql.text) if analyze else None
        except BaseException:
            scratch.close()
            raise
        kept = spool.is_spilled
        rows = spool if kept else spool.table()
        if not kept:
            scratch.close()
        return QueryResult(
            rows,
            [_property_type(column.type) for column in spool.schema],
            query_name=NAME,
            target=sql.target,
            graph_commit_id=sql.view.snapshot.graph_commit_id,
            plan=plan,
            on_gone=scratch.close if kept else None,
        )

    return _Run(sql, work).answer()


def explain_sql(sql: Sql) -> str:
    """How DuckDB would run the statement; nothing is run."""
    return _Run(sql, lambda connection: str(_bound(connection, sql.text).explain())).answer()


def view_names(tables: Sequence[TableType]) -> dict[str, TableType]:
    """The name of each table's view."""
    return {f"{table.kind}_{table.name}": table for table in tables}


@dataclass
class _Run(Generic[_Answer]):
    """One statement in a thread of its own, so that the caller can be told of limits and interrupts at any time."""

    sql: Sql
    work: Callable[[duckdb.DuckDBPyConnection], _Answer]
    done: threading.Event = field(default_factory=threading.Event)
    connection: duckdb.DuckDBPyConnection | None = None
    answers: list[_Answer] = field(default_factory=list)
    failure: BaseException | None = None

    def answer(self) -> _Answer:
        limits = self.sql.limits
        threading.Thread(target=self._run, args=(limits,), name="omnigraph-sql", daemon=True).start()
        try:
            passed = self._watch(limits)
        except BaseException:
            self._stop()
            raise
        if passed is not None:
            self._stop()
            raise passed
        if self.failure is not None:
            raise self.failure
        return self.answers[0]

    def _run(self, limits: ReadLimits) -> None:
        try:
            with (
                closed_database(self.sql.settings) as database,
                _told(self.sql, limits),
                _registered(database, self.sql),
            ):
                self.connection = database.connection
                try:
                    self.answers.append(self.work(database.connection))
                finally:
                    self.connection = None
        except BaseException as error:
            self.failure = error
        finally:
            self.done.set()

    def _watch(self, limits: ReadLimits) -> LimitExceeded | None:
        """Wait for the end; the limit that was passed before it, if one was."""
        started, memory = monotonic(), resident_bytes()
        memory_max = memory + _UNCOUNTED * limits.memory_bytes
        while True:
            left = limits.timeout_ms / 1_000 - (monotonic() - started) if limits.timeout_ms else _LOOK_S
            if self.done.wait(min(max(left, 0), _LOOK_S)):
                return None
            if left <= 0:
                return limits.too_slow()
            if resident_bytes() > memory_max:
                return limits.too_large()

    def _stop(self) -> None:
        patient_until = monotonic() + _PATIENCE_S
        while monotonic() < patient_until:
            connection = self.connection
            if connection is not None:
                _interrupt(connection)
            # An interrupt that comes before the statement begins is lost, so it is repeated.
            if self.done.wait(_LOOK_S):
                return
        atexit.register(_leave_quietly)


def _leave_quietly() -> None:
    """A process that ends while DuckDB still computes would list everything DuckDB holds, on stderr."""
    sys.stderr.flush()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    os.close(nowhere)


def _interrupt(connection: duckdb.DuckDBPyConnection) -> None:
    import duckdb

    try:
        connection.interrupt()
    except duckdb.Error:
        return  # It was closed at this moment: the statement has ended.


@contextmanager
def _told(sql: Sql, limits: ReadLimits) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        known = told(error, sql.text, limits)
        if isinstance(known, Unavailable | Unreadable | InternalError):
            sql.view.refuse_reclaimed()
        if known is error:
            raise
        raise known from error


def _bound(connection: duckdb.DuckDBPyConnection, text: str) -> duckdb.DuckDBPyRelation:
    """The statement with its names resolved; nothing has run."""
    import duckdb

    try:
        return connection.sql(text)
    except duckdb.Error:
        # A relation's errors do not say where in the text they are, those of a statement do.
        connection.execute(text)
        raise


@contextmanager
def _registered(database: Database, sql: Sql) -> Iterator[None]:
    """The views that the statement names, while it runs."""
    views = view_names(sql.view.catalog.tables())
    used = check(database, sql.text, list(views))
    try:
        for name in used:
            database.connection.register(name, _source(sql.view, views[name]))
        yield
    finally:
        database.forget(used)


def _source(view: View, table: TableType) -> SqlSource | pa.Table:
    if table.table_key not in view.entries:
        return table.arrow_schema.empty_table()
    return SqlSource(view.table(table.table_key), table.arrow_schema)


def _refuse_twins(columns: Sequence[str]) -> None:
    twins = [name for place, name in enumerate(columns) if name in columns[:place]]
    if twins:
        raise SqlError(f"two columns are named '{twins[0]}'", f"Name one of them: … AS {twins[0]}_2.")


def _spooled(batches: pa.RecordBatchReader, scratch: Scratch, limits: ReadLimits) -> RowSpool:
    spool = RowSpool(batches.schema, scratch)
    for batch in batches:
        spool.append(batch)
        if limits.result_rows and spool.num_rows > limits.result_rows:
            raise limits.too_many_rows()
    return spool


def _analyzed(connection: duckdb.DuckDBPyConnection, text: str) -> str:
    [(_, plan)] = connection.execute(f"EXPLAIN ANALYZE {text}").fetchall()
    return str(plan)


def _property_type(type_: pa.DataType) -> PropertyType | None:
    """The type of the schema language that a column has; None for those only SQL knows."""
    if pa.types.is_fixed_size_list(type_) and pa.types.is_float32(type_.value_type):
        return PropertyType(ScalarType.VECTOR, nullable=True, dimension=type_.list_size)
    if pa.types.is_list(type_):
        item = _property_type(type_.value_type)
        known = item is not None and not item.is_list and not item.is_vector and not item.is_blob
        return PropertyType(item.scalar, nullable=True, is_list=True) if known and item is not None else None
    if pa.types.is_binary(type_):
        return PropertyType(ScalarType.BLOB, nullable=True)
    if pa.types.is_timestamp(type_):
        return PropertyType(ScalarType.DATETIME, nullable=True)
    return _TYPES.get(type_)


_TYPES = {
    arrow_type(PropertyType(scalar)): PropertyType(scalar, nullable=True)
    for scalar in ScalarType
    if scalar is not ScalarType.VECTOR
}
