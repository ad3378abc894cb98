"""What a write will do to the rows of each table, before any of it is staged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from omnigraph.engine.write.spool import Rows

_NO_IDS = pa.array([], pa.string())


@dataclass
class TableChange:
    """Rows to write and ids to delete in one table; `rows` carry the table's columns and `__position`.

    Rows replace stored rows of the same id, unless `strict_insert` demands that there is none.
    With `replaces_all` nothing of what is stored survives.
    """

    table_key: str
    rows: Rows | None = None
    delete_ids: pa.Array = field(default_factory=lambda: _NO_IDS)
    replaces_all: bool = False
    strict_insert: bool = False
    has_fresh_ids: bool = False
    """Whether every id was made for this write, so that none of them can be met anywhere."""

    @property
    def row_count(self) -> int:
        return self.rows.num_rows if self.rows is not None else 0

    @property
    def is_empty(self) -> bool:
        return not self.row_count and not len(self.delete_ids) and not self.replaces_all


@dataclass
class ChangeSet:
    """The changes of one write, by table key."""

    tables: dict[str, TableChange] = field(default_factory=dict)

    def find(self, table_key: str) -> TableChange | None:
        return self.tables.get(table_key)

    def ordered(self) -> Iterator[TableChange]:
        for _, change in sorted(self.tables.items()):
            yield change

    def close(self) -> None:
        for change in self.tables.values():
            if change.rows is not None:
                change.rows.close()
