"""What a read looks at: a branch now, or a commit that a snapshot id, a target or a time names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.base.errors import NotFound
from omnigraph.cli.failures import UsageMistake
from omnigraph.cli.times import time_us

if TYPE_CHECKING:
    from omnigraph.graph import Graph
    from omnigraph.manifest.lineage import GraphCommit
    from omnigraph.manifest.snapshot import Snapshot

SnapshotOption = Annotated[str | None, typer.Option("--snapshot", metavar="ID", help="As of this commit.")]
AtOption = Annotated[str | None, typer.Option("--at", metavar="TARGET", help="A branch, a commit id, or NAME~n.")]
AsOfOption = Annotated[str | None, typer.Option("--as-of", metavar="TIME", help="As the branch was at this time.")]


@dataclass(frozen=True)
class Picked:
    """A snapshot, and how a result names it: `{"branch": name}` or `{"snapshot": id}`."""

    snapshot: Snapshot
    target: dict[str, str]

    @property
    def branch(self) -> str:
        return self.snapshot.branch or "main"


@dataclass(frozen=True)
class TargetOptions:
    branch: str | None = None
    snapshot: str | None = None
    at: str | None = None
    as_of: str | None = None

    def __post_init__(self) -> None:
        pinned = [
            option
            for option, given in (("--snapshot", self.snapshot), ("--at", self.at), ("--as-of", self.as_of))
            if given is not None
        ]
        if len(pinned) > 1:
            raise UsageMistake(f"{' and '.join(pinned)} cannot be given together", "Name one moment.")
        if self.branch is not None and pinned and self.as_of is None:
            raise UsageMistake(f"--branch and {pinned[0]} cannot be given together", "A commit needs no branch.")

    def pick(self, graph: Graph, default_branch: str) -> Picked:
        """The snapshot these options name."""
        if self.snapshot is not None:
            return _pinned(graph.snapshot_of(graph.get_commit(self.snapshot).graph_commit_id))
        if self.at is not None:
            return _pinned(graph.snapshot_of(self.at))
        branch = self.branch if self.branch is not None else default_branch
        if self.as_of is not None:
            commit = commit_as_of(graph.list_commits(branch), self.as_of, branch)
            return _pinned(graph.snapshot_at_version(commit.manifest_version, branch))
        return Picked(graph.snapshot(branch), {"branch": branch})

    def named(self, graph: Graph, default_branch: str) -> tuple[str | None, str | None]:
        """The branch or the snapshot as a read of the graph takes them; one of the two is None."""
        if self.snapshot is None and self.at is None and self.as_of is None:
            return (self.branch if self.branch is not None else default_branch), None
        return None, self.pick(graph, default_branch).target["snapshot"]


def commit_as_of(newest_first: Sequence[GraphCommit], time: str, branch: str) -> GraphCommit:
    """The newest commit on the branch's first-parent chain that was there at `time`."""
    latest = time_us(time)
    for commit in _first_parents(newest_first):
        if commit.created_at <= latest:
            return commit
    raise NotFound(f"branch '{branch}' had no commit yet at {time}", "See omnigraph commit list for its first one.")


def _first_parents(newest_first: Sequence[GraphCommit]) -> Iterator[GraphCommit]:
    by_id = {c.graph_commit_id: c for c in newest_first}
    commit = newest_first[0] if newest_first else None
    while commit is not None:
        yield commit
        commit = by_id.get(commit.parent_commit_id or "")


def _pinned(snapshot: Snapshot) -> Picked:
    return Picked(snapshot, {"snapshot": snapshot.graph_commit_id or f"version {snapshot.version}"})
