"""Content: ids are unique, every row keeps the rules of its type, every edge has both its ends.

The rules are those of writes, asked as if all that is stored were written now, and answered by the same SQL texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.catalog import EdgeType, NodeType, TableType
from omnigraph.engine.verify.findings import Damage
from omnigraph.engine.verify.inspection import UNREADABLE, Inspection, place_of
from omnigraph.engine.verify.stored_rows import StoredRows
from omnigraph.engine.view import Current, View
from omnigraph.engine.write.changeset import ChangeSet, TableChange
from omnigraph.engine.write.parted import asked
from omnigraph.engine.write.validate import rules
from omnigraph.engine.write.validate.cardinality import check_cardinality
from omnigraph.engine.write.validate.check import Check
from omnigraph.engine.write.validate.endpoints import check_endpoints
from omnigraph.engine.write.validate.unique import check_unique
from omnigraph.manifest.store import BranchState
from omnigraph.records.decode import POSITION
from omnigraph.records.explain import shown
from omnigraph.records.ids import key_texts
from omnigraph.records.row_rules import has_row_rules, row_violations
from omnigraph.records.violations import Findings, Violation
from omnigraph.sets.scratch import Scratch

_EXAMPLES_MAX = 3
_STAGE = "content"


@dataclass
class Tally:
    """Violations counted by what they break, with the first few in words."""

    counts: dict[tuple[str, str], int] = field(default_factory=dict)
    told: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def take(self, violation: Violation) -> None:
        self.note(violation.property or "", violation.reason, violation.message)

    def note(self, property_: str, reason: str, message: str) -> None:
        what = (property_, reason)
        self.counts[what] = self.counts.get(what, 0) + 1
        told = self.told.setdefault(what, [])
        if len(told) < _EXAMPLES_MAX and message not in told:
            told.append(message)

    def lines(self) -> list[str]:
        """A sentence for each rule that is broken."""
        return [f"{_rows(self.counts[what])}: {'; '.join(messages)}" for what, messages in self.told.items()]


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"


def check_content(look: Inspection, state: BranchState, current: Current) -> None:
    """All content of a branch, as far as it was not looked at for another branch already."""
    view = current.view(state.snapshot(), state.incarnation)
    whole = {key: entry for key, entry in view.entries.items() if place_of(entry) not in look.broken}
    types = [t for t in current.catalog.tables() if t.table_key in whole]
    fresh = [t for t in types if look.is_first("rows", place_of(whole[t.table_key]))]
    joined = [
        edge
        for edge in current.catalog.edges
        if {edge.table_key, *_ends(edge)} <= whole.keys()
        and look.is_first("ends", *(place_of(whole[key]) for key in (edge.table_key, *_ends(edge))))
    ]
    with Scratch(look.ctx.settings) as scratch:
        for damage, key, message in faults(view, fresh, joined, scratch, look.read_rows):
            look.add(damage, state.branch, key, message, pinned=whole[key].table_version)


def _ends(edge: EdgeType) -> tuple[str, str]:
    return f"node:{edge.src_type}", f"node:{edge.dst_type}"


def faults(
    view: View,
    types: Iterable[TableType],
    edges: Iterable[EdgeType],
    scratch: Scratch,
    progress: Callable[[str, int], None],
) -> list[tuple[Damage, str, str]]:
    """What is wrong with the rows of these types and the ends of these edges: kind, table key, sentence."""
    found: list[tuple[Damage, str, str]] = []
    sound: list[TableType] = []
    for type_ in types:
        wrong = _table_faults(view, type_, scratch, progress)
        found += [(damage, type_.table_key, message) for damage, message in wrong]
        if not wrong:
            sound.append(type_)
    for type_ in sound:
        found += _asked(view, (type_,), scratch, check_unique, Damage.CONSTRAINT, type_.table_key)
        if isinstance(type_, EdgeType):
            found += _asked(view, (type_,), scratch, check_cardinality, Damage.CONSTRAINT, type_.table_key)
    for edge in edges:
        ends = [found_end for key in _ends(edge) if (found_end := view.catalog.find_table(key)) is not None]
        try:
            found += _asked(view, (edge, *ends), scratch, check_endpoints, Damage.DANGLING, edge.table_key)
        except UNREADABLE as error:
            found.append((Damage.PIN, edge.table_key, f"its edges cannot be followed: {error}"))
    return found


def _asked(
    view: View,
    types: tuple[TableType, ...],
    scratch: Scratch,
    rule: Callable[[Check], None],
    damage: Damage,
    table_key: str,
) -> list[tuple[Damage, str, str]]:
    """One rule of writes over these tables, as if their rows came now and nothing else was there."""
    nodes = tuple(t for t in types if isinstance(t, NodeType))
    edges = tuple(t for t in types if isinstance(t, EdgeType))
    narrowed = replace(view, catalog=replace(view.catalog, nodes=nodes, edges=edges))
    tally = Tally()
    changes = ChangeSet({t.table_key: _everything(view, t) for t in types})
    check = Check(narrowed, changes, scratch, Findings(0, sink=tally.take))
    try:
        rule(check)
    finally:
        check.tidy()
        scratch.release()
    return [(damage, table_key, message) for message in tally.lines()]


def _everything(view: View, type_: TableType) -> TableChange:
    return TableChange(type_.table_key, StoredRows(view.table(type_.table_key), type_.arrow_schema), replaces_all=True)


def _table_faults(
    view: View, type_: TableType, scratch: Scratch, progress: Callable[[str, int], None]
) -> list[tuple[Damage, str]]:
    """What the rows of one table break by themselves, and ids that are there twice."""
    tally = Tally()
    try:
        table = view.table(type_.table_key)
        wrong = _wrong_columns(type_, table.schema)
        if wrong:
            return [(Damage.CONSTRAINT, wrong)]
        rows = StoredRows(table, type_.arrow_schema)
        for batch in rows.batches(type_.arrow_schema.names):
            _check_batch(type_, batch, tally)
            progress(_STAGE, batch.num_rows)
        found = [(Damage.CONSTRAINT, message) for message in tally.lines()]
        repeated = _repeated_ids(rows, scratch)
    except UNREADABLE as error:
        return [(Damage.PIN, f"its rows cannot be read: {error}")]
    return [*found, *((Damage.CONTENT, message) for message in repeated)]


def _wrong_columns(type_: TableType, stored: pa.Schema) -> str | None:
    for declared in type_.arrow_schema:
        at = stored.get_field_index(declared.name)
        if at < 0:
            return f"the table has no column '{declared.name}'"
        if stored.field(at).type != declared.type:
            return f"the column '{declared.name}' holds {stored.field(at).type}, the schema says {declared.type}"
    return None


def _check_batch(type_: TableType, batch: pa.RecordBatch, tally: Tally) -> None:
    ids = batch.column("id")
    for declared in type_.arrow_schema:
        column = batch.column(declared.name)
        if not declared.nullable and column.null_count:
            for row in np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False)).tolist():
                message = f"{_named(ids[row].as_py())} has no value for '{declared.name}'"
                tally.note(declared.name, "missing", message)
    if has_row_rules(type_):
        for id_, violation in row_violations(type_, batch):
            tally.note(violation.property or "", violation.reason, f"{_named(id_)}: {violation.message}")
    if isinstance(type_, NodeType) and type_.key_properties:
        _check_keys(type_, batch, tally)


def _check_keys(type_: NodeType, batch: pa.RecordBatch, tally: Tally) -> None:
    """The id of a keyed node is made of its key; writes find stored rows by it."""
    columns = {member.name: batch.column(member.name) for member in type_.key_properties}
    wanted, ids = key_texts(type_, columns), batch.column("id")
    agree = pc.fill_null(pc.equal(wanted, ids), False)
    for row in np.flatnonzero(~agree.to_numpy(zero_copy_only=False)).tolist():
        message = f"{_named(ids[row].as_py())} has a key that makes the id {_named(wanted[row].as_py())}"
        tally.note("id", "key_and_id_differ", message)


def _named(id_: str | None) -> str:
    return "a row without an id" if id_ is None else str(shown(id_))


def _repeated_ids(rows: StoredRows, scratch: Scratch) -> list[str]:
    tally = Tally()
    ids = rows.relation(["id", POSITION]).renamed(["id", "position"])
    rule = rules.REPEATED_IDS
    with asked(scratch, rule.sql, {"input": ids}, rule.keys) as batches:
        for batch in batches:
            for id_, times in zip(batch.column("id").to_pylist(), batch.column("times").to_pylist(), strict=True):
                tally.note("id", "duplicate_id", f"id {_named(id_)} occurs {times} times")
    scratch.release()
    return tally.lines()
