"""Which commits are kept, and which table versions nobody needs then. Pure.

Holds:
  1. The head of every branch and the commit it started from are kept, whatever the limits say.
  2. Every version that a kept commit pins is kept, so a kept commit is readable as a whole.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from omnigraph.manifest.lineage import GraphCommit
from omnigraph.manifest.rows import Row
from omnigraph.manifest.snapshot import TableState

Pinned = tuple[str, str | None, int]
"""A table version: location, fork (None: main), number."""


@dataclass(frozen=True)
class Limits:
    """A commit is kept when either limit keeps it; None keeps none by itself."""

    keep: int | None
    older_than: timedelta | None

    def keeps(self, commit: GraphCommit, age: int, at_us: int) -> bool:
        """`age`: how many commits of the branch are newer."""
        if self.keep is not None and age < self.keep:
            return True
        if self.older_than is None:
            return False
        return commit.created_at > at_us - self.older_than // timedelta(microseconds=1)


def kept_commits(
    chain: Sequence[GraphCommit],
    branch: str | None,
    limits: Limits,
    at_us: int,
    tagged: Collection[str] = (),
    since_us: int | None = None,
) -> list[GraphCommit]:
    """The commits of a branch that stay readable, oldest first; `chain` is its history, oldest first.

    `since_us`: when the oldest living load started. It reads what was a head at that time or later.
    """
    kept = []
    for at, commit in enumerate(chain):
        newer = chain[at + 1] if at + 1 < len(chain) else None
        is_start = commit.manifest_branch != branch and newer is not None and newer.manifest_branch == branch
        was_read = since_us is not None and newer is not None and newer.created_at >= since_us
        if (
            newer is None
            or is_start
            or was_read
            or commit.graph_commit_id in tagged
            or limits.keeps(commit, len(chain) - 1 - at, at_us)
        ):
            kept.append(commit)
    return kept


def pinned_by(rows: Iterable[Row], commits: Iterable[GraphCommit]) -> set[Pinned]:
    """The table versions that commits of one branch show, from the rows of its manifest."""
    waiting = sorted(rows, key=lambda row: row.created_at_version)
    tables, at = TableState(), 0
    pinned: set[Pinned] = set()
    for commit in sorted(commits, key=lambda c: c.manifest_version):
        start = at
        while at < len(waiting) and waiting[at].created_at_version <= commit.manifest_version:
            at += 1
        tables.apply(waiting[start:at])
        entries = tables.resolve(commit.manifest_branch).values()
        pinned |= {(e.location, e.table_branch, e.table_version) for e in entries}
    return pinned


def doomed_versions(
    existing: Collection[int],
    pinned: Collection[int],
    fork_points: Collection[int],
    recorded: int | None,
    is_fork: bool,
) -> list[int]:
    """The versions of a table, or of a fork of it, that go.

    `recorded`: the newest version its branch records. What lies above may be the late effect of a sleeping writer,
    which is healed by looking at every one of those versions. None: the table was dropped everywhere, nobody heals or
    writes it any more, and only what is pinned stays. The first version of a fork says what it came from.
    """
    if recorded is None:
        return sorted({*existing} - {*pinned} - {*fork_points})
    stay = {*pinned, *fork_points, recorded}
    if is_fork and existing:
        stay.add(min(existing))
    return [version for version in sorted(existing) if version < recorded and version not in stay]
