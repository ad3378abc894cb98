"""What a schema change does to each table: decided from the two schemas, then staged.

Holds at every return:
  1. A type that goes on keeps its location; its columns go on by their property ids, under whatever name.
  2. A new type gets a location that no table has ever had, dropped and half-made ones included.
  3. Nothing moved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from omnigraph.base.errors import InternalError
from omnigraph.base.failpoints import reach
from omnigraph.catalog.catalog import Catalog, TableType
from omnigraph.catalog.contract import AcceptedSchema, accept
from omnigraph.catalog.ir import SchemaIr
from omnigraph.commit.context import CommitContext
from omnigraph.commit.plan import Effect
from omnigraph.manifest import layout
from omnigraph.manifest.rows import Registration, Tombstone
from omnigraph.manifest.snapshot import NOT_THERE, Entries, SubTableEntry
from omnigraph.manifest.store import BranchState
from omnigraph.records.convert import convert
from omnigraph.storage.evolve import stage_columns, stage_note
from omnigraph.storage.stage import Stamp, stage_create
from omnigraph.storage.tables import newest_number, open_table

_SKIPPED_MAX = 1_000
_NAMED = "omnigraph:table_key"


@dataclass(frozen=True)
class TableShift:
    """A type before and after; without the one it is new, without the other it is dropped."""

    before: TableType | None
    after: TableType | None

    @property
    def is_renamed(self) -> bool:
        return self.before is not None and self.after is not None and self.before.name != self.after.name

    @property
    def continues(self) -> Mapping[str, str]:
        """For each column that is not new, the name it had."""
        assert self.before is not None
        assert self.after is not None
        own = [name for name in self.after.arrow_schema.names if self.after.find_property(name) is None]
        known = {member.property_id: member.name for member in self.before.properties}
        gone_on = {m.name: known[m.property_id] for m in self.after.properties if m.property_id in known}
        return {**{name: name for name in own}, **gone_on}

    @property
    def changes_columns(self) -> bool:
        assert self.before is not None
        assert self.after is not None
        same = self.continues == {name: name for name in self.after.arrow_schema.names}
        return not same or len(self.before.properties) != len(self.after.properties)

    @property
    def drops_columns(self) -> bool:
        if self.before is None or self.after is None:
            return False
        kept = {member.property_id for member in self.after.properties}
        return any(member.property_id not in kept for member in self.before.properties)


def shifts(before: Catalog, after: Catalog) -> tuple[TableShift, ...]:
    """Every type of either schema, paired by the id it keeps for life."""
    old = {table.type_id: table for table in before.tables()}
    new = {table.type_id: table for table in after.tables()}
    return tuple(TableShift(old.get(number), new.get(number)) for number in sorted({*old, *new}))


def accept_next(
    ctx: CommitContext, state: BranchState, before: SchemaIr, source: str, commit_id: str
) -> AcceptedSchema:
    """The contract of the new schema. Ids that an interrupted apply gave to a place that is taken now are skipped."""
    for skipped in range(_SKIPPED_MAX):
        previous = replace(before, next_identity_id=before.next_identity_id + skipped)
        found = accept(source, before.schema_identity_domain, previous, graph_commit_id=commit_id)
        fresh = [s.after for s in shifts(before.catalog, found.catalog) if s.before is None and s.after is not None]
        if all(_free_location(ctx, state, table) is not None for table in fresh):
            return found
    raise InternalError("no free place was found for the tables of the new types")


def _free_location(ctx: CommitContext, state: BranchState, table: TableType) -> str | None:
    """Where a new table goes: a place of its name, or of its name and incarnation, that was never used."""
    for incarnation in (None, table.incarnation):
        location = layout.table_location(table.kind, table.name, incarnation)
        if not state.tables.ever_registered(location) and not _is_taken(ctx, location):
            return location
    return None


def _is_taken(ctx: CommitContext, location: str) -> bool:
    """Whether something lies there: a table that was made and never registered, which cleanup removes in its time."""
    return newest_number(ctx.ref(location, None)) > 0 or bool(ctx.objects.list(location, limit=1))


@dataclass(frozen=True)
class Staged:
    """The tables' part of the commit."""

    effects: tuple[Effect, ...]
    registrations: tuple[Registration, ...]
    tombstones: tuple[Tombstone, ...]
    relied_on: Entries


def stage_tables(
    ctx: CommitContext,
    state: BranchState,
    changed: tuple[TableShift, ...],
    operation_id: str,
    told: Callable[[str], None],
) -> Staged:
    """Stage what every type needs. `told` hears the table key of each that is staged."""
    effects: list[Effect] = []
    registrations: list[Registration] = []
    tombstones: list[Tombstone] = []
    for shift in changed:
        key = shift.after.table_key if shift.after is not None else ""
        entry = state.entries[shift.before.table_key] if shift.before is not None else None
        if shift.after is not None and (effect := _effect(ctx, state, shift, entry, Stamp(operation_id, key, "0"))):
            effects.append(effect)
            told(key)
            reach("stage.files_written")
        if shift.after is not None and (entry is None or shift.is_renamed):
            location = entry.location if entry is not None else effects[-1].ref.location
            registrations.append(Registration(key, location))
        if shift.before is not None and entry is not None and (shift.after is None or shift.is_renamed):
            tombstones.append(Tombstone(shift.before.table_key, entry.location, entry.table_version))
    return Staged(tuple(effects), tuple(registrations), tuple(tombstones), dict(_relied(state, changed)))


def _relied(state: BranchState, changed: tuple[TableShift, ...]) -> Iterator[tuple[str, SubTableEntry]]:
    """Every name of either schema as readers see it now."""
    for shift in changed:
        for table in (shift.before, shift.after):
            if table is not None:
                yield table.table_key, state.entries.get(table.table_key, NOT_THERE)


def _effect(
    ctx: CommitContext, state: BranchState, shift: TableShift, entry: SubTableEntry | None, stamp: Stamp
) -> Effect | None:
    assert shift.after is not None
    key, wanted = shift.after.table_key, shift.after.arrow_schema
    if entry is None:
        location = _free_location(ctx, state, shift.after)
        if location is None:
            raise InternalError(f"the place of {key} was taken meanwhile")
        ref = ctx.ref(location, None)
        return Effect(key, ref, 0, (stage_create(ref, wanted, stamp),), 0)
    if not shift.changes_columns and not shift.is_renamed:
        return None
    ref = ctx.ref(entry.location, entry.table_branch)
    table = open_table(ref, entry.table_version, key)
    if shift.changes_columns:
        stored = set(table.schema.names)
        continues = {name: was for name, was in shift.continues.items() if was in stored}
        steps = stage_columns(table, wanted, continues, dict(_literals(shift, continues)), stamp)
    else:
        steps = (stage_note(table, {_NAMED: key}, stamp),)
    return Effect(key, ref, entry.table_version, steps, entry.row_count)


def _literals(shift: TableShift, continues: Mapping[str, str]) -> Iterator[tuple[str, pa.Scalar]]:
    """What the rows that are there get in new columns that must have a value."""
    assert shift.after is not None
    for member in shift.after.properties:
        if member.name not in continues and not member.type.nullable:
            column = convert(member.type, [member.default]).array
            if member.default is None or column.null_count:
                raise InternalError(f"{shift.after.table_key}.{member.name} has no value for the rows that are there")
            yield member.name, column[0]
