"""The tables behind a branch: its manifest and the commit tables are folded together and brought up to date."""

from __future__ import annotations

import logging

from omnigraph.base.errors import Conflict
from omnigraph.commit.context import CommitContext
from omnigraph.engine.upkeep.optimized import TableOptimized
from omnigraph.manifest.upkeep import Folded, fold_derived, fold_manifest

_log = logging.getLogger("omnigraph.upkeep")


def optimize_internal(ctx: CommitContext, branch: str | None) -> list[TableOptimized]:
    """What became of them. They are nobody's content: what fails here is left to the next writer."""
    try:
        # A compaction loses against every publish, so nobody may publish meanwhile.
        with ctx.locks.hold(branch):
            state = ctx.manifest.state(branch)
            ctx.projections.catch_up(state)
            folded = [fold_manifest(ctx.manifest, state), *fold_derived(ctx.root, branch)]
            ctx.manifest.forget(branch)
    except Conflict as error:
        _log.warning("the manifest was not compacted: %s", error)
        return []
    return [_told(one) for one in folded]


def _told(folded: Folded) -> TableOptimized:
    changed = folded.before != folded.after
    return TableOptimized(
        folded.name,
        folded.version,
        folded.version,
        folded.before if changed else 0,
        folded.after if changed else 0,
        folded.after,
        changed,
    )
