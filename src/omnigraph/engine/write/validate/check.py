"""What the rules across rows share: the view, the changes, and where what they find goes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.base.errors import InternalError
from omnigraph.catalog.catalog import Catalog, TableType
from omnigraph.engine.view import View
from omnigraph.engine.write.changeset import ChangeSet, TableChange
from omnigraph.engine.write.parted import asked
from omnigraph.engine.write.spool import Rows, RowSpool
from omnigraph.engine.write.validate import rules
from omnigraph.engine.write.validate.rules import Rule
from omnigraph.engine.write.validate.stored import Stored
from omnigraph.records.decode import POSITION
from omnigraph.records.encode import json_column
from omnigraph.records.values import check_values
from omnigraph.records.violations import Findings, Stage, Violation
from omnigraph.sets.scratch import Relation, Scratch
from omnigraph.storage.predicates import LOOKUP_BY_FILTER_MAX

# Stands for "no line": stored edges left dangling, sources that lost edges. Sorts after every line.
NO_LINE = 1 << 62
IDS = pa.schema([pa.field("id", pa.string())])

Row = Mapping[str, Any]
Make = Callable[[Row], Violation]


class Aside(Protocol):
    """Takes the violations of rows that are left out of the write instead of failing it."""

    def take(self, violation: Violation) -> None: ...

    def named(self, position: int, seen_from: int) -> str:
        """A line as told at another one: its file is named only if that is another."""

    def refused(self, table_key: str) -> Relation:
        """`id` and `position` of the rows of a table that were left out so far."""


@dataclass
class Check:
    """One validation of one change set against one view; `aside` only when bad rows may be left out."""

    view: View
    changes: ChangeSet
    scratch: Scratch
    findings: Findings
    aside: Aside | None = None
    stored: Stored = field(init=False)
    _spools: list[Rows] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.stored = Stored(self.view)

    @property
    def catalog(self) -> Catalog:
        return self.view.catalog

    def type_of(self, change: TableChange) -> TableType:
        found = self.catalog.find_table(change.table_key)
        if found is None:
            raise InternalError(f"no type for {change.table_key}")
        return found

    def report(self, stage: Stage, rule: Rule, relations: Mapping[str, Relation], make: Make) -> None:
        """Every row of the answer is a violation; `make` words it."""
        with self.asked(rule, relations) as batches:
            for batch in batches:
                self.add(stage, batch, make)

    def asked(self, rule: Rule, relations: Mapping[str, Relation]) -> AbstractContextManager[Iterator[pa.RecordBatch]]:
        return asked(self.scratch, rule.sql, relations, rule.keys)

    def add(self, stage: Stage, rows: pa.RecordBatch | pa.Table, make: Make) -> None:
        if self.aside is not None and stage <= Stage.UNIQUE:
            self.leave_out(rows, make)
            return
        self.add_to(self.findings, stage, rows, make)

    def add_to(self, findings: Findings, stage: Stage, rows: pa.RecordBatch | pa.Table, make: Make) -> None:
        positions = rows.column("position").fill_null(NO_LINE)
        places = np.asarray(positions.to_numpy(), np.int64)

        def violation(k: int) -> Violation:
            one = rows.slice(k, 1)
            return make({name: json_column(one.column(name))[0] for name in one.schema.names})

        findings.add_many(stage, places, violation)

    def leave_out(self, rows: pa.RecordBatch | pa.Table, make: Make) -> None:
        assert self.aside is not None
        columns = {name: json_column(rows.column(name)) for name in rows.schema.names}
        for k in range(rows.num_rows):
            self.aside.take(make({name: values[k] for name, values in columns.items()}))

    def spooled(self, rule: Rule, relations: Mapping[str, Relation]) -> Rows:
        """The answer set aside, so that it can be asked about again; `tidy` gives it up."""
        with self.asked(rule, relations) as batches:
            first = next(batches, None)
            if first is None:
                return RowSpool(pa.schema([]))
            spool = RowSpool(first.schema, self.scratch)
            self._spools.append(spool)
            spool.append(first)
            return spool.extend(batches)

    def surviving(self, stored: Relation, gone: Relation, survives: bool = True) -> Relation:
        """The stored rows whose ids are not among `gone`, or those whose are."""
        if is_known_empty(stored) or (is_known_empty(gone) and survives):
            return stored
        if stored.table is not None and gone.table is not None:
            hit = pc.is_in(stored.table.column("id"), value_set=gone.table.column("id").combine_chunks())
            return Relation.of(stored.table.filter(pc.invert(hit) if survives else hit))
        names = stored.schema.names
        found = self.spooled(rules.surviving(names, survives), {"stored": stored, "gone": gone})
        return found.relation(names) if found.num_rows else Relation.empty(stored.schema)

    def values(self, change: TableChange, type_: TableType, findings: Findings) -> None:
        """What `@range` and `@check` say about the rows of one table."""
        assert change.rows is not None
        for batch in change.rows.batches():
            check_values(type_, batch, findings)

    def tidy(self) -> None:
        for spool in self._spools:
            spool.close()
        self._spools.clear()


def input_rows(change: TableChange, columns: Sequence[str], names: Sequence[str]) -> Relation:
    """Columns of the rows to write, under the names the rules use."""
    assert change.rows is not None
    return change.rows.relation(columns).renamed(list(names))


def fresh_ids(change: TableChange | None) -> Relation:
    """The ids the write gives rows to."""
    if change is None or change.rows is None:
        return Relation.empty(IDS)
    return change.rows.relation(["id"]).renamed(["id"])


def deleted_ids(change: TableChange | None) -> Relation:
    return Relation.empty(IDS) if change is None else ids_relation(change.delete_ids)


def ids_relation(ids: pa.Array) -> Relation:
    return Relation.of(pa.table({"id": ids}, schema=IDS))


def gone_ids(change: TableChange) -> Relation:
    """The ids whose stored rows do not survive, unless the whole table is replaced."""
    if change.strict_insert:
        return deleted_ids(change)
    return fresh_ids(change).followed_by(deleted_ids(change))


def is_small(*changes: TableChange | None) -> bool:
    """Whether so few rows are touched that looking the stored ones up beats reading them all."""
    touched = sum(c.row_count + len(c.delete_ids) for c in changes if c is not None)
    return touched <= LOOKUP_BY_FILTER_MAX


def is_known_empty(relation: Relation) -> bool:
    return relation.table is not None and relation.table.num_rows == 0


def positions_in(batches: Iterator[pa.RecordBatch]) -> np.ndarray[Any, Any]:
    found = [batch.column("position").to_numpy() for batch in batches]
    return np.concatenate(found) if found else np.array([], np.int64)


__all__ = ["NO_LINE", "POSITION", "Check"]
