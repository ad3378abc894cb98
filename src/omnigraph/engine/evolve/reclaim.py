"""The clean-up part of hard drops: what a dropped column or type has stored goes right after the commit.

A failure here changes nothing of the commit; what stays is told in the log and goes with `cleanup`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from omnigraph.base.errors import Conflict, OmniError
from omnigraph.base.failpoints import reach
from omnigraph.commit.context import CommitContext
from omnigraph.engine.upkeep.collect import Collect
from omnigraph.engine.upkeep.keep import Limits, pinned_by
from omnigraph.engine.upkeep.seen import look
from omnigraph.manifest import layout
from omnigraph.manifest.store import BranchState
from omnigraph.manifest.tags import list_tags
from omnigraph.storage.files import remove_versions, versions_of

_log = logging.getLogger("omnigraph.schema")


@dataclass(frozen=True)
class Lost:
    """A table whose older versions go; of a dropped one everything."""

    table_key: str
    location: str
    is_dropped: bool


def refuse_tagged(ctx: CommitContext, state: BranchState, lost: Sequence[Lost]) -> None:
    """Refuse while a tag shows a version that would go."""
    tags = list_tags(ctx.objects) if lost else []
    wanted = {tag.graph_commit_id: tag.name for tag in tags}
    commits = [c for c in state.commits() if c.graph_commit_id in wanted]
    places = {one.location: one.table_key for one in lost}
    rows = ctx.manifest.rows(state) if commits else []
    for commit in commits:
        shown = {location for location, _, _ in pinned_by(rows, [commit])} & set(places)
        if shown:
            name, table_key = wanted[commit.graph_commit_id], places[min(shown)]
            raise Conflict(
                f"tag '{name}' shows {table_key}, whose older versions would be removed",
                f"Nothing was written. Run omnigraph tag delete {name} first, or drop without --allow-data-loss.",
            )


def reclaim(ctx: CommitContext, lost: Sequence[Lost]) -> None:
    """Remove what the drops were to remove."""
    for one in lost:
        try:
            if one.is_dropped:
                _remove_all(ctx, one)
            else:
                _remove_older(ctx, one)
        except OmniError as error:
            _log.warning("older versions of %s stay until cleanup: %s", one.table_key, error)
        reach("schema_apply.mid_reclaim")


def _remove_older(ctx: CommitContext, one: Lost) -> None:
    """Every version that neither the head nor a tag nor a living load needs."""
    seen = look(ctx, timedelta(0))
    removed = Collect(ctx, seen, Limits(1, None), confirm=True).of_table(one.location, one.table_key)
    if removed.error:
        _log.warning("older versions of %s stay until cleanup: %s", one.table_key, removed.error)


def _remove_all(ctx: CommitContext, one: Lost) -> None:
    """The versions of a dropped table and then its files; the name of its place stays taken in the manifest."""
    with ctx.locks.hold(layout.BRANCH_CONTROL_LOCK) as control, ctx.locks.hold(None):
        # Made since the commit, of an older one.
        refuse_tagged(ctx, ctx.manifest.state(None), [one])
        control.check()
        ref = ctx.ref(one.location, None)
        remove_versions(ref, versions_of(ref))
        reach("schema_apply.mid_reclaim")
        ctx.objects.remove_tree(one.location)
