"""Which tables of two snapshots belong together: those at one location, whatever they are called. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from omnigraph.manifest.snapshot import SubTableEntry

Entries = Mapping[str, SubTableEntry]


@dataclass(frozen=True)
class TablePair:
    """One table in two snapshots, in each under the name it has there; a snapshot may not have it."""

    location: str
    before: tuple[str, SubTableEntry] | None
    after: tuple[str, SubTableEntry] | None
    now: str | None = None
    """Its name in the schema in force."""

    @property
    def table_key(self) -> str:
        """The newest name."""
        named = self.after or self.before
        assert named is not None
        return self.now or named[0]

    @property
    def keys(self) -> tuple[str | None, ...]:
        """Every name it has here."""
        return (self.before[0] if self.before else None, self.after[0] if self.after else None, self.now)

    @property
    def type_id(self) -> str:
        # A location is kept by a rename and never used again after a drop, and old snapshots know it too.
        return self.location.rsplit("/", 1)[-1]

    @property
    def is_edge(self) -> bool:
        return self.table_key.startswith("edge:")

    @property
    def order(self) -> tuple[bool, str]:
        """Nodes before edges, then the type id."""
        return (self.is_edge, self.type_id)


def moved_pairs(before: Entries, after: Entries, current: Entries) -> list[TablePair]:
    """Tables that the two do not show at the same version, by table key; `current` has the names of today."""
    named = {entry.location: key for key, entry in current.items()}
    old = {entry.location: (key, entry) for key, entry in before.items()}
    new = {entry.location: (key, entry) for key, entry in after.items()}
    pairs = [TablePair(place, old.get(place), new.get(place), named.get(place)) for place in old.keys() | new.keys()]
    moved = [pair for pair in pairs if not _is_same(pair)]
    return sorted(moved, key=lambda pair: (pair.table_key, pair.after is not None, pair.location))


def _is_same(pair: TablePair) -> bool:
    if pair.before is None or pair.after is None:
        return False
    one, two = pair.before[1], pair.after[1]
    return (one.table_branch, one.table_version) == (two.table_branch, two.table_version)
