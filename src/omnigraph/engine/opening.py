"""Opening a graph: is it one, can this version read it, is something of an interrupted write left."""

from __future__ import annotations

import os

from omnigraph.base.errors import Conflict, NotFound, Unavailable
from omnigraph.commit.context import CommitContext
from omnigraph.commit.heal import heal_branch
from omnigraph.commit.recovery.settle import sweep
from omnigraph.commit.schema_lock import remove_leftover
from omnigraph.commit.sidecar import pending_sidecars
from omnigraph.manifest import layout
from omnigraph.manifest.migrations import migrate_internal_schema
from omnigraph.storage.durable import sync_place
from omnigraph.storage.places import probe_store


def open_graph(ctx: CommitContext, writable: bool) -> None:
    """Refuse what is not a graph; for writing also migrate main, settle sidecars, bring projections up to date."""
    uri = ctx.root.uri
    if ctx.root.is_local and not os.path.isdir(uri):
        raise NotFound(f"there is no graph at '{uri}'", "Create one with omnigraph init.")
    if not ctx.manifest.exists():
        _refuse_half_made(ctx)
        raise NotFound(f"'{uri}' is not a graph: it has no {layout.MANIFEST}", "Create one with omnigraph init.")
    if not writable:
        ctx.manifest.state()
        return
    if ctx.root.is_local and not os.access(uri, os.W_OK, effective_ids=True):
        raise Unavailable(f"'{uri}' cannot be written", "Open it read-only (mode 'r').", what="permissions")
    probe_store(ctx.root)
    if ctx.manifest.state().table.has_stable_row_ids:
        migrate_internal_schema(ctx.manifest, None)
    if ctx.objects.exists(layout.INIT_CLAIM):
        # An init that died after it had made the manifest may not have synced it.
        sync_place(ctx.manifest.ref(), "")
        ctx.objects.delete(layout.INIT_CLAIM)
    settle_pending(ctx, None)


def settle_pending(ctx: CommitContext, branch: str | None) -> None:
    sweep(ctx)
    remove_leftover(ctx)
    state = ctx.manifest.state(branch)
    if state.table.has_stable_row_ids:
        if not pending_sidecars(ctx.objects):
            heal_branch(ctx, branch)
        ctx.projections.catch_up(ctx.manifest.state(branch))


def _refuse_half_made(ctx: CommitContext) -> None:
    if ctx.objects.exists(layout.CLONE_CLAIM):
        raise Conflict(
            f"'{ctx.root.uri}' is an unfinished clone",
            "If none is running, run the same omnigraph clone again: it goes on where it stopped.",
        )
    if ctx.objects.exists(layout.INIT_CLAIM) or ctx.objects.exists(layout.SCHEMA_SOURCE):
        raise Conflict(
            f"'{ctx.root.uri}' is half initialized: an init is running or was interrupted",
            "If none is running, run omnigraph init --force with the schema.",
        )
