"""Writes to the tables OmniGraph keeps about itself: the manifest and its projections.

With full durability, files are synced before the version that refers to them, and the version before the call returns.
"""

from __future__ import annotations

from typing import Any

import lance
import pyarrow as pa
from lance.fragment import write_fragments
from lance.optimize import Compaction

from omnigraph.storage.durable import sync_files, sync_place, sync_version
from omnigraph.storage.failures import CommitLost, translated
from omnigraph.storage.tables import (
    Table,
    TableRef,
    is_torn,
    open_newest,
    open_table,
    remove_version,
    table_exists,
    torn_versions,
)

_commit = lance.LanceDataset.commit


def create_now(ref: TableRef, schema: pa.Schema, rows: pa.Table | None = None) -> Table:
    """A new table that readers of the graph cannot know of yet."""
    with translated(f"create {ref.location}"):
        if is_torn(ref, 1):
            remove_version(ref, 1)
        given = schema.empty_table() if rows is None else rows
        transaction = write_fragments(
            given,
            ref.uri,
            schema=schema,
            mode="create",
            return_transaction=True,
            enable_stable_row_ids=True,
            storage_options=ref.options,
        )
        sync_place(ref, "data")
        created = _commit(
            ref.uri,
            transaction,
            max_retries=0,
            detached=False,
            enable_stable_row_ids=True,
            storage_options=ref.options,
        )
        sync_place(ref, "")
        return Table(ref, created)


def append_to_projection(ref: TableRef, rows: pa.Table) -> Table:
    """Add rows to a table derived from the manifest, creating it when absent."""
    with translated(f"write {ref.location}"):
        if not table_exists(ref):
            return create_now(ref, rows.schema, rows)
        table = open_mended(ref)
        fresh = list(write_fragments(rows, table.dataset, mode="append"))
        sync_files(ref, fresh)
        operation = lance.LanceOperation.Append(fresh)
        done = Table(ref, _commit(table.dataset, operation, read_version=table.version, max_retries=20, detached=False))
        sync_version(done)
        return done


def open_mended(ref: TableRef) -> Table:
    """The newest version; versions that a power cut tore are removed first."""
    table = open_newest(ref)
    if table.below_torn:
        for version in torn_versions(ref):
            remove_version(ref, version)
    return table


def append_if_head(table: Table, rows: pa.Table, properties: dict[str, str]) -> Table:
    """Append rows iff nobody committed to the table since `table` was opened; CommitLost otherwise.

    Stated as a merge of the full fragment list: Lance rebases a plain append over other commits, this one it refuses.
    """
    with translated(f"publish to {table.ref.location}"):
        fresh = list(write_fragments(rows, table.dataset, mode="append"))
        sync_files(table.ref, fresh)
        operation = lance.LanceOperation.Merge([*map(_slim, table.fragments()), *fresh], table.dataset.lance_schema)
        transaction = lance.Transaction(table.version, operation, transaction_properties=properties)
        done = Table(table.ref, _commit(table.dataset, transaction, max_retries=0, detached=False))
        sync_version(done, f"{transaction.read_version}-{transaction.uuid}.txn")
    return done


def _slim(fragment: Any) -> Any:
    """Rows that are only ever added are never updated: the versions at which they were created say it all.

    Every version of the table lists those of every row, so each list it does without counts as many times.
    """
    fragment.last_updated_at_version_meta = None
    return fragment


def compact_now(ref: TableRef) -> bool:
    """Compact a table whose versions nobody pins; False when there was nothing to do or another writer was first."""
    try:
        with translated(f"compact {ref.location}"):
            table = open_table(ref, None)
            rewrites = [task.execute(table.dataset) for task in Compaction.plan(table.dataset, {}).tasks]
            if not rewrites:
                return False
            for rewrite in rewrites:
                sync_files(ref, rewrite.new_fragments)
            Compaction.commit(table.dataset, rewrites)
            sync_version(open_table(ref, None))
    except CommitLost:
        return False
    return True


def set_schema_metadata(table: Table, values: dict[str, str]) -> Table:
    """Stamp a table; content is unchanged."""
    with translated(f"stamp {table.ref.location}"):
        table.dataset.update_schema_metadata({**values})
        return _synced_head(table.ref)


def set_field_metadata(table: Table, column: str, values: dict[str, str]) -> Table:
    with translated(f"annotate {table.ref.location}"):
        table.dataset.update_field_metadata({column: {**values}})
        return _synced_head(table.ref)


def _synced_head(ref: TableRef) -> Table:
    head = open_table(ref, None)
    sync_version(head)
    return head
