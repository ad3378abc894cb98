"""Writes to the tables OmniGraph keeps about itself: the manifest and its projections."""

from __future__ import annotations

import lance
import pyarrow as pa
from lance.fragment import write_fragments

from omnigraph.storage.failures import CommitLost, translated
from omnigraph.storage.tables import Table, TableRef, open_table, table_exists

_commit = lance.LanceDataset.commit


def create_now(ref: TableRef, schema: pa.Schema, rows: pa.Table | None = None) -> Table:
    """A new table that readers of the graph cannot know of yet."""
    with translated(f"create {ref.location}"):
        if rows is None:
            rows = schema.empty_table()
        dataset = lance.write_dataset(
            rows,
            ref.uri,
            schema=schema,
            mode="create",
            enable_stable_row_ids=True,
            storage_options=ref.options,
        )
        return Table(ref, dataset)


def append_to_projection(ref: TableRef, rows: pa.Table) -> Table:
    """Add rows to a table derived from the manifest, creating it when absent."""
    with translated(f"write {ref.location}"):
        if not table_exists(ref):
            return create_now(ref, rows.schema, rows)
        table = open_table(ref, None)
        transaction = write_fragments(rows, table.dataset, mode="append", return_transaction=True)
        return Table(ref, _commit(table.dataset, transaction, max_retries=20, detached=False))


def append_if_head(table: Table, rows: pa.Table, properties: dict[str, str]) -> Table:
    """Append rows iff nobody committed to the table since `table` was opened; CommitLost otherwise.

    Stated as a merge of the full fragment list: Lance rebases a plain append over other commits, this one it refuses.
    """
    with translated(f"publish to {table.ref.location}"):
        fresh = list(write_fragments(rows, table.dataset, mode="append"))
        operation = lance.LanceOperation.Merge([*table.fragments(), *fresh], table.dataset.lance_schema)
        transaction = lance.Transaction(table.version, operation, transaction_properties=properties)
        done = _commit(table.dataset, transaction, max_retries=0, detached=False)
    return Table(table.ref, done)


def compact_now(ref: TableRef) -> bool:
    """Compact a table whose versions nobody pins; False when another writer was first."""
    try:
        with translated(f"compact {ref.location}"):
            open_table(ref, None).dataset.optimize.compact_files()
    except CommitLost:
        return False
    return True


def set_schema_metadata(table: Table, values: dict[str, str]) -> Table:
    """Stamp a table; content is unchanged."""
    with translated(f"stamp {table.ref.location}"):
        table.dataset.update_schema_metadata({**values})
    return open_table(table.ref, None)


def set_field_metadata(table: Table, column: str, values: dict[str, str]) -> Table:
    with translated(f"annotate {table.ref.location}"):
        table.dataset.update_field_metadata({column: {**values}})
    return open_table(table.ref, None)
