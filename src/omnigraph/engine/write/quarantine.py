"""Bad rows set aside: which, why, and the file that tells about them.

Holds at every return:
  1. A row is rejected for its first failing stage; all rows of a duplicate or of a clash are rejected together.
  2. The rejects file appears whole, after the commit that left its rows out, and never replaces another file.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator, Sequence
from typing import IO, Any

import numpy as np
import orjson
import pyarrow as pa

from omnigraph.base.errors import BadRequest, Unavailable
from omnigraph.base.ids import new_ulid
from omnigraph.engine.write.changeset import ChangeSet
from omnigraph.engine.write.spool import Numbers, Rows, RowSpool
from omnigraph.records.decode import POSITION
from omnigraph.records.faults import RAW, RejectedRow
from omnigraph.records.violations import Violation, place_of
from omnigraph.sets.scratch import Relation, Scratch

_REFUSED = pa.schema([pa.field("id", pa.string()), pa.field(POSITION, pa.int64())])
_REJECTS = pa.schema(
    [pa.field("position", pa.int64()), pa.field("stage", pa.int8())]
    + [pa.field(name, pa.string()) for name in ("type", "property", "reason", "message")]
    + [pa.field("raw", pa.binary())]
)
_FIRST_BY_ROW = """
SELECT position, type, property, reason, message, raw FROM (
  SELECT position, type, property, reason, message, raw,
         row_number() OVER (PARTITION BY position ORDER BY stage, property, reason, message) AS place
  FROM rejects
) numbered WHERE place = 1 ORDER BY position
"""
_IN_ORDER = "SELECT position, raw FROM texts ORDER BY position"
_BUFFERED_ROWS = 4_096


class _Pile:
    """Rows of one kind that are added to and read in turns."""

    def __init__(self, schema: pa.Schema, scratch: Scratch, read: Sequence[RowSpool] = ()) -> None:
        self.schema = schema
        self._scratch = scratch
        self._read = list(read)
        self._open: RowSpool | None = None

    def append(self, batch: pa.RecordBatch) -> None:
        if self._open is None:
            self._open = RowSpool(self.schema, self._scratch)
        self._open.append(batch)

    def spools(self) -> list[RowSpool]:
        """What was added so far; later rows go elsewhere."""
        if self._open is not None:
            self._read.append(self._open)
            self._open = None
        return self._read

    def copy(self) -> _Pile:
        return _Pile(self.schema, self._scratch, self.spools())

    def relation(self) -> Relation:
        spools = list(self.spools())
        count = sum(spool.num_rows for spool in spools)
        return Relation(self.schema, lambda: (batch for spool in spools for batch in spool.batches()), count)


class Rejects:
    """The rows left out of one attempt. What was rejected while reading is common to all attempts."""

    def __init__(
        self,
        scratch: Scratch,
        files: Sequence[str],
        raw: Rows | None = None,
        unnumbered: frozenset[int] = frozenset(),
    ) -> None:
        self._scratch = scratch
        self._files = files
        self._raw = raw or RowSpool(RAW, scratch)
        self._unnumbered = unnumbered
        self._rows = _Pile(_REJECTS, scratch)
        self._refused: dict[str, _Pile] = {}
        self._buffer: list[tuple[Any, ...]] = []
        self._refused_buffer: dict[str, list[tuple[str, int]]] = {}
        self._fresh = array("q")
        self._fresh_types: set[str] = set()

    def attempt(self) -> Rejects:
        """A copy that later stages may add to, while this one stays as it is."""
        self._flush()
        copy = Rejects(self._scratch, self._files, self._raw, self._unnumbered)
        copy._rows = self._rows.copy()
        copy._refused = {key: pile.copy() for key, pile in self._refused.items()}
        return copy

    def keep_raw(self, lines: pa.RecordBatch) -> None:
        """The text of lines that a later stage may reject."""
        assert isinstance(self._raw, RowSpool)
        self._raw.append(lines)

    def take_row(self, row: RejectedRow) -> None:
        """A row that was rejected while it was read."""
        if row.table_key is not None and row.table_key.startswith("node:") and row.id is not None:
            self._refused_buffer.setdefault(row.table_key, []).append((row.id, row.position))
        for violation in row.violations[:1]:
            self._add(violation, row.raw)

    def take(self, violation: Violation) -> None:
        """A row that a stage across rows rejects; `drop` takes it out of the changes."""
        self._add(violation, None)
        self._fresh.append(violation.position)
        if violation.type is not None:
            self._fresh_types.add(violation.type)

    def drop(self, changes: ChangeSet) -> int:
        """Take the rows rejected since the last call out of the changes; how many there were."""
        positions = np.unique(np.array(self._fresh, np.int64))
        for change in changes.ordered():
            if change.rows is None or change.table_key.split(":", 1)[1] not in self._fresh_types:
                continue
            dropped = RowSpool(_REFUSED, self._scratch)
            change.rows = change.rows.without(positions, dropped)
            for batch in dropped.batches():
                self._refused_pile(change.table_key).append(batch)
            dropped.close()
        # A type of which no row is left was not touched: leaving bad rows out never empties a table.
        changes.tables = {key: change for key, change in changes.tables.items() if change.row_count}
        self._fresh, self._fresh_types = array("q"), set()
        return len(positions)

    def named(self, position: int, seen_from: int) -> str:
        """A line as told at another one: its file is named only if that is another."""
        (file_number, line), (own, _) = place_of(position), place_of(seen_from)
        if file_number in self._unnumbered:
            return f"a row of {self._files[file_number]}"
        return f"line {line}" if file_number == own else f"line {line} of {self._files[file_number]}"

    def refused(self, table_key: str) -> Relation:
        return self._refused_pile(table_key).relation().renamed(["id", "position"])

    def _refused_pile(self, table_key: str) -> _Pile:
        return self._refused.setdefault(table_key, _Pile(_REFUSED, self._scratch))

    def write(self, path: str) -> WrittenRejects | None:
        """All rejected rows in a file beside `path`, one object each in the order of the input; None without any."""
        self._flush()
        if not self._rows.spools():
            return None
        whole = self._rows.relation()
        return WrittenRejects.make(path, lambda file: self._write_to(file, whole))

    def _write_to(self, file: IO[bytes], whole: Relation) -> int:
        count = 0
        with self._scratch.stream(_FIRST_BY_ROW, {"rejects": whole}) as batches:
            ordered = RowSpool(_REJECTS.remove(1), self._scratch).extend(b.cast(_REJECTS.remove(1)) for b in batches)
        texts = self._texts(ordered)
        for batch in ordered.batches():
            for row in batch.to_pylist():
                raw = row["raw"] if row["raw"] is not None else next(texts, None)
                file_number, line = place_of(row["position"])
                told = {"file": self._files[file_number], "line": None if file_number in self._unnumbered else line}
                told |= {name: row[name] for name in ("type", "property", "reason", "message")}
                told["raw"] = None if raw is None else raw.decode("utf-8", "replace")
                file.write(orjson.dumps(told, option=orjson.OPT_APPEND_NEWLINE))
                count += 1
        ordered.close()
        return count

    def _texts(self, ordered: RowSpool) -> Iterator[bytes]:
        """The kept lines of the rows that came without their own, in order."""
        parts = [b.column("position").filter(b.column("raw").is_null()).to_numpy() for b in ordered.batches()]
        wanted: Numbers = np.concatenate(parts) if parts else np.array([], np.int64)
        # Rows that several readers wrote lie in several files, each in order, not all together.
        found = RowSpool(RAW, self._scratch).extend(batch.select(RAW.names) for batch in self._raw.at(wanted))
        # Who takes the texts stops at the last one: an answer still open then could not be given back.
        with self._scratch.stream(_IN_ORDER, {"texts": found.relation(RAW.names)}) as batches:
            in_order = RowSpool(RAW, self._scratch).extend(batch.cast(RAW) for batch in batches)
        found.close()
        try:
            for batch in in_order.batches():
                yield from batch.column("raw").to_pylist()
        finally:
            in_order.close()

    def _add(self, violation: Violation, raw: bytes | None) -> None:
        told = (violation.type, violation.property, violation.reason, violation.message)
        self._buffer.append((violation.position, int(violation.stage), *told, raw))
        if len(self._buffer) >= _BUFFERED_ROWS:
            self._flush()

    def _flush(self) -> None:
        if self._buffer:
            self._rows.append(_batch(self._buffer, _REJECTS))
        for table_key, rows in self._refused_buffer.items():
            self._refused_pile(table_key).append(_batch(rows, _REFUSED))
        self._buffer, self._refused_buffer = [], {}


def _batch(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, f.type) for column, f in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


class WrittenRejects:
    """A rejects file under a working name. `keep` gives it its own, `discard` removes it."""

    def __init__(self, path: str, working: str, rows: int) -> None:
        self.path = path
        self.rows = rows
        self._working = working

    @staticmethod
    def make(path: str, write: Any) -> WrittenRejects:
        working = f"{path}.{new_ulid()}.partial"
        try:
            with open(working, "xb") as file:
                rows = write(file)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            _remove(working)
            hint = "Nothing was written. Name another rejects file."
            raise Unavailable(f"rejects file '{path}' cannot be written: {error}", hint, what="disk") from error
        except BaseException:
            _remove(working)
            raise
        return WrittenRejects(path, working, rows)

    def keep(self) -> str:
        """Where the file lies now; under its working name if another one took its place meanwhile."""
        try:
            os.link(self._working, self.path)
        except OSError:
            return self._working
        _remove(self._working)
        return self.path

    def discard(self) -> None:
        _remove(self._working)


def refuse_present(path: str) -> None:
    if os.path.exists(path):
        raise BadRequest(
            f"rejects file '{path}' exists already", "Nothing was written. Move it away, or name another one."
        )


def _remove(path: str) -> None:
    if os.path.exists(path):
        os.remove(path)
