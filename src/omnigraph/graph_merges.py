"""What a handle does with whole histories: merging branches, undoing commits."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike, fspath
from typing import Any

from omnigraph.engine.merge.reset import branch_reset
from omnigraph.engine.merge.result import MergePreview, MergeResult, UndoResult
from omnigraph.engine.merge.revert import commit_revert
from omnigraph.engine.merge.rooms import OpenRoom, embedded_room
from omnigraph.engine.merge.run import LISTED_MAX, MergeCall, branch_merge, preview_merge
from omnigraph.engine.merge.table import Granularity, Strategy
from omnigraph.engine.write.changes import Annotations
from omnigraph.engine.write.intake import Progress
from omnigraph.graph_reads import Reads
from omnigraph.manifest.store import branch_name


class Merges(Reads):
    """The part of a graph handle that merges, reverts and resets."""

    def branch_merge(
        self,
        source: str,
        into: str = "main",
        *,
        dry_run: bool = False,
        delete_branch: bool = False,
        strategy: Strategy | None = None,
        resolve: str | PathLike[str] | None = None,
        granularity: Granularity = "row",
        limit: int = LISTED_MAX,
        actor: str | None = None,
        message: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        progress: Progress | None = None,
        open_room: OpenRoom = embedded_room,
    ) -> MergeResult | MergePreview:
        """Bring what `source` changed into `into` as one commit there; all conflicts are raised as MergeConflicts.

        `strategy`: the side whose rows win, ours being `into`. `resolve`: a file that decides conflicts one by one; a
        dry run makes it if it is not there. `granularity="property"`: rows are merged property by property.
        `dry_run`: only tell what would happen, at most `limit` changes by name. `open_room`: who does the work.
        """
        file = None if resolve is None else fspath(resolve)
        names = branch_name(source), branch_name(into)
        call = MergeCall(*names, dry_run, delete_branch, strategy, file, granularity, limit)
        if dry_run:
            return preview_merge(self._ctx, self.current, call, progress, open_room)
        self.refuse_read_only()
        notes = Annotations(actor, message, metadata)
        return branch_merge(self._ctx, self.current, call, notes, self._branch, progress, open_room)

    def branch_merge_as(self, actor: str, source: str, into: str = "main", **more: Any) -> MergeResult | MergePreview:
        return self.branch_merge(source, into, actor=actor, **more)

    def commit_revert(
        self,
        commit_id: str,
        *,
        branch: str | None = None,
        actor: str | None = None,
        message: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        progress: Progress | None = None,
    ) -> UndoResult:
        """Undo one commit of the branch by a new one; rows changed again since then are raised as MergeConflicts."""
        self.refuse_read_only()
        notes = Annotations(actor, message, metadata)
        return commit_revert(self._ctx, self.current, self._on(branch), commit_id, notes, progress)

    def branch_reset(
        self,
        branch: str,
        to: str,
        *,
        actor: str | None = None,
        message: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        progress: Progress | None = None,
    ) -> UndoResult:
        """Give a branch the content of its commit `to` by a new commit; nothing is committed if it has it already."""
        self.refuse_read_only()
        notes = Annotations(actor, message, metadata)
        return branch_reset(self._ctx, self.current, self._on(branch), to, notes, progress)
