"""`optimize`: small fragments are folded together and indexes brought up to date; no row, id or row id changes.

Holds at every return:
  1. All changed tables are one commit, or there is none; nothing to do makes no commit.
  2. Tables the branch only inherits, and tables whose head is not their pin, were left alone.
  3. No version was removed: snapshots that are open stay readable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from omnigraph.base.errors import ExpectedVersionMismatch
from omnigraph.base.ids import new_ulid
from omnigraph.catalog.catalog import TableType
from omnigraph.commit.context import CommitContext
from omnigraph.commit.plan import OPTIMIZE, Effect, WritePlan, check_annotations
from omnigraph.engine.upkeep.groups import Grouping, grouped
from omnigraph.engine.upkeep.internal import optimize_internal
from omnigraph.engine.upkeep.optimized import DRIFT, OptimizeResult, TableOptimized
from omnigraph.engine.upkeep.seen import refuse_pending, refuse_schema_apply
from omnigraph.engine.view import View
from omnigraph.engine.write.changes import Annotations
from omnigraph.engine.write.ensure_indices import IndexWork, table_work
from omnigraph.engine.write.retry import Attempt, commit_with_retries
from omnigraph.manifest.snapshot import SubTableEntry
from omnigraph.manifest.store import branch_label
from omnigraph.settings import Settings
from omnigraph.storage.compaction import (
    RewriteTask,
    fragment_facts,
    index_specs,
    rewrite_tasks,
    run_rewrite,
    segments,
    staged_rewrite,
)
from omnigraph.storage.stage import IndexKind, StagedWrite, Stamp, stage_index
from omnigraph.storage.tables import Table, head_version, open_table

RunTasks = Callable[[Sequence[RewriteTask]], list[str]]
"""Does the tasks somewhere; one answer for each, in their order."""
_COSTLY = tuple(f"_{kind.name.lower()}_idx" for kind in (IndexKind.TEXT, IndexKind.VECTOR))
NO_ROW_IDS = "no_stable_row_ids"


def run_here(tasks: Sequence[RewriteTask], settings: Settings) -> list[str]:
    """In this process, several at once."""
    with ThreadPoolExecutor(max(1, min(len(tasks), settings.upkeep_concurrency))) as pool:
        return list(pool.map(run_rewrite, tasks))


def optimize(
    ctx: CommitContext, open_view: Callable[[], View], notes: Annotations, run_tasks: RunTasks | None = None
) -> OptimizeResult:
    """Optimize the tables the branch owns, then its manifest and the commit tables."""
    metadata = dict(notes.metadata or {})
    check_annotations(notes.actor, notes.message, metadata)
    refuse_pending(ctx)
    refuse_schema_apply(ctx)
    run = _Optimize(ctx, notes, metadata, run_tasks or partial(run_here, settings=ctx.settings))
    receipt = commit_with_retries(ctx, open_view, run.prepare, retries=max(1, ctx.settings.write_retries))
    branch = open_view().branch
    return OptimizeResult(
        ctx.root.uri,
        branch_label(branch),
        (*run.told, *optimize_internal(ctx, branch)),
        receipt.graph_commit_id if receipt else None,
        receipt.operation_id if receipt else None,
    )


@dataclass(frozen=True)
class _Work:
    """One table with what is to be rewritten of it."""

    table_key: str
    type: TableType
    table: Table
    grouping: Grouping
    tasks: tuple[RewriteTask, ...]


@dataclass
class _Optimize:
    """One run; what was rewritten is kept for the case that another writer is first."""

    ctx: CommitContext
    notes: Annotations
    metadata: dict[str, Any]
    run_tasks: RunTasks
    told: list[TableOptimized] = field(default_factory=list)
    _answers: dict[str, str] = field(default_factory=dict)

    def prepare(self, attempt: Attempt) -> WritePlan | None:
        view = attempt.view
        self.told = []
        work = [found for found in (self._looked_at(attempt, t) for t in view.catalog.tables()) if found is not None]
        self._rewrite([task for one in work for task in one.tasks])
        operation = new_ulid()
        effects = [found for found in (self._staged(one, operation) for one in work) if found is not None]
        self.told.sort(key=lambda t: t.table_key)
        if not effects:
            return None
        return WritePlan(
            operation_id=operation,
            graph_commit_id=new_ulid(),
            writer=OPTIMIZE,
            branch=view.branch,
            branch_incarnation=view.incarnation,
            effects=tuple(effects),
            relied_on={e.table_key: view.entry(e.table_key) for e in effects},
            actor_id=self.notes.actor,
            message=self.notes.message,
            metadata=self.metadata,
            if_commit=self.notes.if_commit,
        )

    def _looked_at(self, attempt: Attempt, type_: TableType) -> _Work | None:
        """The table with its work; None if it is another branch's, or cannot be worked on."""
        key = type_.table_key
        entry = attempt.view.entries.get(key)
        if entry is None or not entry.table_version or entry.table_branch != attempt.view.branch:
            return None
        ref = self.ctx.ref(entry.location, entry.table_branch)
        head = head_version(ref, entry.table_version)
        if head != entry.table_version:
            if attempt.held is None:
                # A writer may be between its tables and its publish; whoever has the lock knows better.
                raise ExpectedVersionMismatch(table_key=key, expected=entry.table_version, actual=head)
            self._skip(key, entry, head, DRIFT)
            return None
        table = open_table(ref, entry.table_version, key)
        if not table.has_stable_row_ids:
            self._skip(key, entry, head, NO_ROW_IDS)
            return None
        grouping = grouped(fragment_facts(table), segments(table), lambda name: name.endswith(_COSTLY))
        return _Work(key, type_, table, grouping, tuple(rewrite_tasks(table, grouping.groups)))

    def _rewrite(self, tasks: list[RewriteTask]) -> None:
        missing = [task for task in tasks if task.key not in self._answers]
        if missing:
            answers = self.run_tasks(missing)
            self._answers |= {task.key: answer for task, answer in zip(missing, answers, strict=True)}

    def _staged(self, work: _Work, operation: str) -> Effect | None:
        """What the table goes through; None if nothing."""
        table = work.table
        if not work.tasks:
            index = table_work(table, work.type, index_specs(table))
            first = Stamp(operation, work.table_key, "0")
            built = [] if index.is_empty else [stage_index(table, index.whole, first, index.parts)]
            return self._effect(work, tuple(built), index, table.fragment_count())
        answers = [self._answers[task.key] for task in work.tasks]

        def stamp_of(number: int) -> Stamp:
            return Stamp(operation, work.table_key, str(number))

        with staged_rewrite(table, answers, work.grouping.dropped, stamp_of) as rewritten:
            index = table_work(rewritten.after, work.type, index_specs(table))
            steps = rewritten.steps
            if not index.is_empty:
                steps = (*steps, rewritten.index_step(index.whole, index.parts, stamp_of(len(steps))))
            return self._effect(work, steps, index, rewritten.after.fragment_count())

    def _effect(self, work: _Work, steps: tuple[StagedWrite, ...], index: IndexWork, fragments: int) -> Effect | None:
        version = work.table.version + len(steps)
        removed = sum(len(group) for group in work.grouping.groups)
        before = work.table.fragment_count()
        self.told.append(
            TableOptimized(
                work.table_key,
                version,
                version,
                removed,
                fragments - (before - removed),
                fragments,
                bool(steps),
                pending_indexes=tuple(index.pending),
            )
        )
        if not steps:
            return None
        return Effect(work.table_key, work.table.ref, work.table.version, steps, work.table.count_rows())

    def _skip(self, key: str, entry: SubTableEntry, head: int, why: str) -> None:
        self.told.append(TableOptimized(key, entry.table_version, head, skipped=why))
