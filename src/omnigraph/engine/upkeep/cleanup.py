"""`cleanup`: what interrupted work left behind goes, then what no kept commit needs."""

from __future__ import annotations

from datetime import timedelta

from omnigraph.base.errors import BadRequest
from omnigraph.commit.context import CommitContext
from omnigraph.engine.upkeep.collect import Collect
from omnigraph.engine.upkeep.keep import Limits
from omnigraph.engine.upkeep.reconcile import Reconcile
from omnigraph.engine.upkeep.result import CleanupResult, TableCleanup
from omnigraph.engine.upkeep.seen import look


def cleanup(
    ctx: CommitContext, keep: int | None, older_than: timedelta | None, confirm: bool, grace: timedelta | None = None
) -> CleanupResult:
    """Remove leftovers and old versions; without `confirm` only say what would go.

    `grace`: how old files that no version refers to must be; the setting when None.
    """
    if keep is None and older_than is None:
        raise BadRequest("cleanup needs a limit", "Give keep (--keep N), older_than (--older-than D), or both.")
    if keep is not None and keep < 1:
        raise BadRequest("keep must be at least 1", "The newest commit of a branch is always kept.")
    if older_than is not None and older_than < timedelta(0):
        raise BadRequest("older_than must not be negative")
    seen = look(ctx, ctx.settings.staging_grace if grace is None else grace)
    reconcile = Reconcile(ctx, seen, confirm)
    reconcile.run()
    collected = Collect(ctx, seen, Limits(keep, older_than), confirm).run()
    return CleanupResult(
        ctx.root.uri,
        confirm,
        keep,
        int(older_than.total_seconds()) if older_than is not None else None,
        _joined(reconcile.tables, list(collected)),
        tuple(reconcile.removed),
        tuple(reconcile.kept),
    )


def _joined(first: list[TableCleanup], second: list[TableCleanup]) -> tuple[TableCleanup, ...]:
    """One line per table key, from what each step did to it."""
    joined: dict[str, TableCleanup] = {}
    for part in (*first, *second):
        known = joined.get(part.table_key, TableCleanup(part.table_key))
        joined[part.table_key] = TableCleanup(
            part.table_key,
            known.bytes_removed + part.bytes_removed,
            known.old_versions_removed + part.old_versions_removed,
            known.error or part.error,
        )
    return tuple(joined.values())
