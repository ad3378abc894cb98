"""How the tables of a snapshot lie on disk. Reads only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from omnigraph.engine.view import View
from omnigraph.engine.write.ensure_indices import unindexed_rows
from omnigraph.storage.compaction import fragment_facts
from omnigraph.storage.files import versions_of
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.tables import TableRef, open_table


@dataclass(frozen=True)
class TableStats:
    """One table. `bytes`: the data files of this version; `bytes_stored`: everything that lies in the table's folder.

    The folder of a fork holds what was written on its branch, that of main what was written there.
    """

    table_key: str
    location: str
    fragments: int
    deleted_rows: int
    unindexed_rows: int
    versions: int
    bytes: int
    bytes_stored: int


def table_stats(view: View) -> Iterator[TableStats]:
    """The tables of the view, by key."""
    types = {type_.table_key: type_ for type_ in view.catalog.tables()}
    for key, entry in view.entries.items():
        if not entry.table_version:
            continue  # A type that the branch has not caught up with yet.
        ref = TableRef(view.root, entry.location, entry.table_branch)
        table = open_table(ref, entry.table_version, key)
        facts = fragment_facts(table)
        yield TableStats(
            key,
            entry.location,
            len(facts),
            sum(f.deleted for f in facts),
            unindexed_rows(table, types[key]) if key in types and entry.row_count else 0,
            len(versions_of(ref)),
            sum(f.bytes for f in facts),
            _stored(view.root.objects, ref),
        )


def _stored(objects: ObjectStore, ref: TableRef) -> int:
    forks = f"{ref.path}/tree/"
    return sum(file.size for file in objects.walk(ref.path) if not file.key.startswith(forks))
