"""What a read looks at: a branch now, or a commit that a snapshot id, a target or a time names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.failures import UsageMistake

if TYPE_CHECKING:
    from omnigraph.graph import Graph
    from omnigraph.manifest.snapshot import Snapshot

# Every reading command takes these three beside --branch.
SnapshotOption = Annotated[str | None, typer.Option("--snapshot", metavar="ID", help="As of this commit.")]
AtOption = Annotated[str | None, typer.Option("--at", metavar="TARGET", help="A tag, commit id, branch, or NAME~n.")]
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
            return _pinned(graph.snapshot_of(branch, as_of=self.as_of))
        return Picked(graph.snapshot(branch), {"branch": branch})

    def named(self, graph: Graph, default_branch: str) -> tuple[str | None, Snapshot | None]:
        """The branch or the snapshot as a read of the graph takes them; one of the two is None."""
        if self.snapshot is None and self.at is None and self.as_of is None:
            return (self.branch if self.branch is not None else default_branch), None
        return None, self.pick(graph, default_branch).snapshot


def _pinned(snapshot: Snapshot) -> Picked:
    return Picked(snapshot, {"snapshot": snapshot.graph_commit_id or f"version {snapshot.version}"})
