"""Checks and stages a load or a merge on Spark where there are many rows, in this process where there are few."""

from __future__ import annotations

import pyarrow as pa

from omnigraph.engine.view import View
from omnigraph.engine.write.changeset import ChangeSet, TableChange
from omnigraph.engine.write.staging import stage_change
from omnigraph.engine.write.validate.check import Aside, Check
from omnigraph.pipeline.bulk.check import SparkCheck
from omnigraph.pipeline.bulk.desk import Desk
from omnigraph.pipeline.bulk.questions import Questions
from omnigraph.pipeline.bulk.write import Upsert, restage_upsert, stage_on_spark
from omnigraph.records.violations import Findings
from omnigraph.sets.scratch import Scratch
from omnigraph.settings import Settings
from omnigraph.storage.stage import StagedWrite, Stamp, restage_append
from omnigraph.storage.tables import Table

# Below this many rows one process stages a table sooner than executors do.
STAGE_HERE_ROWS_MAX = 100_000


class SparkBench:
    engine = "spark"

    def __init__(self, scratch: Scratch, desk: Desk, settings: Settings, breaks_values: frozenset[str]) -> None:
        self.scratch = scratch
        self.desk = desk
        self.questions = Questions(desk, settings)
        self._breaks_values = breaks_values
        self._upserts: dict[str, Upsert | None] = {}

    def check(self, view: View, changes: ChangeSet, findings: Findings, aside: Aside | None = None) -> Check:
        asked, breaking = self.questions, self._breaks_values
        return SparkCheck(view, changes, self.scratch, findings, aside, self.desk, asked, breaking)

    def stage(self, table: Table, schema: pa.Schema, change: TableChange, stamp: Stamp) -> StagedWrite:
        if change.row_count + len(change.delete_ids) <= STAGE_HERE_ROWS_MAX:
            return stage_change(table, schema, change, stamp, self.scratch)
        staged = stage_on_spark(self.questions, self.desk, table, schema, change, stamp)
        self._upserts[change.table_key] = staged.upsert
        return staged.write

    def restage(
        self, table: Table, schema: pa.Schema, change: TableChange, stamp: Stamp, before: StagedWrite
    ) -> StagedWrite | None:
        upsert = self._upserts.get(change.table_key)
        if upsert is not None and before.ref == table.ref:
            return restage_upsert(self.questions, self.desk, table, upsert, change, stamp)
        return restage_append(table, before, stamp)
