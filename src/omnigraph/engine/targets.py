"""What a reader may name: a branch, a commit, or the n-th first parent of either."""

from __future__ import annotations

import re
from dataclasses import dataclass

from omnigraph.base.errors import BadRequest, NotFound
from omnigraph.base.ids import is_ulid
from omnigraph.manifest.lineage import GraphCommit
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.manifest.store import BranchState, ManifestStore, branch_name

_TARGET = re.compile(r"(?P<name>[^~]+)(~(?P<steps>[0-9]+))?")


@dataclass(frozen=True)
class Found:
    """A commit and a branch through whose manifest it can be read."""

    commit: GraphCommit
    through: str | None


def snapshot_of(manifest: ManifestStore, target: str) -> Snapshot:
    name, steps = _parsed(target)
    state = _branch_state(manifest, name)
    if state is not None and steps == 0:
        return state.snapshot()
    found = _resolved(manifest, name, steps, state)
    return manifest.snapshot_at(found.through, found.commit.manifest_version, found.commit.manifest_branch)


def find_commit(manifest: ManifestStore, commit_id: str, first_branch: str | None) -> Found:
    """Looks on `first_branch`, then on every other branch."""
    others = [b for b in (None, *sorted(manifest.branches())) if b != first_branch]
    for branch in (first_branch, *others):
        for commit in reversed(manifest.state(branch).commits()):
            if commit.graph_commit_id == commit_id:
                return Found(commit, branch)
    raise NotFound(f"commit '{commit_id}' not found", "See omnigraph commit list.")


def _parsed(target: str) -> tuple[str, int]:
    matched = _TARGET.fullmatch(target.strip())
    if matched is None:
        raise BadRequest(f"'{target}' is not a target", "Use a branch, a commit id, or NAME~n.")
    return matched["name"], int(matched["steps"] or 0)


def _branch_state(manifest: ManifestStore, name: str) -> BranchState | None:
    branch = branch_name(name)
    if branch is not None and branch not in manifest.branches():
        return None
    return manifest.state(branch)


def _resolved(manifest: ManifestStore, name: str, steps: int, state: BranchState | None) -> Found:
    if state is not None and state.head is not None:
        found = Found(state.head, state.branch)
    elif is_ulid(name):
        found = find_commit(manifest, name, None)
    else:
        raise NotFound(f"'{name}' is neither a branch nor a commit", "See omnigraph branch list.")
    by_id = {c.graph_commit_id: c for c in manifest.state(found.through).commits()}
    commit = found.commit
    for _ in range(steps):
        if commit.parent_commit_id is None or commit.parent_commit_id not in by_id:
            raise NotFound(f"'{name}~{steps}' lies before the first commit")
        commit = by_id[commit.parent_commit_id]
    return Found(commit, found.through)


def refuse_pinned(manifest: ManifestStore, source: str) -> None:
    """A branch starts at a branch: refuse a commit id or `NAME~n` as its source."""
    name, steps = _parsed(source)
    if steps or (is_ulid(name) and _branch_state(manifest, name) is None):
        raise BadRequest("creating branches from pinned snapshots is not supported", "Name a branch as the source.")
