"""The merged rows of one table: what the target must write and delete, and what nobody could decide.

Holds after every batch:
  1. `change` writes and deletes exactly what makes the target's rows the merged ones; a row that is as it should be
     is in neither.
  2. Totals are exact; `listed` has the first changes in id order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from omnigraph.base.errors import BadRequest
from omnigraph.catalog.catalog import Catalog, EdgeType, TableType
from omnigraph.engine.merge.conflicts import MergeConflict
from omnigraph.engine.merge.resolve import Choice, Given, Resolver
from omnigraph.engine.merge.table import Outcome
from omnigraph.engine.merge.threeway import BASE, DISPUTED, SOURCE, TAKEN, TARGET, Met, Picks, units_of
from omnigraph.engine.write.changeset import TableChange
from omnigraph.engine.write.spool import RowSpool
from omnigraph.manifest.rows import RowEffect
from omnigraph.records.decode import POSITION, Decoder
from omnigraph.records.encode import json_column
from omnigraph.records.sources import LineBatch
from omnigraph.records.violations import Findings
from omnigraph.sets.scratch import Scratch

_POSITION_FIELD = pa.field(POSITION, pa.int64(), nullable=False)
_SIDES: Mapping[str, int] = {"ours": TARGET, "theirs": SOURCE, "base": BASE}

Flags = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass
class _Result:
    """What becomes of each row of a batch: `picks` say which side each unit comes from."""

    picks: Picks
    writes: Flags
    deletes: Flags
    given: dict[int, pa.RecordBatch] = field(default_factory=dict)


class MergedTable:
    """Give it the batches of one table in id order."""

    def __init__(
        self, catalog: Catalog, type_: TableType, resolver: Resolver, scratch: Scratch, listed_max: int, explains: int
    ) -> None:
        self.type_ = type_
        self.inserts = self.updates = self.deletes = 0
        self.listed: list[tuple[str, str]] = []
        self.conflicts: list[MergeConflict] = []
        self.disputes: list[dict[str, Any]] = []
        """The first `explains` conflicts that were found, with the row as every side has it."""
        self._catalog, self._resolver, self._explains = catalog, resolver, explains
        self._listed_max = listed_max
        self._rows = RowSpool(type_.arrow_schema.append(_POSITION_FIELD), scratch)
        self._gone: list[pa.Array] = []
        self._place = 0

    @property
    def table_key(self) -> str:
        return self.type_.table_key

    @property
    def counts(self) -> RowEffect:
        return RowEffect(self.inserts, self.updates, self.deletes)

    @property
    def change(self) -> TableChange:
        gone = pa.concat_arrays(self._gone) if self._gone else pa.array([], pa.string())
        return TableChange(self.table_key, self._rows if self._rows.num_rows else None, gone)

    def take(self, met: Met) -> None:
        result = self._decided(met)
        had = met.present[TARGET]
        gone = np.flatnonzero(result.deletes & had)
        written = np.flatnonzero(result.writes & ~result.deletes)
        if len(gone):
            self._gone.append(met.batch.column("id").take(pa.array(gone)))
        given = np.fromiter(result.given, np.int64, len(result.given))
        if len(written) or len(given):
            made = [met.rows(written, result.picks), *result.given.values()]
            order = np.argsort(np.concatenate([written, given]))
            self._append(pa.Table.from_batches(made).combine_chunks().to_batches()[0].take(pa.array(order)))
        every = np.sort(np.concatenate([gone, written, given]))
        self.deletes += len(gone)
        self.updates += int((had[every]).sum()) - len(gone)
        self.inserts += int((~had[every]).sum())
        for row in every[: max(0, self._listed_max - len(self.listed))].tolist():
            op = "delete" if result.deletes[row] else "update" if had[row] else "insert"
            self.listed.append((met.ids[row], op))

    def _append(self, rows: pa.RecordBatch) -> None:
        places = np.arange(self._place, self._place + rows.num_rows, dtype=np.int64)
        self._place += rows.num_rows
        self._rows.append(rows.append_column(_POSITION_FIELD, pa.array(places)))

    def _decided(self, met: Met) -> _Result:
        size, units = met.batch.num_rows, units_of(self.type_)
        taken = np.array([outcome is Outcome.TAKE for outcome in met.outcomes], np.bool_)
        picks = np.full((max(1, len(units)), size), TARGET, np.int64)
        picks[:, taken] = SOURCE
        present = met.present[SOURCE]
        result = _Result(picks, taken & present, taken & ~present)
        for row in np.flatnonzero(~taken).tolist():
            letters = met.units[row]
            if letters is not None and DISPUTED not in letters:
                self._pick(result, row, letters, TARGET)
                continue
            conflict = self._conflict(met, row)
            if len(self.disputes) < self._explains:
                self.disputes.append(_explained(met, row, conflict))
            choice = self._resolver.choice(conflict)
            if choice is None:
                self.conflicts.append(conflict)
            else:
                self._settle(met, result, row, choice)
        return result

    def _conflict(self, met: Met, row: int) -> MergeConflict:
        letters = met.units[row]
        names = zip(units_of(self.type_), letters or "", strict=False)
        properties = tuple(name for unit, letter in names if letter == DISPUTED for name in unit)
        return MergeConflict.of_row(self.table_key, met.ids[row], met.outcomes[row], properties)

    def _pick(self, result: _Result, row: int, letters: str, side: int) -> None:
        """Merge one row property by property, those in dispute from one side."""
        sides = [SOURCE if letter == TAKEN else side if letter == DISPUTED else TARGET for letter in letters]
        result.picks[:, row] = sides
        result.writes[row] = any(chosen != TARGET for chosen in sides)

    def _settle(self, met: Met, result: _Result, row: int, choice: Choice) -> None:
        if isinstance(choice, Given):
            found = self._given(met, row, choice)
            if not found.equals(met.side(TARGET, row) or found.slice(0, 0)):
                result.given[row] = found
            return
        if choice == "delete":
            result.deletes[row] = True
            return
        side, letters = _SIDES[choice], met.units[row]
        if letters is not None:
            self._pick(result, row, letters, side)
        elif not met.present[side][row]:
            result.deletes[row] = True
        elif side != TARGET:
            result.picks[:, row] = side
            result.writes[row] = True

    def _given(self, met: Met, row: int, given: Given) -> pa.RecordBatch:
        """A row of the resolution file, read and checked as a load would."""
        name, row_id = self.type_.name, met.ids[row]
        data = {**given.properties, "id": given.properties.get("id", row_id)}
        record: dict[str, Any] = {"type": name, "data": data}
        if isinstance(self.type_, EdgeType):
            ends = given.endpoints or self._agreed_ends(met, row)
            record = {"edge": name, "from": ends.get("from"), "to": ends.get("to"), "data": data}
        findings = Findings(1)
        line = LineBatch(0, [orjson.dumps(record)], np.array([1], np.int64))
        decoded = Decoder(self._catalog).decode(line, findings).get(self.table_key)
        error = findings.error(("resolution file",))
        place = f"the row chosen for {self.table_key} '{row_id}'"
        if error is not None or decoded is None:
            why = error.violations[0]["message"] if error is not None and error.violations else "is not a row"
            raise BadRequest(f"{place}: {why}", "Nothing was written. Correct the resolution file.")
        found = decoded.select(self.type_.arrow_schema.names)
        if found.column("id").to_pylist() != [row_id]:
            raise BadRequest(f"{place} has another id", "Nothing was written. A choice cannot rename a row.")
        return pa.RecordBatch.from_arrays(found.columns, schema=self.type_.arrow_schema)

    def _agreed_ends(self, met: Met, row: int) -> Mapping[str, Any]:
        sides = [found for side in (TARGET, SOURCE) if (found := met.side(side, row)) is not None]
        ends = {(found.column("src")[0].as_py(), found.column("dst")[0].as_py()) for found in sides}
        if len(ends) != 1:
            raise BadRequest(
                f"the row chosen for {self.table_key} '{met.ids[row]}' needs 'endpoints': each side has its own",
                'Nothing was written. Add "endpoints": {"from": …, "to": …} beside "properties".',
            )
        src, dst = ends.pop()
        return {"from": src, "to": dst}


def _explained(met: Met, row: int, conflict: MergeConflict) -> dict[str, Any]:
    told: dict[str, Any] = {"table_key": conflict.table_key, "row_id": conflict.row_id, "kind": conflict.kind}
    if conflict.properties:
        told["properties"] = list(conflict.properties)
    sides = {"base": BASE, "ours": TARGET, "theirs": SOURCE}
    return {**told, **{name: _image(met.side(side, row)) for name, side in sides.items()}}


def _image(row: pa.RecordBatch | None) -> dict[str, Any] | None:
    """A row as a choice may spell it."""
    if row is None:
        return None
    values = {name: json_column(row.column(name))[0] for name in row.schema.names if name != "id"}
    if "src" not in values:
        return {"properties": values}
    ends = {"from": values.pop("src"), "to": values.pop("dst")}
    return {"properties": values, "endpoints": ends}


def totals(tables: Sequence[MergedTable]) -> list[dict[str, Any]]:
    """How many rows of each table change; tables of which none does are left out."""
    return [
        {"table_key": t.table_key, "inserts": t.inserts, "updates": t.updates, "deletes": t.deletes}
        for t in tables
        if t.counts.any
    ]
