"""Publishes a commit: the only place where a graph changes for its readers.

Holds at every return:
  1. Either every table of the commit is visible, or none is.
  2. The branch head moved by exactly one commit whose parent is the head that was checked, or did not move.
  3. A second call with the same commit id finds the first one's commit and adds nothing.
  4. A name shows one table: a pin is for the one it shows, or for one that the same commit puts in its place.
The compare-and-swap is a strict append on the manifest's head: Lance refuses it when a commit landed in between.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from omnigraph.base.clock import now_us
from omnigraph.base.errors import (
    Conflict,
    OmniError,
    PreconditionFailed,
    RowLevelCasContention,
)
from omnigraph.manifest.lineage import GraphCommit
from omnigraph.manifest.migrations import migrate_internal_schema
from omnigraph.manifest.rows import Changes, CommitIntent, Pin, Row, build_rows, to_arrow
from omnigraph.manifest.snapshot import Entries, first_moved
from omnigraph.manifest.store import BranchState, ManifestStore, branch_label
from omnigraph.storage.durable import sync_whole
from omnigraph.storage.failures import CommitLost
from omnigraph.storage.ledger import append_if_head
from omnigraph.storage.predicates import sql_string

PUBLISHER_RETRY_BUDGET = 5
_log = logging.getLogger("omnigraph.manifest")


class HeadMoved(Conflict):
    """The branch head is not the commit this publish was checked against."""


class BranchReplaced(Conflict):
    """The branch was deleted, and another one has its name."""


class LeaseLost(Conflict):
    """A later holder of the branch lock has published."""


@dataclass(frozen=True)
class Precondition:
    """`if_commit` is the caller's wish; `parent` is the head the write was re-checked against, on that very branch."""

    if_commit: str | None = None
    parent: str | None = None
    bind_parent: bool = False
    incarnation: str | None = None


@dataclass(frozen=True)
class Published:
    commit: GraphCommit
    state: BranchState
    already: bool = False


class ManifestBatchPublisher:
    """Makes the pins of one operation visible on one branch."""

    def __init__(self, manifest: ManifestStore) -> None:
        self._manifest = manifest

    def publish(
        self,
        branch: str | None,
        changes: Changes,
        relied_on: Entries,
        intent: CommitIntent,
        precondition: Precondition | None = None,
        seen_version: int = 0,
        seen: BranchState | None = None,
    ) -> Published:
        """`relied_on`: tables that must still be shown as they are here; one at version 0 must not be there.

        `seen_version`: a manifest version older than the operation; its commit cannot lie before it.

        `seen`: the branch as it was just read. If it is out of date the append is refused, and the branch read again.
        """
        condition = precondition or Precondition()
        failure: OmniError | None = None
        for _ in range(PUBLISHER_RETRY_BUDGET):
            state, seen = seen or migrate_internal_schema(self._manifest, branch), None
            landed = find_commit(state, intent.graph_commit_id, seen_version)
            if landed is not None:
                return _found(landed, state)
            check(state, changes, relied_on, intent, condition)
            rows = self._rows(state, changes, intent)
            try:
                table = append_if_head(state.table, to_arrow(rows), {"omnigraph.operation_id": intent.operation_id})
            except CommitLost as error:
                failure = error
                continue
            except OmniError as error:
                _log.warning("publish of %s is unclear, looking again: %s", intent.graph_commit_id, error)
                self._manifest.forget(branch)
                failure = error
                continue
            after = self._manifest.adopt(state, table, rows)
            commit = after.head
            assert commit is not None
            return Published(commit, after)
        state = self._manifest.state(branch)
        landed = find_commit(state, intent.graph_commit_id, seen_version)
        if landed is not None:
            return _found(landed, state)
        if failure is None or isinstance(failure, CommitLost):
            raise RowLevelCasContention(branch=branch_label(branch), attempts=PUBLISHER_RETRY_BUDGET)
        raise failure

    def _rows(self, state: BranchState, changes: Changes, intent: CommitIntent) -> list[Row]:
        head = state.head
        created_at = max(now_us(), head.created_at + 1 if head else 0)
        return build_rows(_only_new(state, changes), intent, head.graph_commit_id if head else None, created_at)


def _found(landed: GraphCommit, state: BranchState) -> Published:
    """A commit that is there before we knew: whoever published it may not have come to sync it."""
    sync_whole(state.table)
    return Published(landed, state, already=True)


def find_commit(state: BranchState, graph_commit_id: str, seen_version: int = 0) -> GraphCommit | None:
    """The commit with this id among those published after `seen_version`."""
    return next((c for c in state.commits_since(seen_version) if c.graph_commit_id == graph_commit_id), None)


def check(
    state: BranchState, changes: Changes, relied_on: Entries, intent: CommitIntent, condition: Precondition
) -> None:
    """Refuse unless the branch is as the caller expects it."""
    if condition.incarnation is not None and state.incarnation != condition.incarnation:
        raise BranchReplaced(
            f"branch '{branch_label(state.branch)}' was deleted and created again",
            "Nothing was written. Read the branch again and retry.",
        )
    moved = first_moved(state.entries, relied_on)
    if moved is not None:
        raise moved
    _refuse_second_places(state.entries, changes)
    head = state.head
    if condition.if_commit is not None and state.head_id != condition.if_commit:
        raise PreconditionFailed(condition.if_commit, state.head_id or "")
    if condition.bind_parent and state.head_id != condition.parent:
        raise HeadMoved(f"branch '{branch_label(state.branch)}' moved from {condition.parent} to {state.head_id}")
    token = intent.lock_token
    if head is not None and token is not None and head.lock_token is not None and head.lock_token > token:
        raise LeaseLost(f"branch '{branch_label(state.branch)}' was locked by a later writer")


def _refuse_second_places(entries: Entries, changes: Changes) -> None:
    """A name that shows two tables at once is one that nobody can read any more."""
    registered = {(r.table_key, r.location) for r in changes.registrations}
    hidden = {(t.table_key, t.location) for t in changes.tombstones}
    for pin in changes.pins:
        shown = entries.get(pin.table_key)
        if shown is not None and shown.location == pin.location:
            continue
        if (pin.table_key, pin.location) not in registered or not (
            shown is None or (pin.table_key, shown.location) in hidden
        ):
            raise Conflict(
                f"{pin.table_key} does not lie at {pin.location}",
                "Nothing was written. Read the branch again and retry.",
            )


def _only_new(state: BranchState, changes: Changes) -> Changes:
    """Rows are insert-only: leave out what the manifest says already, refuse what contradicts it."""
    registrations = tuple(
        r for r in changes.registrations if r.location not in state.tables.locations.get(r.table_key, [])
    )
    tombstones = tuple(
        # A later one at the same place hides at least as much; the same row must not be inserted twice.
        t
        for t in changes.tombstones
        if state.tables.tombstones.get((t.table_key, t.location), -1) < t.version
    )
    pins = tuple(p for p in changes.pins if not _already_pinned(state, p))
    return Changes(pins, registrations, tombstones)


def _already_pinned(state: BranchState, pin: Pin) -> bool:
    group = state.tables.groups.get((pin.table_key, pin.location, pin.table_branch))
    if group is None or pin.version > group.version:
        return False
    key = f"table_version:{pin.table_key}@{pin.location}@{pin.table_branch or 'main'}@{pin.version:020d}"
    stored = state.table.read(["row_count"], f"object_id = {sql_string(key)}").column("row_count").to_pylist()
    if stored and stored[0] == pin.row_count:
        return True
    raise Conflict(
        f"{pin.table_key} is pinned at version {group.version} already; version {pin.version} contradicts it"
    )
