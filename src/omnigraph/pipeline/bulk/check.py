"""The checks of a load, asked of Spark: the same rules in the same order as in one process, and the same words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from omnigraph.base.ids import new_ulid
from omnigraph.catalog.catalog import TableType
from omnigraph.engine.scratch import Relation, Scratch
from omnigraph.engine.view import View
from omnigraph.engine.write.changeset import ChangeSet, TableChange
from omnigraph.engine.write.spool import Rows
from omnigraph.engine.write.validate import rules
from omnigraph.engine.write.validate.check import Aside, Check, Make, is_known_empty
from omnigraph.engine.write.validate.rules import Rule
from omnigraph.engine.write.validate.stored import Stored
from omnigraph.pipeline.bulk.desk import Desk
from omnigraph.pipeline.bulk.rows import SparkRelation, StagedRows, frame_of
from omnigraph.pipeline.bulk.stored import stored_frame
from omnigraph.pipeline.failures import spark_failures
from omnigraph.pipeline.worker.carry import columns_ddl, unpack
from omnigraph.pipeline.worker.look import ValueTask, check_file_values, first_rows
from omnigraph.records.violations import Findings, Stage

_INTEGERS = {"times": pa.int64(), "edges": pa.int64(), "refused_at": pa.int64(), "position": pa.int64()}


class SparkStored(Stored):
    """Tables read by executors where many rows are asked for."""

    def __init__(self, view: View, desk: Desk) -> None:
        super().__init__(view)
        self._desk = desk

    def scan(self, table_key: str, schema: pa.Schema) -> Relation:
        frame = stored_frame(self._desk, self._table(table_key), schema.names, columns_ddl(schema))
        return SparkRelation(self._desk, schema, frame, self.view.entry(table_key).row_count)


class SparkCheck(Check):
    def __init__(
        self,
        view: View,
        changes: ChangeSet,
        scratch: Scratch,
        findings: Findings,
        aside: Aside | None,
        desk: Desk,
        breaks_values: frozenset[str],
    ) -> None:
        super().__init__(view, changes, scratch, findings, aside)
        self.desk = desk
        self.stored = SparkStored(view, desk)
        self._breaks_values = breaks_values

    @contextmanager
    def asked(self, rule: Rule, relations: Mapping[str, Relation]) -> Iterator[Iterator[pa.RecordBatch]]:
        if _is_local(relations):
            with super().asked(rule, relations) as batches:
                yield batches
            return
        yield self._spilled(rule, relations).batches()

    def report(self, stage: Stage, rule: Rule, relations: Mapping[str, Relation], make: Make) -> None:
        if _is_local(relations) or (self.aside is not None and stage <= Stage.UNIQUE):
            super().report(stage, rule, relations, make)
            return
        frame, schema = self._answer(rule, relations)
        listed = self.findings.listed_max
        answers = self.desk.collected(frame, partial(first_rows, listed_max=listed), f"checking {stage.name.lower()}")
        found = Findings(listed)
        for answer in answers:
            if answer.rows is not None:
                table = pa.ipc.open_stream(answer.rows).read_all()
                for batch in table.to_batches():
                    self.add_to(found, stage, unpack(batch.columns, schema), make)
        found.recount(stage, sum(answer.count for answer in answers))
        self.findings.merge(found)

    def spooled(self, rule: Rule, relations: Mapping[str, Relation]) -> Rows:
        return super().spooled(rule, relations) if _is_local(relations) else self._spilled(rule, relations)

    def surviving(self, stored: Relation, gone: Relation, survives: bool = True) -> Relation:
        relations = {"stored": stored, "gone": gone}
        if _is_local(relations) or is_known_empty(stored) or is_known_empty(gone):
            return super().surviving(stored, gone, survives)
        frame, schema = self._answer(rules.surviving(stored.schema.names, survives), relations)
        return SparkRelation(self.desk, schema, frame, stored.row_count)

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
        frame, schema = self._answer(rule, relations)
        return StagedRows(self.desk, schema, self.desk.spilled(frame, schema, "checking rows"))

    def _answer(self, rule: Rule, relations: Mapping[str, Relation]) -> tuple[DataFrame, pa.Schema]:
        """The answer as a frame, and the types its columns stand for."""
        token = new_ulid().lower()
        names = {name: f"omnigraph_{token}_{name}" for name in relations}
        with spark_failures("checking rows"):
            try:
                for name, relation in relations.items():
                    frame_of(self.desk, relation).createOrReplaceTempView(names[name])
                frame = self.desk.spark.sql(_renamed(rule.sql, names))
                columns = frame.columns
            finally:
                for view in names.values():
                    self.desk.spark.catalog.dropTempView(view)
        types: dict[str, Any] = dict(_INTEGERS)
        for relation in relations.values():
            types |= {field.name: field.type for field in relation.schema}
        schema = pa.schema([pa.field(name, types.get(name, pa.string())) for name in columns])
        return frame, schema


def _is_local(relations: Mapping[str, Relation]) -> bool:
    """Whether all rows are in this process, so that asking Spark would only cost time."""
    return all(not isinstance(relation, SparkRelation) for relation in relations.values())


def _renamed(sql: str, names: Mapping[str, str]) -> str:
    """The text with its relations under names that nobody else in the session uses."""
    chosen = "|".join(map(re.escape, names))
    return re.sub(rf"\b(FROM|JOIN)\s+({chosen})\b", lambda found: f"{found[1]} {names[found[2]]}", sql)
