"""Brings moved tables back to what readers see: the shared half of undo and roll-back."""

from __future__ import annotations

from omnigraph.base.errors import Conflict
from omnigraph.base.failpoints import reach
from omnigraph.commit.context import CommitContext
from omnigraph.commit.recovery.classify import TableObservation
from omnigraph.commit.recovery.observe import observe_table, shown_entry
from omnigraph.commit.sidecar import Sidecar
from omnigraph.manifest.rows import Pin
from omnigraph.manifest.store import BranchState
from omnigraph.storage.apply import restore
from omnigraph.storage.stage import RESTORE_STEP, Stamp
from omnigraph.storage.tables import TableRef, remove_version


def restore_moved(
    ctx: CommitContext, sidecar: Sidecar, state: BranchState, may_remove_foreign: bool
) -> list[tuple[Pin, TableObservation]]:
    """Give every moved table of the sidecar a new version with the content of its pin.

    A fork whose first write is taken back keeps that version as its first pin, so that head == pin holds for it too.
    A table that was being created and is not registered stays behind for cleanup.
    """
    restored = []
    for table in sidecar.tables:
        shown_as, entry = shown_entry(table, state)
        seen = observe_table(ctx, table, state)
        if entry is None or seen.head <= seen.pin:
            continue
        if not may_remove_foreign:
            _refuse_foreign(seen)
        ref = TableRef(ctx.root, table.table_path, table.table_branch)
        for version in sorted((v for v, s in seen.slots.items() if not s.readable), reverse=True):
            remove_version(ref, version)
        version = restore(ref, seen.pin, Stamp(sidecar.operation_id, shown_as, RESTORE_STEP))
        reach("recovery.mid_phase_b")
        restored.append((Pin(shown_as, ref.location, ref.branch, version, entry.row_count), seen))
    return restored


def _refuse_foreign(seen: TableObservation) -> None:
    for version, slot in seen.slots.items():
        if slot.operation_id is None and not slot.is_maintenance:
            raise Conflict(f"version {version} of {seen.table_key} was written by another tool")
