"""The checks of a load on executors: the same rules in the same order as in one process, and the same words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial

import pyarrow as pa

from omnigraph.catalog.catalog import TableType
from omnigraph.engine.view import View
from omnigraph.engine.write.changeset import ChangeSet, TableChange
from omnigraph.engine.write.spool import Rows
from omnigraph.engine.write.validate.check import Aside, Check, Make
from omnigraph.engine.write.validate.rules import Rule
from omnigraph.engine.write.validate.stored import Stored
from omnigraph.pipeline.bulk.desk import Desk
from omnigraph.pipeline.bulk.questions import Questions, answer_schema
from omnigraph.pipeline.bulk.rows import StagedRows
from omnigraph.pipeline.bulk.spread import SpreadRelation, stored_relation
from omnigraph.pipeline.worker.look import ValueTask, check_file_values
from omnigraph.records.violations import Findings, Stage
from omnigraph.sets.scratch import Relation, Scratch


class SpreadStored(Stored):
    """Tables read by executors where all rows are asked for."""

    def __init__(self, view: View, desk: Desk) -> None:
        super().__init__(view)
        self._desk = desk

    def scan(self, table_key: str, schema: pa.Schema) -> Relation:
        rows = self.view.entry(table_key).row_count
        return stored_relation(self._desk, self._table(table_key), schema, schema.names, rows)


class SparkCheck(Check):
    def __init__(
        self,
        view: View,
        changes: ChangeSet,
        scratch: Scratch,
        findings: Findings,
        aside: Aside | None,
        desk: Desk,
        questions: Questions,
        breaks_values: frozenset[str],
    ) -> None:
        super().__init__(view, changes, scratch, findings, aside)
        self.desk = desk
        self.stored = SpreadStored(view, desk)
        self._questions = questions
        self._breaks_values = breaks_values

    @contextmanager
    def asked(self, rule: Rule, relations: Mapping[str, Relation]) -> Iterator[Iterator[pa.RecordBatch]]:
        if _is_here(relations):
            with super().asked(rule, relations) as batches:
                yield batches
            return
        yield self._spilled(rule, relations).batches()

    def report(self, stage: Stage, rule: Rule, relations: Mapping[str, Relation], make: Make) -> None:
        if _is_here(relations) or (self.aside is not None and stage <= Stage.UNIQUE):
            super().report(stage, rule, relations, make)
            return
        listed = self.findings.listed_max
        told = self._questions.ask(rule, relations, first_max=listed)
        found = Findings(listed)
        for one in told:
            if one.first is not None:
                self.add_to(found, stage, pa.ipc.open_stream(one.first).read_all(), make)
        found.recount(stage, sum(one.count for one in told))
        self.findings.merge(found)

    def spooled(self, rule: Rule, relations: Mapping[str, Relation]) -> Rows:
        return super().spooled(rule, relations) if _is_here(relations) else self._spilled(rule, relations)

    def values(self, change: TableChange, type_: TableType, findings: Findings) -> None:
        if change.table_key not in self._breaks_values:
            return  # The executors looked while they decoded, and all was well.
        if not isinstance(change.rows, StagedRows):
            super().values(change, type_, findings)
            return
        sink = self.aside is not None
        task = ValueTask(self.catalog, change.table_key, change.rows.reading(), findings.listed_max, sink)
        groups = self.desk.grouped(change.rows.files)
        for found, told in self.desk.answers(groups, partial(check_file_values, task=task), "checking values"):
            findings.merge(found)
            if self.aside is not None:
                for violation in told:
                    self.aside.take(violation)

    def _spilled(self, rule: Rule, relations: Mapping[str, Relation]) -> StagedRows:
        told = self._questions.ask(rule, relations)
        schema = answer_schema(told)
        return StagedRows(self.desk, schema or pa.schema([]), [one.file for one in told if one.file is not None])


def _is_here(relations: Mapping[str, Relation]) -> bool:
    """Whether all rows are in this process, so that asking executors would only cost time."""
    return all(not isinstance(relation, SpreadRelation) for relation in relations.values())
