"""The commits that a merge looks at, and the tables as each of them shows them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from omnigraph.base.errors import Conflict, GraphMoved, NotFound
from omnigraph.base.ids import is_ulid
from omnigraph.engine.merge.base import merge_base, missing_parents
from omnigraph.engine.targets import find_commit, first_parents, resolve
from omnigraph.manifest import layout
from omnigraph.manifest.lineage import GraphCommit
from omnigraph.manifest.snapshot import SubTableEntry
from omnigraph.manifest.store import BranchState, ManifestStore, branch_label

Entries = Mapping[str, SubTableEntry]


@dataclass
class History:
    """Commits of several branches by their id, and for each a branch through whose manifest it can be read."""

    manifest: ManifestStore
    commits: dict[str, GraphCommit] = field(default_factory=dict)
    _through: dict[str, str | None] = field(default_factory=dict)

    @staticmethod
    def of(manifest: ManifestStore, *states: BranchState) -> History:
        """The history of these branches, with what they merged from others as far as it is still there."""
        found = History(manifest)
        for state in states:
            found._add(state)
        heads = [state.head_id for state in states if state.head_id is not None]
        others = [b for b in (None, *sorted(manifest.branches())) if b not in {state.branch for state in states}]
        for branch in others:
            if not missing_parents(found.commits, heads):
                break
            if branch is None or not branch.startswith(layout.SCHEMA_LOCK_BRANCH):
                found._add_if_there(branch)
        return found

    def _add(self, state: BranchState) -> None:
        for commit in state.commits():
            self.commits.setdefault(commit.graph_commit_id, commit)
            self._through.setdefault(commit.graph_commit_id, state.branch)

    def _add_if_there(self, branch: str | None) -> None:
        try:
            self._add(self.manifest.state(branch))
        except (NotFound, GraphMoved):
            return

    def base_of(self, ours: BranchState, theirs: BranchState) -> GraphCommit:
        name = merge_base(self.commits, ours.head_id or "", theirs.head_id or "")
        if name is None:
            raise Conflict(
                f"'{branch_label(theirs.branch)}' and '{branch_label(ours.branch)}' have no commit in common",
                "Nothing was written. Unrelated histories cannot be merged.",
            )
        return self.commits[name]

    def entries_at(self, commit_id: str) -> Entries:
        """The tables as a commit shows them."""
        commit = self.commits[commit_id]
        through = self._through[commit_id]
        return self.manifest.snapshot_at(through, commit.manifest_version, commit.manifest_branch).tables


def first_parent_ids(state: BranchState) -> list[str]:
    """The head of a branch, its first parent, that one's first parent and so on."""
    return [commit.graph_commit_id for commit in first_parents(state.commits(), state.head)]


def named_commit(manifest: ManifestStore, name: str, branch: str | None) -> GraphCommit:
    """The commit that a user named by its id, a tag, or `NAME~n`."""
    name = name.strip()
    return (find_commit(manifest, name, branch) if is_ulid(name) else resolve(manifest, name)).commit


def refuse_schema_apply(manifest: ManifestStore) -> None:
    if layout.SCHEMA_LOCK_BRANCH in manifest.branches():
        raise Conflict("a schema apply is running", "Nothing was written. Retry when it is done.")
