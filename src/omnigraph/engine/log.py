"""The history of a graph as people look at it: commits with the branches and tags that name them."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from omnigraph.base.errors import BadRequest, NotFound
from omnigraph.base.moments import Moment, time_us
from omnigraph.manifest.branches import visible_branches
from omnigraph.manifest.lineage import GraphCommit
from omnigraph.manifest.store import BranchState, ManifestStore, branch_label, branch_name
from omnigraph.manifest.tags import list_tags

T = TypeVar("T")


@dataclass(frozen=True)
class LogEntry:
    """A commit, the branches whose head it is, and its tags."""

    commit: GraphCommit
    branches: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class CommitFilter:
    """Which commits are wanted; what is None is not asked about. Both moments count themselves."""

    actor: str | None = None
    kind: str | None = None
    since: Moment | None = None
    until: Moment | None = None

    def chosen(self, commits: Iterable[GraphCommit]) -> list[GraphCommit]:
        """Those that pass every test, in the order they came."""
        since = None if self.since is None else time_us(self.since)
        until = None if self.until is None else time_us(self.until)
        return [
            commit
            for commit in commits
            if (self.actor is None or (commit.actor_id or "") == self.actor)
            and (self.kind is None or (commit.kind or "") == self.kind)
            and (since is None or commit.created_at >= since)
            and (until is None or commit.created_at <= until)
        ]


def at_most(limit: int | None, found: list[T]) -> list[T]:
    if limit is not None and limit < 0:
        raise BadRequest(f"a limit of {limit} makes no sense", "Use a number that is not negative, or none.")
    return found[:limit]


def branch_history(state: BranchState) -> list[GraphCommit]:
    """The commits of a branch and those it inherited, newest first."""
    return sorted(state.commits(), key=lambda commit: commit.order, reverse=True)


def branch_log(manifest: ManifestStore, branch: str | None) -> list[LogEntry]:
    """The history of one branch, newest first."""
    state = manifest.state(branch)
    return _labelled(manifest, branch_history(state), {**_states(manifest), branch_label(branch): state})


def whole_log(manifest: ManifestStore, branch: str | None = None) -> list[LogEntry]:
    """The commits of every branch, children before parents; with `branch`, only those its head descends from."""
    states = _states(manifest)
    known = {commit.graph_commit_id: commit for state in states.values() for commit in state.commits()}
    if branch is not None:
        head = manifest.state(branch_name(branch)).head
        known = _ancestors(known, head)
    return _labelled(manifest, newest_first(known.values()), states)


def newest_first(commits: Iterable[GraphCommit]) -> list[GraphCommit]:
    """Children before parents, otherwise the newest first, whatever the clocks said. Pure."""
    known = {commit.graph_commit_id: commit for commit in commits}
    waiting = dict.fromkeys(known, 0)
    for commit in known.values():
        for parent in parents_of(commit):
            if parent in waiting:
                waiting[parent] += 1
    ready = [_by_age(known[name]) for name, children in waiting.items() if not children]
    heapq.heapify(ready)
    found = []
    while ready:
        commit = known[heapq.heappop(ready)[-1]]
        found.append(commit)
        for parent in parents_of(commit):
            if parent in waiting:
                waiting[parent] -= 1
                if not waiting[parent]:
                    heapq.heappush(ready, _by_age(known[parent]))
    return found


def parents_of(commit: GraphCommit) -> tuple[str, ...]:
    """The parents, the first one first."""
    both = dict.fromkeys((commit.parent_commit_id, commit.merged_parent_commit_id))
    return tuple(parent for parent in both if parent is not None)


def _by_age(commit: GraphCommit) -> tuple[int, int, str]:
    return (-commit.created_at, -commit.manifest_version, commit.graph_commit_id)


def _ancestors(known: Mapping[str, GraphCommit], head: GraphCommit | None) -> dict[str, GraphCommit]:
    found: dict[str, GraphCommit] = {}
    ahead = [] if head is None else [head]
    while ahead:
        commit = ahead.pop()
        if commit.graph_commit_id not in found:
            found[commit.graph_commit_id] = commit
            ahead += [known[parent] for parent in parents_of(commit) if parent in known]
    return found


def _states(manifest: ManifestStore) -> dict[str, BranchState]:
    """Every branch that is still there when it is read, main first."""
    found: dict[str, BranchState] = {}
    for label in visible_branches(manifest):
        try:
            found[label] = manifest.state(branch_name(label))
        except NotFound:
            if manifest.branch(label) is not None:
                raise
    return found


def _labelled(
    manifest: ManifestStore, commits: Iterable[GraphCommit], states: Mapping[str, BranchState]
) -> list[LogEntry]:
    heads: dict[str | None, list[str]] = {}
    for label, state in states.items():
        heads.setdefault(state.head_id, []).append(label)
    tags: dict[str, list[str]] = {}
    for tag in list_tags(manifest.objects):
        tags.setdefault(tag.graph_commit_id, []).append(tag.name)
    return [
        LogEntry(c, tuple(heads.get(c.graph_commit_id, ())), tuple(tags.get(c.graph_commit_id, ()))) for c in commits
    ]
