"""A load: rows read once, checked as a whole, and published as exactly one data commit.

Holds at every return:
  1. Every row of the input is stored, or was superseded in a merge, or stands in the rejects file.
  2. A load that raises wrote nothing that is visible, and no rejects file.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np
import orjson
import pyarrow as pa

from omnigraph.base.errors import BadRequest, Conflict, InvalidData, OmniError
from omnigraph.base.ids import new_ulid
from omnigraph.commit.context import CommitContext
from omnigraph.commit.plan import LOAD, Receipt, WritePlan
from omnigraph.commit.staging import StagingBeat, staging_heartbeat
from omnigraph.engine.view import View
from omnigraph.engine.write.again import Kept, recheck
from omnigraph.engine.write.bench import Bench, EmbeddedBench
from omnigraph.engine.write.changes import Annotations
from omnigraph.engine.write.changeset import ChangeSet, TableChange
from omnigraph.engine.write.ensure_indices import ensure_indices
from omnigraph.engine.write.frames import Frame, read_frames
from omnigraph.engine.write.intake import Intake, Progress, read_files
from omnigraph.engine.write.planning import plan_changeset
from omnigraph.engine.write.quarantine import Rejects, WrittenRejects, refuse_present
from omnigraph.engine.write.retry import Attempt, commit_with_retries
from omnigraph.engine.write.validate.cardinality import check_cardinality
from omnigraph.engine.write.validate.endpoints import check_endpoints
from omnigraph.engine.write.validate.ids import check_ids, drop_superseded
from omnigraph.engine.write.validate.stages import check_all_values, refusal, validate
from omnigraph.engine.write.validate.unique import check_unique
from omnigraph.manifest.store import branch_label
from omnigraph.records.decode import POSITION
from omnigraph.records.encode import json_rows
from omnigraph.records.sources import STDIN, find_sources
from omnigraph.records.violations import Findings, Stage
from omnigraph.sets.scratch import Scratch
from omnigraph.storage.s3 import S3Access
from omnigraph.storage.stage import StagedWrite

Mode = Literal["append", "merge", "overwrite"]
OnError = Literal["fail", "quarantine"]
# Loads of this size take long enough to stage that cleanup has to be told of them.
_BULK_ROWS = 200_000
_log = logging.getLogger("omnigraph.load")


@dataclass(frozen=True)
class LoadOptions:
    """`rejects` names the file for rows left out; `retries` None takes the setting."""

    mode: Mode = "append"
    on_error: OnError = "fail"
    rejects: str | None = None
    max_errors: int | None = None
    retries: int | None = None

    def __post_init__(self) -> None:
        if self.mode not in get_args(Mode):
            raise BadRequest(f"unknown load mode {self.mode!r}", "Use append, merge or overwrite.")
        if self.on_error not in get_args(OnError):
            raise BadRequest(f"unknown on_error {self.on_error!r}", "Use fail or quarantine.")
        if self.max_errors is not None and self.max_errors < 1:
            raise BadRequest("max_errors must be at least 1")
        if self.rejects is not None and self.on_error == "fail":
            raise BadRequest("a rejects file is only written with on_error='quarantine'")

    @property
    def quarantines(self) -> bool:
        return self.on_error == "quarantine"


@dataclass(frozen=True)
class TypeCount:
    name: str
    entities_loaded: int


@dataclass(frozen=True)
class LoadResult:
    uri: str
    branch: str
    mode: str
    nodes: tuple[TypeCount, ...]
    edges: tuple[TypeCount, ...]
    duplicates_merged: int
    rejected: int
    operation_id: str
    commit: str
    engine: str = "embedded"
    base_branch: str | None = None
    branch_created: bool = False
    rejects_file: str | None = None
    index_commit: str | None = None
    warnings: tuple[str, ...] = ()

    @property
    def total_entities(self) -> int:
        return sum(count.entities_loaded for count in (*self.nodes, *self.edges))

    def to_json(self) -> dict[str, Any]:
        """The result as programs get it; members without a value are left out."""
        told: dict[str, Any] = {"uri": self.uri, "branch": self.branch, "base_branch": self.base_branch}
        told |= {"branch_created": self.branch_created, "mode": self.mode, "engine": self.engine}
        for name, counts in (("nodes", self.nodes), ("edges", self.edges)):
            told[name] = [{"name": c.name, "entities_loaded": c.entities_loaded} for c in counts]
        told |= {"total_entities": self.total_entities, "duplicates_merged": self.duplicates_merged}
        told |= {"rejected": self.rejected, "rejects_file": self.rejects_file, "operation_id": self.operation_id}
        told |= {"commit": self.commit, "index_commit": self.index_commit, "warnings": list(self.warnings) or None}
        return {name: value for name, value in told.items() if value is not None}


@dataclass
class LoadRun:
    """One load from the first row to the commit."""

    ctx: CommitContext
    open_view: Callable[[], View]
    options: LoadOptions
    notes: Annotations
    progress: Progress
    bench: Bench
    intake: Intake
    rejects_path: str | None = None
    operation_id: str = field(default_factory=new_ulid)
    beat: StagingBeat | None = None
    duplicates_merged: int = 0
    changes: ChangeSet = field(default_factory=ChangeSet)
    written: WrittenRejects | None = None
    kept: Kept | None = None

    def commit(self) -> LoadResult:
        self._refuse_unread()
        self.changes = self._changes()
        rows = sum(change.row_count for change in self.changes.tables.values())
        if self.beat is not None or rows < _BULK_ROWS:
            return self._commit()
        with staging_heartbeat(self.ctx, self.operation_id, self.open_view().branch, self.notes.actor) as self.beat:
            return self._commit()

    def _commit(self) -> LoadResult:
        self.progress("check", 0)
        view = self.open_view()
        check = self.bench.check(view, self.changes, self.intake.findings)
        self.duplicates_merged = drop_superseded(check)
        base = dict(self.changes.tables)
        retries = self.ctx.settings.write_retries if self.options.retries is None else self.options.retries
        try:
            receipt = commit_with_retries(
                self.ctx,
                self.open_view,
                lambda attempt: self._prepare(attempt, base),
                retries=0 if self.options.mode == "overwrite" else retries,
            )
        except BaseException:
            if self.written is not None:
                self.written.discard()
            raise
        assert receipt is not None
        return self._result(view, receipt)

    def _refuse_unread(self) -> None:
        """Fail early on what no stored row can change."""
        found = self.intake.findings.first_stage()
        if found is not None and found < Stage.IDS:
            self._raise_refusal(self.intake.findings)

    def _raise_refusal(self, findings: Findings) -> None:
        stage = findings.first_stage()
        if stage is not None and self.intake.unnumbered:
            findings.fill_rows(stage, self.intake.unnumbered, self._rows_at)
        error = refusal(findings, self.intake.files, self.intake.unnumbered)
        if isinstance(error, InvalidData) and self.options.quarantines:
            error.hint = "Nothing was written. This cannot be mended by setting rows aside; correct the input."
        if error is not None:
            raise error

    def _rows_at(self, positions: list[int]) -> dict[int, str]:
        """The values of some rows, for errors about rows that have no line."""
        found: dict[int, str] = {}
        for rows in self.intake.rows.values():
            for batch in rows.at(np.array(positions, np.int64)):
                texts = json_rows(pa.Table.from_batches([batch.drop_columns([POSITION])]))
                for position, values in zip(batch.column(POSITION).to_pylist(), texts, strict=True):
                    found[position] = orjson.dumps(values).decode()
        return found

    def _changes(self) -> ChangeSet:
        mode = self.options.mode
        return ChangeSet(
            {
                key: TableChange(
                    key,
                    rows,
                    replaces_all=mode == "overwrite",
                    strict_insert=mode == "append",
                    has_fresh_ids=key not in self.intake.explicit_ids,
                )
                for key, rows in self.intake.rows.items()
                if rows.num_rows
            }
        )

    def _prepare(self, attempt: Attempt, base: Mapping[str, TableChange]) -> WritePlan:
        if attempt.view.catalog != self.intake.catalog:
            raise Conflict("the schema changed during the load", "Nothing was written. Load again.")
        if self.intake.rejects is not None:
            return self._plan(attempt, self._prepare_without_bad(attempt, base, self.intake.rejects.attempt()), {})
        findings = self._findings()
        touched = None if self.kept is None else recheck(self.kept, attempt.view, findings, self.bench)
        if self.kept is not None and touched is not None:
            self._raise_refusal(findings)
            staged = {key: one for key, one in self.kept.staged.items() if key not in touched}
            return self._plan(attempt, self.kept.read, staged)
        self.changes = ChangeSet(dict(base))
        findings = self._findings()
        read = validate(self.bench.check(attempt.view, self.changes, findings))
        self._raise_refusal(findings)
        return self._plan(attempt, read, self.kept.staged if self.kept and self.options.mode == "append" else {})

    def _findings(self) -> Findings:
        """What was found while reading, for the stages across rows to add to."""
        findings = Findings(self.intake.findings.listed_max)
        findings.merge(self.intake.findings)
        return findings

    def _plan(self, attempt: Attempt, read: frozenset[str], staged: Mapping[str, StagedWrite]) -> WritePlan:
        self.progress("write", 0)
        view = attempt.writable(self.changes.tables, self.notes.actor)
        if self.beat is not None:
            self.beat.pin(view)
        operation = self.operation_id if self.kept is None else None
        plan = plan_changeset(view, self.changes, read, LOAD, self.notes, self.bench, operation, staged)
        steps = {effect.table_key: effect.steps[0] for effect in plan.effects}
        done = {key: step for key, step in steps.items() if isinstance(step, StagedWrite)}
        self.kept = Kept(view, self.changes, read, done)
        return plan

    def _prepare_without_bad(
        self, attempt: Attempt, base: Mapping[str, TableChange], rejects: Rejects
    ) -> frozenset[str]:
        self.changes = ChangeSet({key: replace(change) for key, change in base.items()})
        findings = self._findings()
        check = self.bench.check(attempt.view, self.changes, findings, rejects)
        for stage in (check_ids, check_all_values):
            stage(check)
            rejects.drop(self.changes)
        # A row left out no longer replaces its stored row, whose values may then be taken: look again.
        while True:
            check_unique(check)
            dropped = rejects.drop(self.changes)
            check_endpoints(check)
            self._raise_refusal(findings)
            if not dropped + rejects.drop(self.changes):
                break
        check_cardinality(check)
        self._raise_refusal(findings)
        assert self.rejects_path is not None
        if self.written is not None:
            self.written.discard()
        self.written = rejects.write(self.rejects_path)
        return frozenset(check.stored.read)

    def _result(self, view: View, receipt: Receipt) -> LoadResult:
        counts = {key: change.row_count for key, change in sorted(self.changes.tables.items())}
        named = {
            kind: tuple(TypeCount(key.split(":", 1)[1], n) for key, n in counts.items() if key.startswith(f"{kind}:"))
            for kind in ("node", "edge")
        }
        warnings: tuple[str, ...] = ()
        kept = self.written.keep() if self.written is not None else None
        if kept is not None and kept != self.rejects_path:
            warnings = (f"rejects file '{self.rejects_path}' appeared meanwhile; the rejected rows are in '{kept}'",)
        return LoadResult(
            uri=self.ctx.root.uri,
            branch=branch_label(view.branch),
            mode=self.options.mode,
            nodes=named["node"],
            edges=named["edge"],
            duplicates_merged=self.duplicates_merged,
            rejected=self.written.rows if self.written is not None else 0,
            operation_id=receipt.operation_id,
            commit=receipt.graph_commit_id,
            engine=self.bench.engine,
            rejects_file=kept,
            warnings=warnings,
        )


def load_files(
    ctx: CommitContext,
    open_view: Callable[[], View],
    inputs: Sequence[str],
    options: LoadOptions,
    notes: Annotations,
    progress: Progress | None = None,
    access: S3Access | None = None,
) -> LoadResult:
    """Load NDJSON files, directories of them, or standard input (`-`); with `access` also objects in S3."""
    tell = progress or quiet
    view = open_view()
    sources = find_sources(inputs, access)
    path = rejects_path_of(options, str(inputs[0]) if inputs else None)
    with Scratch(ctx.settings) as scratch:
        limit = options.max_errors or ctx.settings.load_max_errors
        intake = read_files(sources, view.catalog, ctx.settings, scratch, limit, options.quarantines, tell)
        bench = EmbeddedBench(scratch)
        return LoadRun(ctx, open_view, options, notes, tell, bench, intake, path).commit()


def load_tables(
    ctx: CommitContext,
    open_view: Callable[[], View],
    frames: Mapping[str, Frame],
    options: LoadOptions,
    notes: Annotations,
    progress: Progress | None = None,
) -> LoadResult:
    """Load Arrow, pandas or polars frames by type name."""
    tell = progress or quiet
    view = open_view()
    path = rejects_path_of(options, None)
    with Scratch(ctx.settings) as scratch:
        limit = options.max_errors or ctx.settings.load_max_errors
        intake = read_frames(frames, view.catalog, ctx.settings, scratch, limit, options.quarantines, tell)
        bench = EmbeddedBench(scratch)
        return LoadRun(ctx, open_view, options, notes, tell, bench, intake, path).commit()


def indexed(ctx: CommitContext, open_view: Callable[[], View], done: LoadResult, actor: str | None) -> LoadResult:
    """Bring the indexes up to date in a commit of its own; the data stays whatever becomes of it."""
    try:
        built = ensure_indices(ctx, open_view, Annotations(actor))
    except OmniError as error:
        _log.warning("the rows are loaded, their indexes were not built: %s", error)
        told = f"the rows are loaded, their indexes were not built: {error}"
        return replace(done, warnings=(*done.warnings, told))
    return replace(done, index_commit=built.commit)


def rejects_path_of(options: LoadOptions, first_input: str | None) -> str | None:
    if not options.quarantines:
        return None
    if options.rejects is None and first_input in (None, STDIN):
        raise BadRequest("the rejects file has no name", "Give one; its default is made from the first input file.")
    path = options.rejects or f"{(first_input or '').rstrip('/')}.rejects.jsonl"
    refuse_present(path)
    return path


def quiet(_stage: str, _rows: int) -> None:
    return None
