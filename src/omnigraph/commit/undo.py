"""Takes back a write that could not be published, while its writer still holds the lock."""

from __future__ import annotations

from omnigraph.base.errors import InternalError
from omnigraph.base.ids import new_ulid
from omnigraph.commit.context import CommitContext
from omnigraph.commit.locks import HeldLock
from omnigraph.commit.restores import restore_moved
from omnigraph.commit.schema_files import discard_schema
from omnigraph.commit.sidecar import Sidecar
from omnigraph.manifest.lineage import RECOVERY_KEY, ROLLED_BACK, GraphCommit
from omnigraph.manifest.publisher import BranchReplaced, HeadMoved, Precondition, find_commit
from omnigraph.manifest.rows import Changes, CommitIntent
from omnigraph.manifest.store import branch_label
from omnigraph.storage.durable import sync_whole

_ROUNDS_MAX = 8


def undo(
    ctx: CommitContext, sidecar: Sidecar, lock: HeldLock, actor: str | None, seen_version: int
) -> GraphCommit | None:
    """The write's commit if it is in the manifest after all; else None, and nothing of the write is left."""
    for _ in range(_ROUNDS_MAX):
        lock.check()
        ctx.manifest.forget(sidecar.branch)
        state = ctx.manifest.state(sidecar.branch)
        if sidecar.branch_incarnation not in (None, state.incarnation):
            raise BranchReplaced(f"branch '{branch_label(sidecar.branch)}' was deleted and created again")
        own = find_commit(state, sidecar.graph_commit_id or "", seen_version)
        if own is not None:
            sync_whole(state.table)
            return own
        settled = any(c.operation_id == sidecar.operation_id for c in state.commits_since(seen_version))
        if not settled:
            pins = tuple(pin for pin, _ in restore_moved(ctx, sidecar, state, may_remove_foreign=False))
            intent = CommitIntent(
                new_ulid(),
                sidecar.operation_id,
                "recovery",
                actor,
                metadata={"omnigraph": {RECOVERY_KEY: ROLLED_BACK}},
                lock_token=lock.token,
            )
            condition = Precondition(parent=state.head_id, bind_parent=True, incarnation=state.incarnation)
            try:
                ctx.publisher.publish(sidecar.branch, Changes(pins), {}, intent, condition, state.version)
            except HeadMoved:
                continue
        if sidecar.carries_schema and sidecar.graph_commit_id is not None:
            discard_schema(ctx.objects, sidecar.graph_commit_id)
        ctx.objects.delete(sidecar.key)
        return None
    raise InternalError(f"the head of branch '{branch_label(sidecar.branch)}' moved during every attempt to undo")
