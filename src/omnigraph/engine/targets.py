"""What a reader may name: a branch, a tag, a commit, the n-th first parent of one of them, or a time on a branch."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from omnigraph.base.errors import BadRequest, NotFound
from omnigraph.base.ids import is_ulid
from omnigraph.base.moments import Moment, time_us
from omnigraph.commit.context import CommitContext
from omnigraph.commit.tags import make_tag
from omnigraph.lang.diagnostics import did_you_mean
from omnigraph.manifest.branches import visible_branches
from omnigraph.manifest.lineage import GraphCommit
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.manifest.store import BranchState, ManifestStore, branch_label, branch_name, refuse_internal
from omnigraph.manifest.tags import Tag, read_tag, tag_names

_TARGET = re.compile(r"(?P<name>[A-Za-z0-9._/-]{1,128})(~(?P<steps>[0-9]{1,9}))?")


@dataclass(frozen=True)
class Found:
    """A commit and a branch through whose manifest it can be read."""

    commit: GraphCommit
    through: str | None


def snapshot_of(manifest: ManifestStore, target: str, as_of: Moment | None = None) -> Snapshot:
    """The state a target names; with `as_of` the target is a branch, as it was then."""
    if as_of is None:
        name, steps = _parsed(target)
        state = _branch_state(manifest, name)
        if state is not None and steps == 0:
            return state.snapshot()
    return snapshot_at(manifest, resolve(manifest, target, as_of))


def snapshot_at(manifest: ManifestStore, found: Found) -> Snapshot:
    return manifest.snapshot_at(found.through, found.commit.manifest_version, found.commit.manifest_branch)


def resolve(manifest: ManifestStore, target: str, as_of: Moment | None = None) -> Found:
    """The commit a target names."""
    if as_of is not None:
        return _as_of(manifest, target, as_of)
    name, steps = _parsed(target)
    found = _named(manifest, name)
    by_id = {c.graph_commit_id: c for c in manifest.state(found.through).commits()} if steps else {}
    commit = found.commit
    for _ in range(steps):
        if commit.parent_commit_id is None or commit.parent_commit_id not in by_id:
            raise NotFound(f"'{name}~{steps}' lies before the first commit", "See omnigraph log for the history.")
        commit = by_id[commit.parent_commit_id]
    return Found(commit, found.through)


def find_commit(manifest: ManifestStore, commit_id: str, first_branch: str | None) -> Found:
    """Looks on `first_branch`, then on every other branch."""
    for branch in _searched(manifest, first_branch):
        for commit in reversed(_commits(manifest, branch)):
            if commit.graph_commit_id == commit_id:
                return Found(commit, branch)
    raise NotFound(f"commit '{commit_id}' not found", "See omnigraph commit list.")


def _searched(manifest: ManifestStore, first: str | None) -> Iterator[str | None]:
    """Every branch, `first` before the others are even listed."""
    yield first
    yield from (branch for branch in (None, *sorted(manifest.branches())) if branch != first)


def _commits(manifest: ManifestStore, branch: str | None) -> list[GraphCommit]:
    """The commits of a branch; none if it was deleted since its name was read."""
    try:
        return manifest.state(branch).commits()
    except NotFound:
        if branch is None or manifest.branch(branch) is not None:
            raise
        return []


def tag_target(ctx: CommitContext, name: str, target: str, actor: str | None, message: str | None) -> Tag:
    """A tag of the commit that a target names once nothing of it can go any more."""

    def named() -> tuple[GraphCommit, Snapshot]:
        found = resolve(ctx.manifest, target)
        return found.commit, snapshot_at(ctx.manifest, found)

    resolve(ctx.manifest, target)
    return make_tag(ctx, name, named, actor, message)


def first_parents(commits: Sequence[GraphCommit], head: GraphCommit | None) -> Iterator[GraphCommit]:
    """The first-parent chain from `head` on, newest first, as far as it lies among the commits."""
    by_id = {c.graph_commit_id: c for c in commits}
    commit = head
    while commit is not None:
        yield commit
        commit = by_id.get(commit.parent_commit_id or "")


def refuse_pinned(manifest: ManifestStore, source: str) -> None:
    """A branch starts at a branch: refuse a tag, a commit id or `NAME~n` as its source."""
    name, steps = _parsed(source)
    pinned = is_ulid(name) or _is_tag(manifest, name)
    if steps or (pinned and _branch_state(manifest, name) is None):
        raise BadRequest("creating branches from pinned snapshots is not supported", "Name a branch as the source.")


def _parsed(target: str) -> tuple[str, int]:
    matched = _TARGET.fullmatch(target.strip())
    if matched is None:
        raise BadRequest(f"'{target}' is not a target", "Use a branch, a tag, a commit id, or NAME~n.")
    return matched["name"], int(matched["steps"] or 0)


def _branch_state(manifest: ManifestStore, name: str) -> BranchState | None:
    branch = branch_name(name)
    refuse_internal(branch)
    if branch is not None and manifest.branch(branch) is None:
        return None
    return manifest.state(branch)


def _is_tag(manifest: ManifestStore, name: str) -> bool:
    return branch_name(name) is not None and read_tag(manifest.objects, name) is not None


def _named(manifest: ManifestStore, name: str) -> Found:
    state = _branch_state(manifest, name)
    if state is not None and state.head is not None:
        return Found(state.head, state.branch)
    if is_ulid(name):
        return find_commit(manifest, name, None)
    tag = read_tag(manifest.objects, name)
    if tag is not None:
        return find_commit(manifest, tag.graph_commit_id, branch_name(tag.branch))
    known = [*visible_branches(manifest), *tag_names(manifest.objects)]
    raise NotFound(
        f"'{name}' is neither a branch nor a commit nor a tag",
        did_you_mean(name, known) or "See omnigraph branch list and omnigraph tag list.",
    )


def _as_of(manifest: ManifestStore, label: str, as_of: Moment) -> Found:
    """The newest commit that was on the branch's first-parent chain at that time; the moment itself counts."""
    latest = time_us(as_of)
    branch = branch_name(label)
    refuse_internal(branch)
    state = manifest.state(branch)
    for commit in first_parents(state.commits(), state.head):
        if commit.created_at <= latest:
            return Found(commit, branch)
    raise NotFound(
        f"branch '{branch_label(branch)}' had no commit yet at {as_of}", "See omnigraph commit list for its first one."
    )
