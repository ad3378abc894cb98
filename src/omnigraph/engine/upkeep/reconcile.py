"""Finds what interrupted work left behind and takes it away, or only tells of it.

Holds:
  1. What a live branch records, a version refers to, or a living load needs stays.
  2. In a preview nothing on disk changes, not even a lock.
  3. What cannot be removed is told with the reason and stops nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

import orjson

from omnigraph.base.errors import OmniError
from omnigraph.commit.context import CommitContext
from omnigraph.engine.upkeep import removal
from omnigraph.engine.upkeep.decide import (
    StagedFile,
    What,
    legacy_tables,
    orphan_forks,
    staged_leftovers,
    staging_folders,
    trees_without_reference,
    unregistered_tables,
)
from omnigraph.engine.upkeep.result import Kept, Removed, TableCleanup
from omnigraph.engine.upkeep.seen import Seen
from omnigraph.manifest import layout
from omnigraph.storage.files import referenced_units
from omnigraph.storage.refs import BranchRef, is_still, list_branches
from omnigraph.storage.tables import newest_number, table_exists

_CHUNK = 1_000
_TABLE_FOLDERS = ("nodes", "edges")
_OWN_FOLDERS = (layout.RECOVERY_DIR, layout.STAGING_DIR, layout.FENCE_DIR, layout.TAG_DIR)


@dataclass
class Reconcile:
    """One pass over a graph."""

    ctx: CommitContext
    seen: Seen
    confirm: bool
    removed: list[Removed] = field(default_factory=list)
    kept: list[Kept] = field(default_factory=list)
    tables: list[TableCleanup] = field(default_factory=list)
    _gone: set[str] = field(default_factory=set)

    def run(self) -> None:
        self._staging()
        self._legacy()
        self._unregistered()
        for location, table_key in sorted(self.seen.registered.items(), key=lambda item: (item[1], item[0])):
            self._table(location, table_key)
        self._commit_graph()
        self._locks()

    def _take(self, path: str, what: What, act: Callable[[], str | None], size: tuple[int, int] | None = None) -> bool:
        """Remove one leftover, or in a preview say so; what stays is told with the reason."""
        try:
            reason = act() if self.confirm else None
        except OmniError as error:
            reason = str(error)
        if reason is not None:
            self.kept.append(Kept(path, reason))
            return False
        files, total = size if size is not None else (None, None)
        self.removed.append(Removed(path, what.value, files, total))
        return True

    def _staging(self) -> None:
        for heartbeat in self.seen.dead:
            self._take(heartbeat.key, What.HEARTBEAT, partial(removal.remove_heartbeat, self.ctx, heartbeat))
        for folder in staging_folders(self.ctx.objects.list(layout.STAGING_DIR), self.seen.heartbeats):
            if not self._is_young(folder):
                self._take(folder, What.STAGING, partial(self.ctx.objects.remove_tree, folder))
        for place in _OWN_FOLDERS:
            for file in list(self.ctx.objects.walk(place)):
                if file.key.rsplit("/", 1)[1].startswith(".tmp-") and file.modified_us < self.seen.limit_us:
                    self._take(file.key, What.TEMPORARY, partial(self.ctx.objects.delete_files, [file.key]))

    def _legacy(self) -> None:
        for name in legacy_tables(self.ctx.objects.list("")):
            self._take(name, What.LEGACY, partial(self.ctx.objects.remove_tree, name))

    def _unregistered(self) -> None:
        places = [place for folder in _TABLE_FOLDERS for place in self.ctx.objects.list(folder)]
        for place in unregistered_tables(places, self.seen.registered):
            if self._is_young(place):
                self.kept.append(Kept(place, "it was written to lately; somebody may be making it"))
            else:
                self._take(place, What.TABLE, partial(removal.remove_table, self.ctx, place))

    def _is_young(self, folder: str) -> bool:
        return any(file.modified_us >= self.seen.limit_us for file in self.ctx.objects.walk(folder))

    def _table(self, location: str, table_key: str) -> None:
        """Its forks, then what was staged in it; a failure is told and the next table goes on."""
        try:
            if not table_exists(self.ctx.ref(location, None)):
                return
            self._forks(location, What.FORK)
            self.tables.append(TableCleanup(table_key, self._staged(location)))
        except OmniError as error:
            self.tables.append(TableCleanup(table_key, error=str(error)))

    def _commit_graph(self) -> None:
        if table_exists(self.ctx.ref(layout.COMMITS, None)):
            self._forks(layout.COMMITS, What.COMMIT_BRANCH)

    def _forks(self, location: str, what: What) -> None:
        refs = list_branches(self.ctx.ref(location, None))
        for orphan in orphan_forks(location, refs, self.seen.use):
            path, name = self.ctx.ref(location, orphan.name).path, orphan.name
            if orphan.kept is not None:
                self.kept.append(Kept(path, orphan.kept))
            elif not orphan.is_live:
                done = self._take(path, what, partial(removal.drop_fork, self.ctx, location, name))
                self._gone |= {path} if done else set()
            elif location != layout.COMMITS and self._seems_stale(location, refs[name]):
                done = self._take(
                    path,
                    What.STALE_FORK,
                    partial(removal.drop_stale_fork, self.ctx, location, name),
                )
                self._gone |= {path} if done else set()

    def _seems_stale(self, location: str, fork: BranchRef) -> bool:
        """A first look without the branch's lock; what is found stale is looked at again under it."""
        try:
            return not removal.may_use(self.ctx, self.seen.states[fork.name], location, fork.name)
        except OmniError:
            if is_still(self.ctx.ref(location, None), fork):
                raise
            return False

    def _staged(self, location: str) -> int:
        """The bytes of files nobody refers to that went from one table."""
        ctx = self.ctx
        heads, needed = self._needed(location)
        forks = [name for name in heads if name is not None]
        self._trees(location, forks, needed)
        total_files = total_bytes = 0
        for branch, chunk in self._chunks(location, forks, needed):
            if self.confirm:
                files, size = removal.remove_staged(ctx, location, branch, chunk, needed, heads[branch])
            else:
                files, size = len(chunk), sum(staged.file.size for staged in chunk)
            total_files, total_bytes = total_files + files, total_bytes + size
        if total_files:
            self.removed.append(Removed(location, What.STAGED.value, total_files, total_bytes))
        return total_bytes

    def _needed(self, location: str) -> tuple[dict[str | None, int], set[str]]:
        """The head of main and of every fork of a table, and what all their versions refer to."""
        heads: dict[str | None, int] = {}
        needed: set[str] = set()
        forks = list_branches(self.ctx.ref(location, None))
        for name in (None, *forks):
            ref = self.ctx.ref(location, name)
            # The head before the references: a commit in between is then noticed.
            head = newest_number(ref)
            try:
                needed |= referenced_units(ref)
            except OmniError:
                if name is None or is_still(ref, forks[name]):
                    raise
                continue  # its branch was deleted since they were listed
            heads[name] = head
        return heads, needed

    def _trees(self, location: str, forks: list[str], needed: set[str]) -> None:
        paths = (f.key.removeprefix(f"{location}/") for f in self.ctx.objects.walk(f"{location}/tree"))
        for name in trees_without_reference(paths, forks, self.seen.use.live):
            path = self.ctx.ref(location, name).path
            if self._take(
                path,
                What.FORK_FILES,
                partial(removal.drop_tree, self.ctx, location, name, needed),
            ):
                self._gone.add(path)

    def _chunks(
        self, location: str, forks: list[str], needed: set[str]
    ) -> Iterator[tuple[str | None, list[StagedFile]]]:
        """Leftover files by branch, few enough at once that no writer waits long for its lock."""
        waiting: dict[str | None, list[StagedFile]] = {}
        gone = tuple(f"{path}/" for path in self._gone)
        files = (f for f in self.ctx.objects.walk(location) if not f.key.startswith(gone))
        for staged in staged_leftovers(files, location, forks, needed, self.seen.limit_us):
            chunk = waiting.setdefault(staged.branch, [])
            chunk.append(staged)
            if len(chunk) >= _CHUNK:
                yield staged.branch, waiting.pop(staged.branch)
        yield from waiting.items()

    def _locks(self) -> None:
        """Leases of names that are no branches. A lock file on a local disk stays as long as its graph."""
        if self.ctx.root.is_local:
            return
        for key in self.ctx.objects.list(layout.LOCK_DIR):
            name = self._leased(key)
            known = {"main", layout.BRANCH_CONTROL_LOCK, layout.SCHEMA_LOCK_BRANCH, *self.seen.use.live}
            if name is not None and name not in known and removal.lease_key(name) == key:
                self._take(key, What.LOCK, partial(removal.remove_lock, self.ctx, name))

    def _leased(self, key: str) -> str | None:
        stored = self.ctx.objects.get(key)
        try:
            told = orjson.loads(stored.data) if stored is not None else None
        except ValueError:
            return None
        name = told.get("branch") if isinstance(told, dict) else None
        return name if isinstance(name, str) else None
