"""Which table versions a branch shows: a pure function of manifest rows.

A graph version addresses a state: all rows with `created_at_version` up to it, and no other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from omnigraph.base.errors import Conflict, ExpectedVersionMismatch
from omnigraph.manifest.rows import Row


@dataclass(frozen=True)
class SubTableEntry:
    """One table as a snapshot shows it; at version 0 one that it does not show."""

    location: str
    table_version: int
    table_branch: str | None
    row_count: int


Entries = Mapping[str, SubTableEntry]
NOT_THERE = SubTableEntry("", 0, None, 0)


@dataclass(frozen=True)
class Snapshot:
    """A graph version and the tables it pins; never changes."""

    branch: str | None
    version: int
    graph_commit_id: str | None
    tables: Entries


@dataclass(eq=False)
class TableReplaced(ExpectedVersionMismatch):
    """The name shows another table than the one this write was prepared on; their versions have nothing in common."""

    def describe(self) -> str:
        return f"{self.table_key} was dropped and made again, or renamed, since this write was prepared"


def first_moved(entries: Entries, relied_on: Entries) -> ExpectedVersionMismatch | None:
    """What to tell a writer of the first of these tables that is not shown as it was then; None if all are."""
    for key, then in sorted(relied_on.items()):
        now = entries.get(key, NOT_THERE)
        if now != then and (now.table_version or then.table_version):
            other = now.table_version and then.table_version and now.location != then.location
            refusal = TableReplaced if other else ExpectedVersionMismatch
            return refusal(table_key=key, expected=then.table_version, actual=now.table_version)
    return None


@dataclass
class _Group:
    version: int = -1
    row_count: int = 0
    published_at: int = -1


@dataclass
class TableState:
    """What the rows read so far say about tables. `copy` before `apply` where others hold the old state."""

    groups: dict[tuple[str, str, str | None], _Group] = field(default_factory=dict)
    tombstones: dict[tuple[str, str], int] = field(default_factory=dict)
    locations: dict[str, list[str]] = field(default_factory=dict)

    def copy(self) -> TableState:
        groups = {k: _Group(g.version, g.row_count, g.published_at) for k, g in self.groups.items()}
        return TableState(groups, dict(self.tombstones), {k: list(v) for k, v in self.locations.items()})

    def apply(self, rows: Iterable[Row]) -> None:
        """Take rows in publish order."""
        for row in rows:
            if row.table_key is None:
                continue
            match row.object_type:
                case "table":
                    self._register(row.table_key, row.location)
                case "table_version":
                    self._pin(row)
                case "table_tombstone":
                    place = (row.table_key, self._location(row))
                    self.tombstones[place] = max(self.tombstones.get(place, -1), row.table_version or 0)
                case _:
                    continue

    def _register(self, table_key: str, location: str | None) -> None:
        if location is not None and location not in self.locations.setdefault(table_key, []):
            self.locations[table_key].append(location)

    def _location(self, row: Row) -> str:
        if row.location is not None:
            return row.location
        known = self.locations.get(row.table_key or "", [])
        if len(known) != 1:
            raise Conflict(f"manifest row '{row.object_id}' names no location", "Run omnigraph verify.")
        return known[0]

    def _pin(self, row: Row) -> None:
        assert row.table_key is not None
        group = self.groups.setdefault((row.table_key, self._location(row), row.table_branch), _Group())
        if row.table_version is not None and row.table_version > group.version:
            group.version, group.row_count = row.table_version, row.row_count or 0
            group.published_at = row.created_at_version

    def ever_registered(self, location: str) -> bool:
        return any(location in known for known in self.locations.values())

    def resolve(self, branch: str | None) -> Entries:
        """The entry of each live table on `branch`, sorted by key."""
        best: dict[str, tuple[bool, int, SubTableEntry]] = {}
        live: dict[str, set[str]] = {}
        for (key, location, table_branch), group in self.groups.items():
            if self.tombstones.get((key, location), -1) >= group.version:
                continue
            live.setdefault(key, set()).add(location)
            entry = SubTableEntry(location, group.version, table_branch, group.row_count)
            rank = (table_branch == branch, group.published_at)
            if key not in best or rank > best[key][:2]:
                best[key] = (*rank, entry)
        for key, places in live.items():
            if len(places) > 1:
                raise Conflict(f"{key} has two live locations: {', '.join(sorted(places))}", "Run omnigraph verify.")
        return MappingProxyType({key: best[key][2] for key in sorted(best)})


def reconstruct(rows: Iterable[Row], branch: str | None, version: int) -> Entries:
    """The tables of `branch` at graph version `version`."""
    state = TableState()
    state.apply(r for r in rows if r.created_at_version <= version)
    return state.resolve(branch)
