"""Brings the on-disk shape of `__manifest` forward, one step per version; no other code looks at the stamp.

Holds at every return:
  1. Each step may run twice: a crash repeats it without harm.
  2. A branch carries its own stamp and is migrated at its own first write.
  3. Reads never migrate.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import replace

from omnigraph.base.errors import Conflict, NotFound
from omnigraph.manifest import layout
from omnigraph.manifest.legacy import legacy_commit_rows
from omnigraph.manifest.rows import (
    GRAPH_COMMIT,
    INTERNAL_MANIFEST_SCHEMA_VERSION,
    PRIMARY_KEY,
    STAMP_KEY,
    to_arrow,
)
from omnigraph.manifest.store import BranchState, ManifestStore
from omnigraph.storage.failures import CommitLost
from omnigraph.storage.ledger import append_if_head, set_field_metadata, set_schema_metadata
from omnigraph.storage.refs import delete_branch

_log = logging.getLogger("omnigraph.manifest")


def migrate_internal_schema(manifest: ManifestStore, branch: str | None) -> BranchState:
    """The branch's newest state, its manifest in the current shape."""
    state = manifest.state(branch)
    refuse_without_row_ids(state)
    while state.stamp < INTERNAL_MANIFEST_SCHEMA_VERSION:
        _log.info("migrating __manifest of branch %s from v%d", branch or "main", state.stamp)
        try:
            _step(manifest, state)
            _stamp(manifest, branch, state.stamp + 1)
        except CommitLost as error:
            _log.info("somebody else changed __manifest meanwhile, looking again: %s", error)
        manifest.forget(branch)
        state = manifest.state(branch)
    return state


def _step(manifest: ManifestStore, state: BranchState) -> None:
    match state.stamp:
        case 1:
            _annotate_primary_key(state)
        case 2:
            _sweep_run_branches(manifest)
        case 3:
            _add_commit_rows(manifest, state)


def refuse_without_row_ids(state: BranchState) -> None:
    if not state.table.has_stable_row_ids:
        raise Conflict(
            f"{layout.MANIFEST} has no stable row ids; export the graph and load it into a new one",
            "Reads and export still work.",
        )


def _annotate_primary_key(state: BranchState) -> None:
    annotated = state.table.schema.field("object_id").metadata or {}
    if not all(annotated.get(k.encode()) == v.encode() for k, v in PRIMARY_KEY.items()):
        set_field_metadata(state.table, "object_id", PRIMARY_KEY)


def _sweep_run_branches(manifest: ManifestStore) -> None:
    for name in manifest.branches():
        if name.startswith(layout.LEGACY_RUN_PREFIX):
            # Somebody else who migrates may have removed it between the listing and now.
            with suppress(NotFound):
                delete_branch(manifest.ref(), name)


def _add_commit_rows(manifest: ManifestStore, state: BranchState) -> None:
    """A commit row for every commit that has none, oldest first; other rows stay as they are."""
    present = {r.object_id for r in manifest.rows(state) if r.object_type == GRAPH_COMMIT}
    missing = [r for r in legacy_commit_rows(manifest.root, state.branch) if r.object_id not in present]
    if missing:
        rows = [replace(r, created_at_version=0) for r in missing]
        append_if_head(state.table, to_arrow(rows), {"omnigraph.migration": "4"})


def _stamp(manifest: ManifestStore, branch: str | None, version: int) -> None:
    """Raise the stamp, never lower it: Lance refuses a stamp on a handle older than another one."""
    manifest.forget(branch)
    state = manifest.state(branch)
    if state.stamp < version:
        set_schema_metadata(state.table, {STAMP_KEY: str(version)})
