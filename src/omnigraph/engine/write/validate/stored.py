"""What is stored, as far as a rule needs it: looked up by index for a few rows, scanned for many.

Holds at every return: each table that was asked is noted in `read`, so that the commit can insist it has not moved.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.view import View
from omnigraph.sets.scratch import Relation
from omnigraph.storage.predicates import LOOKUP_BY_FILTER_MAX, column_in
from omnigraph.storage.tables import Table


class Stored:
    """The tables of one view. `read` are the keys of those looked at."""

    def __init__(self, view: View) -> None:
        self.view = view
        self._tables: dict[str, Table] = {}
        self.read: set[str] = set()

    def is_empty(self, table_key: str) -> bool:
        """Whether the snapshot shows no row; relying on that is relying on the table."""
        self.read.add(table_key)
        return self.view.entry(table_key).row_count == 0

    def rows(self, table_key: str, columns: Sequence[str], by: str, values: Iterable[pa.Array] | None) -> Relation:
        """Rows with `columns`, at least those whose column `by` is one of `values`; None asks for all."""
        schema = pa.schema([self.view.catalog.arrow_schema(table_key).field(name) for name in columns])
        if self.is_empty(table_key):
            return Relation.empty(schema)
        if values is not None:
            found = self._looked_up(table_key, columns, by, values)
            if found is not None:
                return Relation.of(found)
        return self.scan(table_key, schema)

    def scan(self, table_key: str, schema: pa.Schema) -> Relation:
        """The columns of `schema` of all rows."""
        table = self._table(table_key)
        return Relation(schema, lambda: iter(table.batches(schema.names)), self.view.entry(table_key).row_count)

    def _looked_up(
        self, table_key: str, columns: Sequence[str], by: str, values: Iterable[pa.Array]
    ) -> pa.Table | None:
        """The rows by a filter on an indexed column, None when the values are too many or cannot be written as text."""
        wanted = pc.unique(pa.chunked_array(values, self.view.catalog.arrow_schema(table_key).field(by).type))
        if len(wanted) > LOOKUP_BY_FILTER_MAX:
            return None
        where = column_in(by, wanted)
        return None if where is None else self._table(table_key).read(columns, where)

    def _table(self, table_key: str) -> Table:
        if table_key not in self._tables:
            self._tables[table_key] = self.view.table(table_key)
        return self._tables[table_key]
