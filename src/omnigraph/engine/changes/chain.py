"""The first-parent chain of a branch, oldest first, with the tables every commit shows.

Holds for every Chain: the manifest is read once, however many commits are looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from omnigraph.engine.changes.pairs import Entries
from omnigraph.engine.view import Current
from omnigraph.manifest.lineage import GraphCommit
from omnigraph.manifest.rows import Row
from omnigraph.manifest.snapshot import SubTableEntry, TableState
from omnigraph.manifest.store import BranchState, ManifestStore


@dataclass(frozen=True)
class Shown:
    """A commit and the tables it shows."""

    commit: GraphCommit
    entries: Entries


class Chain:
    """The history of a branch at one moment."""

    def __init__(self, manifest: ManifestStore, state: BranchState, current: Current) -> None:
        self.state = state
        self.current = current
        self._manifest = manifest
        self.commits = _first_parents(state)

    @property
    def known_keys(self) -> set[str]:
        """Every name a table has, or ever had on this branch."""
        return {*self.state.tables.locations, *self.current.entries}

    @cached_property
    def _places(self) -> dict[str, int]:
        return {commit.graph_commit_id: place for place, commit in enumerate(self.commits)}

    def place(self, commit_id: str) -> int | None:
        """Where on the chain a commit stands, genesis being 0; None if it is not on it."""
        return self._places.get(commit_id)

    @property
    def genesis_id(self) -> str:
        return self.commits[0].graph_commit_id if self.commits else ""

    @cached_property
    def _rows(self) -> list[Row]:
        return sorted(self._manifest.rows(self.state), key=lambda row: row.created_at_version)

    def shown(self, first: int, last: int) -> Iterator[Shown]:
        """The commits from one place to another, both included, oldest first."""
        if not self.state.table.has_stable_row_ids:
            for commit in self.commits[first : last + 1]:
                branch = self.state.branch
                found = self._manifest.snapshot_at(branch, commit.manifest_version, commit.manifest_branch)
                yield Shown(commit, found.tables)
            return
        tables, at = TableState(), 0
        for commit in self.commits[first : last + 1]:
            start = at
            while at < len(self._rows) and self._rows[at].created_at_version <= commit.manifest_version:
                at += 1
            tables.apply(self._rows[start:at])
            yield Shown(commit, tables.resolve(commit.manifest_branch))

    def table_moves(self, location: str) -> list[tuple[int, tuple[str, SubTableEntry] | None]]:
        """The places at which the chain shows another state of a table, and that state, oldest first."""
        moves: list[tuple[int, tuple[str, SubTableEntry] | None]] = []
        tables, at = TableState(), 0
        last: tuple[str, str | None, int] | None = None
        for place, commit in enumerate(self.commits):
            start = at
            while at < len(self._rows) and self._rows[at].created_at_version <= commit.manifest_version:
                at += 1
            part = self._rows[start:at]
            tables.apply(part)
            if not any(row.table_key is not None and row.location in (location, None) for row in part):
                continue
            entries = tables.resolve(commit.manifest_branch).items()
            found = next(((key, entry) for key, entry in entries if entry.location == location), None)
            now = None if found is None else (found[0], found[1].table_branch, found[1].table_version)
            if now != last:
                moves.append((place, found))
                last = now
        return moves


def _first_parents(state: BranchState) -> list[GraphCommit]:
    by_id = {commit.graph_commit_id: commit for commit in state.commits()}
    chain: list[GraphCommit] = []
    commit = state.head
    while commit is not None:
        chain.append(commit)
        commit = by_id.get(commit.parent_commit_id or "")
    chain.reverse()
    return chain
