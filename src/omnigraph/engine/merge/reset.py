"""Gives a branch the content of one of its earlier commits, as a new commit; history is never rewritten."""

from __future__ import annotations

from omnigraph.base.errors import BadRequest
from omnigraph.commit.context import CommitContext
from omnigraph.commit.plan import RESET
from omnigraph.engine.merge.combine import Combination
from omnigraph.engine.merge.history import History, first_parent_ids, named_commit, refuse_schema_apply
from omnigraph.engine.merge.resolve import Resolver
from omnigraph.engine.merge.result import UndoResult
from omnigraph.engine.merge.revert import refuse_boundary
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


def branch_reset(
    ctx: CommitContext,
    now: Now,
    branch: str | None,
    name: str,
    notes: Annotations,
    progress: Progress | None = None,
) -> UndoResult:
    """One new commit whose content is that of the named one; no commit if the branch has that content already."""
    state = ctx.manifest.state(branch)
    refuse_schema_apply(ctx.manifest)
    history = History.of(ctx.manifest, state)
    to = _of_this_branch(state, named_commit(ctx.manifest, name, branch))
    current = now()
    wanted = current.named(history.entries_at(to))
    view = current.view(state.snapshot(), state.incarnation)
    for commit_id in first_parent_ids(state):
        if commit_id == to:
            break
        refuse_boundary(history.commits[commit_id], wanted, view.entries)
    tell = progress or quiet
    done = UndoResult(branch_label(branch), to, None, notes.actor, named="restored")
    with Scratch(ctx.settings) as scratch:
        with told_if_deleted(ctx, view):
            # Compared with the head itself nothing can conflict: the head has changed nothing since the head.
            made = Combination(view, view.entries, wanted, Resolver(), scratch, tell).run()
        made.raise_conflicts()
        if not made.changes.tables:
            return done
        # The content is that of one commit, so every table must still be as it was compared.
        made.relied_on |= set(view.entries)
        said = Said(RESET, notes, {"reset": {"graph_commit_id": to}})
        receipt = commit_combined(ctx, view, made, said, EmbeddedBench(scratch), tell)
    return UndoResult(
        done.branch,
        to,
        receipt.graph_commit_id,
        notes.actor,
        receipt.operation_id,
        tuple(made.totals),
        done.named,
    )


def _of_this_branch(state: BranchState, commit: GraphCommit) -> str:
    name = commit.graph_commit_id
    if name not in {known.graph_commit_id for known in state.commits()}:
        raise BadRequest(
            f"commit '{name}' is not in the history of branch '{branch_label(state.branch)}'",
            "See omnigraph commit list; to take over another branch's content, merge it.",
        )
    return name
