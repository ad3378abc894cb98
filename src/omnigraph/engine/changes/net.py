"""The net difference of two targets: tables by key, entities by id."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow.compute as pc

from omnigraph.engine.changes.model import Change, ChangeFilter, ChangeSet, ChangeStats, Op
from omnigraph.engine.changes.pairs import moved_pairs
from omnigraph.engine.changes.rows import RowChanges
from omnigraph.engine.changes.tables import OpenPair, open_pair
from omnigraph.engine.view import Current
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.manifest.store import branch_label
from omnigraph.sets.scratch import Scratch
from omnigraph.settings import Settings


class NetDiff:
    """Two snapshots to compare. Everything it needs is opened first, so Reclaimed comes before any change is told."""

    def __init__(
        self, current: Current, one: Snapshot, two: Snapshot, wanted: ChangeFilter, settings: Settings
    ) -> None:
        wanted.refuse_unknown({*one.tables, *two.tables, *current.entries})
        self.one, self.two = one, two
        self.stats = ChangeStats()
        """What was told so far."""
        self._wanted = wanted
        self._settings = settings
        moved = moved_pairs(one.tables, two.tables, current.entries)
        self._pairs = [open_pair(current.root, pair, current) for pair in moved if wanted.wants_table(*pair.keys)]

    def changes(self) -> Iterator[Change]:
        """The changes with images, counted in `stats` as they go by."""
        self.stats = ChangeStats()
        with Scratch(self._settings) as scratch:
            for pair in self._pairs:
                found = pair.row_changes(scratch)
                for change in pair.changes(found):
                    if self._wanted.wants_op(change.op):
                        self.stats.add(change.table_key, change.op)
                        yield change
                found.close()

    def counted(self) -> ChangeStats:
        """Only the counts; no change is kept."""
        self.stats = ChangeStats()
        with Scratch(self._settings) as scratch:
            for pair in self._pairs:
                found = pair.row_changes(scratch)
                self._count(pair, found)
                found.close()
        return self.stats

    def _count(self, pair: OpenPair, found: RowChanges) -> None:
        for had, has in found.presence():
            ops: dict[Op, int] = {
                "insert": pc.sum(pc.invert(had)).as_py() or 0,
                "delete": pc.sum(pc.invert(has)).as_py() or 0,
                "update": pc.sum(pc.and_(had, has)).as_py() or 0,
            }
            for op, count in ops.items():
                if self._wanted.wants_op(op):
                    self.stats.add(pair.pair.table_key, op, count)

    def change_set(self, stats_only: bool = False) -> ChangeSet:
        changes = [] if stats_only else list(self.changes())
        stats = self.counted() if stats_only else self.stats
        return ChangeSet(self.one.version, self.two.version, branch_label(self.two.branch), changes, stats)
