"""The checks of a merge on executors: the same rules and words as in one process, and every violation is noted."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from omnigraph.engine.merge.validate import MergeCheck
from omnigraph.engine.view import View
from omnigraph.engine.write.changeset import ChangeSet, TableChange
from omnigraph.engine.write.validate.check import Check, Make
from omnigraph.engine.write.validate.rules import Rule
from omnigraph.pipeline.bulk.bench import SparkBench
from omnigraph.pipeline.bulk.check import SparkCheck
from omnigraph.pipeline.bulk.rows import StagedRows, is_few
from omnigraph.pipeline.worker.merge import RowRulesTask, check_row_rules
from omnigraph.records.row_rules import has_row_rules
from omnigraph.records.violations import Findings, Stage
from omnigraph.sets.scratch import Relation


class SparkMergeCheck(MergeCheck, SparkCheck):
    def __init__(self, view: View, changes: ChangeSet, bench: SparkBench, table_key: str) -> None:
        desk, asked = bench.desk, bench.questions
        SparkCheck.__init__(self, view, changes, bench.scratch, Findings(0), None, desk, asked, frozenset())
        self.table_key, self.conflicts = table_key, []

    def report(self, stage: Stage, rule: Rule, relations: Mapping[str, Relation], make: Make) -> None:
        # A load lists the first few; of a merge all are told.
        Check.report(self, stage, rule, relations, make)

    def check_rows(self, change: TableChange) -> None:
        type_, rows = self.type_of(change), change.rows
        if not isinstance(rows, StagedRows) or is_few(rows.num_rows) or not has_row_rules(type_):
            super().check_rows(change)
            return
        task = partial(check_row_rules, task=RowRulesTask(self.catalog, change.table_key, rows.reading()))
        for found in self.desk.answers(self.desk.grouped(rows.files), task, "checking values"):
            for row_id, violation in found:
                self.note(violation, row_id)
