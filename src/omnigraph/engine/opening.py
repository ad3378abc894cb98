"""Opening a graph: is it one, can this version read it, is something of an interrupted write left."""

from __future__ import annotations

import os

from omnigraph.base.errors import Conflict, NotFound, Unavailable
from omnigraph.commit.context import CommitContext
from omnigraph.commit.recovery.settle import sweep
from omnigraph.manifest import layout
from omnigraph.manifest.migrations import migrate_internal_schema


def open_graph(ctx: CommitContext, writable: bool) -> None:
    """Refuse what is not a graph; for writing also migrate main, settle sidecars, bring projections up to date."""
    root = ctx.root.path
    if not os.path.isdir(root):
        raise NotFound(f"there is no graph at '{root}'", "Create one with omnigraph init.")
    if not ctx.manifest.exists():
        _refuse_half_made(ctx)
        raise NotFound(f"'{root}' is not a graph: it has no {layout.MANIFEST}", "Create one with omnigraph init.")
    state = ctx.manifest.state()
    if not writable:
        return
    if not os.access(root, os.W_OK, effective_ids=True):
        raise Unavailable(f"'{root}' cannot be written", "Open it read-only (mode 'r').", what="permissions")
    if state.table.has_stable_row_ids:
        migrate_internal_schema(ctx.manifest, None)
    ctx.objects.delete(layout.INIT_CLAIM)
    settle_pending(ctx, None)


def settle_pending(ctx: CommitContext, branch: str | None) -> None:
    sweep(ctx)
    state = ctx.manifest.state(branch)
    if state.table.has_stable_row_ids:
        ctx.projections.catch_up(state)


def _refuse_half_made(ctx: CommitContext) -> None:
    found = [n for n in (layout.INIT_CLAIM, *layout.INIT_LEFTOVERS) if ctx.objects.exists(n)]
    if layout.INIT_CLAIM in found or layout.SCHEMA_SOURCE in found:
        raise Conflict(
            f"'{ctx.root.path}' is half initialized: an init is running or was interrupted",
            "If none is running, run omnigraph init --force with the schema.",
        )
