"""Brings the changes of one branch into another as one commit on the other.

Holds at every return:
  1. The source is untouched; the target has one commit more, or is as it was.
  2. A refusal reports every conflict and has written nothing; so does a dry run, conflicts or not.
  3. The commit's parents are the two heads that were compared, and it says how conflicts were decided.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from sys import maxsize

from omnigraph.base.errors import BadRequest, OmniError
from omnigraph.commit.branches import remove_branch
from omnigraph.commit.context import CommitContext
from omnigraph.commit.plan import BRANCH_MERGE
from omnigraph.engine.merge.combine import Combined
from omnigraph.engine.merge.history import History, refuse_schema_apply
from omnigraph.engine.merge.resolve import (
    Heads,
    Resolver,
    check_options,
    is_present,
    read_choices,
    write_template,
)
from omnigraph.engine.merge.result import FAST_FORWARD, MERGED, UP_TO_DATE, MergePreview, MergeResult
from omnigraph.engine.merge.rooms import OpenRoom, Room, Sides, embedded_room
from omnigraph.engine.merge.table import Granularity, Strategy
from omnigraph.engine.merge.writing import Said, commit_combined
from omnigraph.engine.view import Current, View
from omnigraph.engine.write.changes import Annotations
from omnigraph.engine.write.intake import Progress
from omnigraph.engine.write.load import quiet
from omnigraph.engine.write.retry import told_if_deleted
from omnigraph.manifest.store import BranchState, branch_label, refuse_internal

LISTED_MAX = 1_000
Now = Callable[[], Current]


@dataclass(frozen=True)
class MergeCall:
    """A merge as the caller gave it; branches are None for main."""

    source: str | None
    target: str | None
    dry_run: bool = False
    delete_branch: bool = False
    strategy: Strategy | None = None
    resolve: str | None = None
    granularity: Granularity = "row"
    limit: int = LISTED_MAX

    def __post_init__(self) -> None:
        check_options(self.strategy, self.granularity)
        if self.limit < 0:
            raise BadRequest("limit must not be negative")
        for name in (self.source, self.target):
            refuse_internal(name)
        if self.source == self.target:
            raise BadRequest(
                "merge needs distinct source and target",
                f"Both are '{branch_label(self.source)}'. Name the branch to bring over and, with --into, another.",
            )

    @property
    def labels(self) -> tuple[str, str]:
        return branch_label(self.source), branch_label(self.target)


@dataclass
class _Merge:
    """Two branches as they are, and where they parted."""

    ctx: CommitContext
    call: MergeCall
    current: Current
    theirs: BranchState
    history: History
    heads: Heads
    view: View

    @property
    def outcome(self) -> str:
        if self.heads.base == self.heads.source:
            return UP_TO_DATE
        return FAST_FORWARD if self.heads.base == self.heads.target else MERGED

    def sides(self, actor: str | None = None) -> Sides:
        base, source = self.history.entries_at(self.heads.base), self.theirs.entries
        named = self.current.named
        return Sides(self.ctx, self.view, named(base), named(source), self.call.dry_run, actor)

    def combine(self, room: Room, resolver: Resolver, progress: Progress, explains: int) -> Combined:
        listed = self.call.limit if self.call.dry_run else 0
        source = self.current.view(self.theirs.snapshot(), self.theirs.incarnation)
        with told_if_deleted(self.ctx, source), told_if_deleted(self.ctx, self.view):
            return room.combination(resolver, progress, listed, explains).run()


def branch_merge(
    ctx: CommitContext,
    now: Now,
    call: MergeCall,
    notes: Annotations,
    current: str | None = None,
    progress: Progress | None = None,
    open_room: OpenRoom = embedded_room,
) -> MergeResult:
    """Merge and commit; raises MergeConflicts with all conflicts if some are left."""
    merge = _opened(ctx, now, call)
    source, target = call.labels
    done = MergeResult(source, target, merge.outcome, actor_id=notes.actor)
    if merge.outcome != UP_TO_DATE:
        resolver = _resolver(call, merge.heads)
        with open_room(merge.sides(notes.actor)) as room:
            tell = progress or quiet
            made = merge.combine(room, resolver, tell, explains=0)
            made.raise_conflicts()
            said = Said(BRANCH_MERGE, notes, {"merge": resolver.metadata()}, merge.heads.source)
            receipt = commit_combined(ctx, merge.view, made, said, room.bench, tell, room.beat)
        done = replace(
            done,
            graph_commit_id=receipt.graph_commit_id,
            operation_id=receipt.operation_id,
            tables=tuple(made.totals),
        )
    return _without_source(ctx, done, call.source, current) if call.delete_branch else done


def preview_merge(
    ctx: CommitContext,
    now: Now,
    call: MergeCall,
    progress: Progress | None = None,
    open_room: OpenRoom = embedded_room,
) -> MergePreview:
    """What the merge would do. A resolution file that is named and not there is made, for the user to fill in."""
    merge = _opened(ctx, now, call)
    source, target = call.labels
    told = MergePreview(source, target, merge.heads.base, merge.outcome, False)
    if merge.outcome == UP_TO_DATE:
        return told
    template = call.resolve if call.resolve is not None and not is_present(call.resolve) else None
    resolver = _resolver(replace(call, resolve=None) if template else call, merge.heads)
    with open_room(merge.sides()) as room:
        made = merge.combine(room, resolver, progress or quiet, explains=maxsize if template else call.limit)
        if not made.disputes:
            template = None
        elif template is not None:
            write_template(template, merge.heads, call.granularity, made.disputes)
        return replace(
            told,
            would_commit=not made.conflicts,
            tables=tuple(made.totals),
            changes=tuple(made.listed(call.limit)),
            conflicts=tuple(made.conflicts),
            resolved=tuple(decision.to_json() for decision in resolver.listed),
            resolved_total=resolver.total,
            template=template,
            disputes=tuple(made.disputes[: call.limit]),
        )


def _opened(ctx: CommitContext, now: Now, call: MergeCall) -> _Merge:
    ours, theirs = ctx.manifest.state(call.target), ctx.manifest.state(call.source)
    refuse_schema_apply(ctx.manifest)
    history = History.of(ctx.manifest, ours, theirs)
    base = history.base_of(ours, theirs)
    heads = Heads(theirs.head_id or "", ours.head_id or "", base.graph_commit_id)
    current = now()
    view = current.view(ours.snapshot(), ours.incarnation)
    return _Merge(ctx, call, current, theirs, history, heads, view)


def _resolver(call: MergeCall, heads: Heads) -> Resolver:
    choices = {} if call.resolve is None else read_choices(call.resolve, heads, call.granularity)
    return Resolver(call.strategy, call.granularity, choices)


def _without_source(ctx: CommitContext, done: MergeResult, source: str | None, current: str | None) -> MergeResult:
    """The merge stands, whatever becomes of its source; `current` is the branch of the handle, which stays."""
    try:
        remove_branch(ctx, branch_label(source), current)
    except OmniError as error:
        return replace(done, branch_deleted=False, branch_delete_error=str(error))
    return replace(done, branch_deleted=True)
