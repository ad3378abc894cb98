"""Tags are made and removed here, under the lock that branches are made under.

Holds at every return:
  1. A tag and a live branch never share a name: each is made under that lock, and looks whether it still had it.
  2. What a new tag names was readable as a whole when it was made, and no cleanup or branch deletion takes it since.
  3. A tag is there as a whole or not at all, and never names another commit.
"""

from __future__ import annotations

from collections.abc import Callable

from omnigraph.base.clock import now_us
from omnigraph.base.errors import Conflict, NotFound, Reclaimed
from omnigraph.base.failpoints import reach
from omnigraph.commit.context import CommitContext
from omnigraph.commit.plan import check_annotations
from omnigraph.manifest import layout
from omnigraph.manifest.lineage import GraphCommit
from omnigraph.manifest.snapshot import Snapshot, reconstruct
from omnigraph.manifest.store import BranchState, branch_label
from omnigraph.manifest.tags import Tag, checked_tag_name, list_tags, read_tag, tag_key, tag_names
from omnigraph.storage.objects import own_etag
from omnigraph.storage.tables import has_version

_FOR_GOOD = "A tag never moves. Choose another name, or delete it first."
Named = tuple[GraphCommit, Snapshot]


def make_tag(
    ctx: CommitContext, name: str, named: Callable[[], Named], actor: str | None = None, message: str | None = None
) -> Tag:
    """A name for the commit that `named` tells; it is asked when nothing can be collected or deleted any more."""
    name = checked_tag_name(name)
    check_annotations(actor, message, {})
    with ctx.locks.hold(layout.BRANCH_CONTROL_LOCK) as lock:
        refuse_branch_name(ctx, name)
        _refuse_tag_name(ctx, name)
        commit, snapshot = named()
        _refuse_reclaimed(ctx, snapshot)
        branch = branch_label(commit.manifest_branch)
        tag = Tag(name, commit.graph_commit_id, branch, actor, message, now_us())
        reach("tag_create.pre_put")
        key, data = tag_key(name), tag.to_bytes()
        if ctx.objects.put_if_absent(key, data) is None and own_etag(ctx.objects, key, data) is None:
            raise Conflict(f"tag '{name}' already exists", _FOR_GOOD)
        reach("tag_create.post_put")
        try:
            lock.check()
        except Conflict:
            # Somebody else may have made a branch of this name, or collected the commit, without seeing the tag.
            ctx.objects.delete(key)
            raise
    return tag


def remove_tag(ctx: CommitContext, name: str) -> None:
    """Remove a tag, one that cannot be read too; the commit stays, and may be collected from now on."""
    name = name.strip()
    with ctx.locks.hold(layout.BRANCH_CONTROL_LOCK):
        if not name or not ctx.objects.exists(tag_key(name)):
            raise NotFound(f"tag '{name}' not found", "See omnigraph tag list.")
        reach("tag_delete.pre_delete")
        ctx.objects.delete(tag_key(name))
        reach("tag_delete.post_delete")


def refuse_branch_name(ctx: CommitContext, name: str) -> None:
    if name in ctx.manifest.branches():
        raise Conflict(f"branch '{name}' already exists", "A tag and a branch never share a name.")


def refuse_tag_name(ctx: CommitContext, name: str) -> None:
    """For a branch that is to be made."""
    if ctx.objects.exists(tag_key(name)):
        raise Conflict(f"tag '{name}' already exists", "A tag and a branch never share a name.")


def _refuse_tag_name(ctx: CommitContext, name: str) -> None:
    found = read_tag(ctx.objects, name)
    if found is not None:
        raise Conflict(f"tag '{name}' already exists at {found.graph_commit_id}", _FOR_GOOD)
    clash = next((n for n in tag_names(ctx.objects) if n.startswith(f"{name}/") or name.startswith(f"{n}/")), None)
    if clash is not None:
        raise Conflict(
            f"tag names may not be path ancestors or descendants: '{name}' and '{clash}'",
            "Choose another name, or delete that tag first.",
        )


def _refuse_reclaimed(ctx: CommitContext, snapshot: Snapshot) -> None:
    for table_key, entry in snapshot.tables.items():
        if not has_version(ctx.ref(entry.location, entry.table_branch), entry.table_version):
            raise Reclaimed(table_key, entry.table_version)


def tags_that_need(ctx: CommitContext, state: BranchState) -> list[str]:
    """Tags of the branch's own commits, and tags elsewhere whose commits show one of its forks."""
    tags = list_tags(ctx.objects)
    if not tags:
        return []
    name = state.branch
    own = {c.graph_commit_id for c in state.commits() if c.manifest_branch == name}
    shown: set[str] = set()
    wanted = {tag.graph_commit_id for tag in tags} - own
    for other in (None, *sorted(ctx.manifest.branches())) if wanted else ():
        if other not in (name, layout.SCHEMA_LOCK_BRANCH):
            shown |= _showing(ctx, ctx.manifest.state(other), name, wanted - shown)
    return [tag.name for tag in tags if tag.graph_commit_id in own | shown]


def _showing(ctx: CommitContext, state: BranchState, fork: str | None, wanted: set[str]) -> set[str]:
    """Which of the commits, as the manifest of one branch tells them, show a table of `fork`."""
    if all(table_branch != fork for _, _, table_branch in state.tables.groups):
        return set()
    rows, shown = ctx.manifest.rows(state), set()
    for commit in state.commits():
        if commit.graph_commit_id in wanted:
            entries = reconstruct(rows, commit.manifest_branch, commit.manifest_version).values()
            if any(entry.table_branch == fork for entry in entries):
                shown.add(commit.graph_commit_id)
    return shown
