"""Stored tables as frames: executors read their fragments at the pinned version."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pyspark.sql import DataFrame

from omnigraph.pipeline.bulk.desk import Desk
from omnigraph.pipeline.worker.rows import StoredTable, read_stored
from omnigraph.storage.tables import Table


def stored_table(table: Table) -> StoredTable:
    return StoredTable(table.ref.uri, table.version, table.ref.options)


def stored_frame(desk: Desk, table: Table, columns: Sequence[str], ddl: str) -> DataFrame:
    groups = desk.grouped(sorted(table.fragment_rows()))
    return desk.frame(groups, partial(read_stored, table=stored_table(table), columns=tuple(columns)), ddl)
