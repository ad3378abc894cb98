"""DataFrames written with `df.write.format("omnigraph")`: executors stage rows, one process commits them.

Holds for every write:
  1. It is one commit of one type, checked as every load is, or nothing.
  2. Only files that successful tasks answered are committed; those of failed or twin tasks are never named.
  3. `abort` deletes nothing: Spark also calls it after a commit that landed. Staged rows are part of no table, and
     what is left of them goes with cleanup.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from omnigraph.base.batches import joined
from omnigraph.pipeline.planned import PlannedWrite
from omnigraph.pipeline.told import told_to_spark
from omnigraph.storage.row_files import RowFile, RowFileWriter


@dataclass
class StagedRows(WriterCommitMessage):
    """What one task wrote; no file where it had no rows."""

    file: RowFile | None


class GraphWriter(DataSourceArrowWriter):
    """The same object, copied, stages on executors and commits beside the driver."""

    def __init__(self, planned: PlannedWrite) -> None:
        self._planned = planned

    def write(self, iterator: Iterator[pa.RecordBatch]) -> StagedRows:
        with told_to_spark():
            staged: RowFileWriter | None = None
            for batch in joined(iterator):
                if staged is None:
                    staged = RowFileWriter(self._planned.folder, self._planned.table_key, batch.schema)
                staged.append(batch)
            return StagedRows(None if staged is None else staged.close())

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        # Imported here: executors get this class too and must not load the rooms that can publish.
        from omnigraph.pipeline.write_plan import commit_rows

        with told_to_spark():
            files = [message.file for message in messages if isinstance(message, StagedRows)]
            commit_rows(self._planned, [file for file in files if file is not None])

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        return None
