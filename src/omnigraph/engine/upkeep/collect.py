"""Removes table versions that no kept commit, fork, tag or living load needs, and the files only they refer to.

Holds:
  1. A version goes before its files, so nobody opens one whose files are gone; what a crash leaves in between is
     like a staged file and goes with age.
  2. Branches are looked at again, and none can be made, when versions go.
  3. Versions of `__manifest` are never touched.
  4. A table that no live branch shows any more loses its last version too, once nothing needs it, and then all its
     files. The manifest still knows its place, so no other table is ever made there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field

from omnigraph.base.errors import Conflict, OmniError
from omnigraph.base.failpoints import reach
from omnigraph.commit.context import CommitContext
from omnigraph.commit.sidecar import pending_sidecars
from omnigraph.commit.staging import Heartbeat, list_heartbeats
from omnigraph.engine.upkeep.keep import Limits, Pinned, doomed_versions, kept_commits, pinned_by
from omnigraph.engine.upkeep.result import TableCleanup
from omnigraph.engine.upkeep.seen import Seen, live_states
from omnigraph.manifest import layout
from omnigraph.manifest.rows import Row
from omnigraph.manifest.store import BranchState, branch_label, branch_name
from omnigraph.manifest.tags import list_tags
from omnigraph.storage.files import Units, owner_of, remove_versions, unit_of, units_without, versions_of
from omnigraph.storage.objects import FoundFile
from omnigraph.storage.refs import branch_files, is_still, list_branches, read_branch
from omnigraph.storage.tables import newest_number, table_exists

_CHUNK = 1_000
_DERIVED = (layout.COMMITS, layout.COMMIT_ACTORS, layout.RECOVERIES)
Doomed = dict[str | None, list[int]]


@dataclass
class Collect:
    """One pass over the tables of a graph."""

    ctx: CommitContext
    seen: Seen
    limits: Limits
    confirm: bool
    _pins: dict[tuple[str | None, int], set[Pinned]] = field(default_factory=dict)

    def run(self) -> Iterator[TableCleanup]:
        """What went of each table, or would; a failure is told and the next one goes on."""
        for location, key in sorted(self.seen.registered.items(), key=lambda item: (item[1], item[0])):
            yield self._told(location, key)
        for location in _DERIVED:
            yield self._told(location, location)

    def of_table(self, location: str, label: str) -> TableCleanup:
        """What went of one table."""
        return self._told(location, label)

    def _told(self, location: str, label: str) -> TableCleanup:
        try:
            if table_exists(self.ctx.ref(location, None)):
                return self._table(location, label)
            return TableCleanup(label, self._emptied(location))
        except OmniError as error:
            return TableCleanup(label, error=str(error))

    def _table(self, location: str, label: str) -> TableCleanup:
        doomed = self._doomed(location, self.seen.states, self.seen.heartbeats)
        if not any(doomed.values()):
            return TableCleanup(label)
        if not self.confirm and {None: sorted(versions_of(self.ctx.ref(location, None)))} == doomed:
            total = sum(file.size for file in self.ctx.objects.walk(location))
            return TableCleanup(label, total, len(doomed[None]))
        freed = self._freed(location, doomed)
        if self.confirm:
            doomed, total = self._remove(location, doomed)
            reach("cleanup.versions_removed")
            # Looked at again: what was written since, and what stays after all, keeps its files.
            left = [b for b in doomed if b is not None or table_exists(self.ctx.ref(location, None))]
            if not left:
                return TableCleanup(label, total + self._emptied(location), len(doomed[None]))
            freed -= self._needed(location, left)
        else:
            total = sum(self._sizes(location, doomed))
        total += sum(self._sweep(location, freed, [b for b in doomed if b is not None]))
        return TableCleanup(label, total, sum(len(versions) for versions in doomed.values()))

    def _doomed(
        self, location: str, states: Mapping[str | None, BranchState], heartbeats: tuple[Heartbeat, ...]
    ) -> Doomed:
        """The versions of main and of each fork that go."""
        refs = list_branches(self.ctx.ref(location, None))
        pins = self._pinned(states, heartbeats) if location not in _DERIVED else set()
        doomed: Doomed = {}
        for branch in (None, *refs):
            ref = self.ctx.ref(location, branch)
            points = {r.parent_version for r in refs.values() if r.parent_branch == branch}
            if location in _DERIVED:
                # Nobody pins these; an old handle must still find what it was read at.
                recorded: int | None = newest_number(ref)
                mine = {v for v, file in versions_of(ref).items() if file.modified_us >= self.seen.limit_us}
            else:
                is_dropped = branch is None and not _is_shown(states, location)
                recorded = None if is_dropped else _recorded(states.get(branch), location, branch)
                mine = {version for place, fork, version in pins if (place, fork) == (location, branch)}
            doomed[branch] = doomed_versions(versions_of(ref), mine, points, recorded, branch is not None)
        return doomed

    def _pinned(self, states: Mapping[str | None, BranchState], heartbeats: tuple[Heartbeat, ...]) -> set[Pinned]:
        """Every version that must stay because a kept commit or a living load needs it."""
        living = [h for h in heartbeats if h not in self.seen.dead]
        pins = {(pin.location, pin.table_branch, pin.version) for load in living for pin in load.pins}
        since_us = min((load.started_us for load in living), default=None)
        tagged = {tag.graph_commit_id for tag in list_tags(self.ctx.objects)}
        for branch, state in states.items():
            pins |= {(e.location, e.table_branch, e.table_version) for e in state.entries.values()}
            known = self._pins.get((branch, state.version))
            if known is None:
                kept = kept_commits(state.commits(), branch, self.limits, self.seen.at_us, tagged, since_us)
                known = self._pins[(branch, state.version)] = pinned_by(self._rows(state), kept)
            pins |= known
        return pins

    def _rows(self, state: BranchState) -> list[Row]:
        try:
            return self.ctx.manifest.rows(state)
        except OmniError:
            found = self.ctx.manifest.branch(state.branch) if state.branch is not None else None
            if state.branch is None or (found is not None and found.incarnation == state.incarnation):
                raise
            return []  # the branch was deleted since it was looked at

    def _freed(self, location: str, doomed: Doomed) -> set[str]:
        """What only doomed versions refer to, of main and of all forks."""
        needed: set[str] = set()
        freed: set[str] = set()
        for branch, versions in doomed.items():
            units = self._units(location, branch, versions)
            needed |= units.needed
            freed |= units.of_doomed
        return freed - needed

    def _units(self, location: str, branch: str | None, doomed: Collection[int]) -> Units:
        main = self.ctx.ref(location, None)
        fork = read_branch(main, branch) if branch is not None else None
        try:
            return units_without(self.ctx.ref(location, branch), doomed)
        except OmniError:
            if branch is None or (fork is not None and is_still(main, fork)):
                raise
            return Units(set(), set())  # the fork was deleted since they were listed

    def _needed(self, location: str, branches: Iterable[str | None]) -> set[str]:
        """What the versions there are now refer to."""
        return {unit for branch in branches for unit in self._units(location, branch, ()).needed}

    def _remove(self, location: str, doomed: Doomed) -> tuple[Doomed, int]:
        """Remove the versions still agreed on, while no branch can be made; those that went, and their bytes."""
        with ExitStack() as locks:
            control = locks.enter_context(self.ctx.locks.hold(layout.BRANCH_CONTROL_LOCK))
            for label in sorted(branch_label(b) for b, versions in doomed.items() if versions):
                locks.enter_context(self.ctx.locks.hold(branch_name(label)))
            waits = [s.key for s in pending_sidecars(self.ctx.objects) if doomed.get(s.branch)]
            if waits:
                raise Conflict(f"recovery pending: {waits[0]}", "Run cleanup again when it is settled.")
            self._pins.clear()
            again = self._doomed(location, live_states(self.ctx), tuple(list_heartbeats(self.ctx)))
            agreed = {b: sorted({*versions} & {*again.get(b, ())}) for b, versions in doomed.items()}
            total = sum(self._sizes(location, agreed))
            control.check()  # else a branch or tag may need what goes
            for branch, versions in agreed.items():
                remove_versions(self.ctx.ref(location, branch), versions)
        return agreed, total

    def _emptied(self, location: str) -> int:
        """The bytes of what is left of a dropped table that has no version any more; all of it goes."""
        files = [] if location in _DERIVED or _is_shown(self.seen.states, location) else self._files(location)
        if files and self.confirm:
            with self.ctx.locks.hold(layout.BRANCH_CONTROL_LOCK) as control, self.ctx.locks.hold(None):
                if _is_shown(live_states(self.ctx), location):
                    return 0
                files = self._files(location)
                control.check()
                if files:
                    self.ctx.objects.remove_tree(location)
        return sum(file.size for file in files)

    def _files(self, location: str) -> list[FoundFile]:
        """Every file of a table; none while it has a version or a fork."""
        main = self.ctx.ref(location, None)
        return [] if table_exists(main) or branch_files(main) else list(self.ctx.objects.walk(location))

    def _sizes(self, location: str, doomed: Doomed) -> Iterator[int]:
        for branch, versions in doomed.items():
            files = versions_of(self.ctx.ref(location, branch)) if versions else {}
            yield from (files[version].size for version in versions if version in files)

    def _sweep(self, location: str, freed: set[str], forks: list[str]) -> Iterator[int]:
        """The bytes of each chunk of files that go with the versions."""
        chunk: list[FoundFile] = []
        for file in self.ctx.objects.walk(location):
            if unit_of(owner_of(file.key.removeprefix(f"{location}/"), forks)[1]) in freed:
                chunk.append(file)
            if len(chunk) >= _CHUNK:
                yield self._deleted(chunk)
                chunk = []
        yield self._deleted(chunk)

    def _deleted(self, files: list[FoundFile]) -> int:
        if self.confirm:
            self.ctx.objects.delete_files([file.key for file in files])
        return sum(file.size for file in files)


def _is_shown(states: Mapping[str | None, BranchState], location: str) -> bool:
    """Whether a live branch has the table, under whatever name."""
    return any(entry.location == location for state in states.values() for entry in state.entries.values())


def _recorded(state: BranchState | None, location: str, branch: str | None) -> int:
    """The newest version of a table, or of a fork, that its own branch ever published; 0 when it did not."""
    if state is None:
        return 0
    groups = state.tables.groups.items()
    return max((group.version for (_, place, fork), group in groups if (place, fork) == (location, branch)), default=0)
