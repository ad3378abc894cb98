"""Undoes one commit by another: a merge of the state before it, compared with the state after it."""

from __future__ import annotations

from omnigraph.base.errors import BadRequest, Conflict
from omnigraph.commit.context import CommitContext
from omnigraph.commit.plan import REVERT
from omnigraph.engine.evolve.catch_up import is_catch_up
from omnigraph.engine.merge.combine import Combination
from omnigraph.engine.merge.history import Entries, History, first_parent_ids, named_commit, refuse_schema_apply
from omnigraph.engine.merge.resolve import Resolver
from omnigraph.engine.merge.result import UndoResult
from omnigraph.engine.merge.run import Now
from omnigraph.engine.merge.writing import Said, commit_combined
from omnigraph.engine.write.bench import EmbeddedBench
from omnigraph.engine.write.changes import Annotations
from omnigraph.engine.write.intake import Progress
from omnigraph.engine.write.load import quiet
from omnigraph.engine.write.retry import told_if_deleted
from omnigraph.manifest.lineage import GraphCommit
from omnigraph.manifest.store import BranchState, branch_label
from omnigraph.sets.scratch import Scratch

_HINT = "Nothing was written. Rows that changed since then stay as they are; change them by a mutation instead."


def commit_revert(
    ctx: CommitContext,
    now: Now,
    branch: str | None,
    name: str,
    notes: Annotations,
    progress: Progress | None = None,
) -> UndoResult:
    """One new commit that undoes the named one against its first parent; rows changed again since are conflicts."""
    state = ctx.manifest.state(branch)
    refuse_schema_apply(ctx.manifest)
    history = History.of(ctx.manifest, state)
    commit = _revertable(state, named_commit(ctx.manifest, name, branch))
    assert commit.parent_commit_id is not None
    after, before = history.entries_at(commit.graph_commit_id), history.entries_at(commit.parent_commit_id)
    refuse_boundary(commit, before, after)
    current = now()
    after, before = current.named(after), current.named(before)
    view = current.view(state.snapshot(), state.incarnation)
    tell = progress or quiet
    with Scratch(ctx.settings) as scratch:
        with told_if_deleted(ctx, view):
            made = Combination(view, after, before, Resolver(), scratch, tell).run()
        made.raise_conflicts(_HINT)
        said = Said(REVERT, notes, {"revert": {"graph_commit_id": commit.graph_commit_id}})
        receipt = commit_combined(ctx, view, made, said, EmbeddedBench(scratch), tell)
    return UndoResult(
        branch_label(branch),
        commit.graph_commit_id,
        receipt.graph_commit_id,
        notes.actor,
        receipt.operation_id,
        tuple(made.totals),
    )


def _revertable(state: BranchState, commit: GraphCommit) -> GraphCommit:
    name = commit.graph_commit_id
    if name not in first_parent_ids(state):
        raise BadRequest(
            f"commit '{name}' is not on the first-parent chain of branch '{branch_label(state.branch)}'",
            "Revert it on the branch it was made on, or revert the merge that brought it here.",
        )
    if commit.parent_commit_id is None:
        raise Conflict(f"commit '{name}' is the first one and cannot be reverted", "There is no state before it.")
    return commit


def refuse_boundary(commit: GraphCommit, before: Entries, after: Entries) -> None:
    """A commit that set another schema is not undone: the rows of one do not fit the other."""
    if is_catch_up(commit):
        return
    tables = [{(key, entry.location) for key, entry in entries.items()} for entries in (before, after)]
    if commit.sets_schema or tables[0] != tables[1]:
        raise Conflict(
            f"commit '{commit.graph_commit_id}' changed the schema (schema_boundary)",
            "Nothing was written. Apply the earlier schema instead.",
        )
