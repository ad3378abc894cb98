"""The merged rows of one table where executors wrote most of them, and the driver decided those in conflict.

Holds: rows have positions in the order of their ids, whoever wrote them, so that checks name the same rows first as one
process would. The driver reads conflicting rows batch by batch, and keeps of the others counts, files and deleted ids.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from omnigraph.catalog.catalog import Catalog, TableType
from omnigraph.engine.merge.resolve import Resolver
from omnigraph.engine.merge.rows import MergedTable
from omnigraph.engine.merge.threeway import Met
from omnigraph.engine.write.changeset import TableChange
from omnigraph.pipeline.bulk.desk import Desk
from omnigraph.pipeline.bulk.rows import StagedRows
from omnigraph.pipeline.worker.merge import GONE, Decided, DecideTask
from omnigraph.records.decode import POSITION
from omnigraph.sets.scratch import Scratch
from omnigraph.storage.row_files import RowFile, RowFileWriter

_BATCH_ROWS = 4_096


class SpreadTable(MergedTable):
    """`explains` and `listed_max` are what a dry run asks for."""

    def __init__(
        self,
        catalog: Catalog,
        type_: TableType,
        resolver: Resolver,
        scratch: Scratch,
        listed_max: int,
        explains: int,
        desk: Desk,
    ) -> None:
        super().__init__(catalog, type_, resolver, scratch, listed_max, explains)
        self._desk = desk
        self._schema = type_.arrow_schema.append(pa.field(POSITION, pa.int64(), nullable=False))
        self._settled = RowFileWriter(desk.folder, f"{type_.table_key}-settled", self._schema, POSITION)
        self._positions: dict[str, int] = {}
        self._files: list[RowFile] = []

    def gather(self, answers: Sequence[Decided], task: DecideTask) -> None:
        """Take what executors decided, and decide the rest."""
        parts = sorted(answers, key=lambda part: part.place)
        self._take_conflicts([part.conflicts for part in parts if part.conflicts is not None], task)
        settled = self._settled.close()
        written = [*(part.rows for part in parts), settled]
        self._files = sorted((file for file in written if file is not None), key=lambda file: file.first)
        gone = [part.gone for part in parts if part.gone is not None]
        self._gone += [batch.column("id") for batch in StagedRows(self._desk, GONE, gone).batches()]
        self.inserts += sum(part.inserts for part in parts)
        self.updates += sum(part.updates for part in parts)
        self.deletes += sum(part.deletes for part in parts)
        listed = [*self.listed, *(change for part in parts for change in part.listed)]
        self.listed = sorted(listed)[: self._listed_max]

    @property
    def change(self) -> TableChange:
        gone = pa.concat_arrays(self._gone) if self._gone else pa.array([], pa.string())
        rows = StagedRows(self._desk, self._schema, self._files) if self._files else None
        return TableChange(self.table_key, rows, gone)

    def _take_conflicts(self, files: Sequence[RowFile], task: DecideTask) -> None:
        for batch in StagedRows(self._desk, task.conflict_schema, files).batches():
            for start in range(0, batch.num_rows, _BATCH_ROWS):
                part = batch.slice(start, _BATCH_ROWS)
                self._positions = dict(
                    zip(part.column("id").to_pylist(), part.column(POSITION).to_pylist(), strict=True)
                )
                self.take(Met(part, self.type_))

    def _append(self, rows: pa.RecordBatch) -> None:
        places = np.array([self._positions[row_id] for row_id in rows.column("id").to_pylist()], np.int64)
        self._settled.append(pa.RecordBatch.from_arrays([*rows.columns, pa.array(places)], schema=self._schema))
