"""Everything `import omnigraph as og` offers, in one list. The package itself loads it only when asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property, partial
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

from omnigraph import graph as handle
from omnigraph.base.errors import (
    BadRequest,
    BreaksQueries,
    CatalogError,
    ChangeDiffRefusal,
    ChangeFeedGap,
    Conflict,
    Drift,
    ExpectedVersionMismatch,
    GraphMoved,
    InternalError,
    InvalidData,
    KeyConflict,
    LimitExceeded,
    MergeConflicts,
    NotFound,
    OmniError,
    ParseError,
    PolicyDenied,
    PreconditionFailed,
    Reclaimed,
    RecoveryRequired,
    RowLevelCasContention,
    TypeCheckError,
    Unavailable,
    UnsupportedSchemaChange,
)
from omnigraph.base.moments import Moment
from omnigraph.catalog.evolution.plan import SchemaPlan
from omnigraph.commit.context import CommitContext
from omnigraph.engine.analytics.call import Asked, Scope
from omnigraph.engine.analytics.memory import in_memory
from omnigraph.engine.analytics.run import chosen_engine, valued
from omnigraph.engine.changes.model import ChangeSet
from omnigraph.engine.clone.result import CloneResult, Tell, silent
from omnigraph.engine.clone.run import clone_graph
from omnigraph.engine.log import LogEntry
from omnigraph.engine.merge.result import MergePreview, MergeResult
from omnigraph.engine.merge.rooms import Room, Sides, choose_merge_engine, embedded_room
from omnigraph.engine.read.engines import choose_engine as choose_query_engine
from omnigraph.engine.read.query import ReadCall
from omnigraph.engine.read.result import QueryResult
from omnigraph.engine.repair.result import RepairResult
from omnigraph.engine.repair.run import repair as repair_graph
from omnigraph.engine.upkeep.keeper import Outcome, run_rules
from omnigraph.engine.upkeep.optimize import run_here
from omnigraph.engine.upkeep.optimized import OptimizeResult
from omnigraph.engine.upkeep.rules import WHOLE_GRAPH
from omnigraph.engine.verify.findings import Finding, VerifyResult
from omnigraph.engine.verify.run import verify as verify_graph
from omnigraph.engine.write.changes import (
    Append,
    BuildIndexes,
    Compact,
    Delete,
    DeleteWhere,
    Fragments,
    Overwrite,
    Upsert,
)
from omnigraph.engine.write.engines import check_engine, choose_engine
from omnigraph.engine.write.intake import Progress
from omnigraph.engine.write.load import LoadResult, Mode
from omnigraph.graph_reads import OpenMode
from omnigraph.manifest.lineage import GraphCommit
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.manifest.tags import Tag
from omnigraph.records.sources import find_sources, stored_bytes
from omnigraph.settings import Settings
from omnigraph.storage.compaction import RewriteTask
from omnigraph.storage.places import open_root

if TYPE_CHECKING:
    from omnigraph.pipeline.frames_api import SparkGraph


class Graph(handle.Graph):
    """A graph at one place, with the rooms above it as namespaces. Safe to use from several threads."""

    @cached_property
    def spark(self) -> SparkGraph:
        """The graph as DataFrames; Spark is loaded when this is first used."""
        from omnigraph.pipeline.frames_api import SparkGraph

        return SparkGraph(self)

    def load(
        self,
        files: str | PathLike[str] | Sequence[str | PathLike[str]],
        *,
        mode: Mode,
        engine: str = "auto",
        tell_tasks: Callable[[int, int], None] | None = None,
        **options: Any,
    ) -> LoadResult:
        """Load NDJSON files, directories or standard input (`-`) as one commit, then build missing indexes.

        `engine`: `embedded` reads in this process, `spark` on executors; `auto` takes Spark for large inputs and where
        a master is configured; both give the same. `tell_tasks` is told how many Spark tasks are done, and of how many
        known so far.

        Other options: `branch`, and `from_branch` to make it from; `message`, `actor` and `metadata` for the commit;
        `on_error="quarantine"` with `rejects`, a file for bad rows; `max_errors` to list; `if_commit`, the head the
        branch must have; `retries`; `index=False`; `progress`, told the stage and the rows read so far.
        """
        names = [fspath(files)] if isinstance(files, str | PathLike) else [fspath(file) for file in files]
        if self.load_engine(names, engine) == "embedded":
            return super().load(names, mode=mode, **options)
        from omnigraph.pipeline.load import load_files

        return load_files(self, names, mode=mode, tell_tasks=tell_tasks, **options)

    def query(
        self, source: str, params: Mapping[str, Any] | None = None, *, engine: str = "auto", **options: Any
    ) -> QueryResult:
        """Run a read query over the newest commit of a branch, or over an older one.

        `engine`: `embedded` answers in this process, `spark` on executors; `auto` takes Spark where a master is
        configured and the types asked about do not fit the memory a query may take; both give the same rows.

        Other options: `name`, where the source holds several queries; `branch`; `snapshot`, a tag, a commit id,
        `NAME~n` or a snapshot in hand; `as_of`, a time on the branch; `timeout_ms`; `exact=True`, without vector
        indexes; `analyze=True`, which fills `plan` of the result.
        """
        configured = self.settings.spark_master is not None or self.settings.spark_remote is not None
        if engine == "embedded" or (engine == "auto" and not configured):
            return super().query(source, params, **options)
        if self._query_engine(engine, source, options) == "embedded":
            return super().query(source, params, **options)
        return self.spark.answer(source, params, **options)

    def _query_engine(self, engine: str, source: str, options: Mapping[str, Any]) -> str:
        view, _ = self.view_of(options.get("branch"), options.get("snapshot"), options.get("as_of"))
        compiled = self.reader.compiled(view.catalog, ReadCall(source, options.get("name")))
        return choose_query_engine(engine, view, compiled.columns, self.settings)

    def analytics(
        self,
        algorithm: str,
        edges: str | Sequence[str],
        *,
        branch: str | None = None,
        snapshot: str | Snapshot | None = None,
        as_of: Moment | None = None,
        engine: str = "auto",
        **options: Any,
    ) -> QueryResult:
        """One value for each node at the ends of some edge types: `id`, `type` and `value`, by id.

        `pagerank` (`damping=0.85, iterations=20, tolerance=1e-6`), `components` (the smallest id each is connected
        with), `degree` (`direction="out"`, `"in"` or `"both"`). `auto` takes Spark where the edges do not fit memory.
        """
        names = [edges] if isinstance(edges, str) else list(edges)
        view, target = self.view_of(branch, snapshot, as_of)
        asked = Asked(algorithm, names, **options)
        scope = Scope.of(view.catalog, asked.edges)
        if chosen_engine(engine, view, scope, self.settings) == "embedded":
            identity = self.context.manifest.remembered(None).incarnation
            table = in_memory(view, self.reader.named(identity), self.reader.hot, scope, asked)
        else:
            table = self.spark.analytics(view, scope, asked)
        return valued(table, asked, view, target)

    def branch_merge(
        self,
        source: str,
        into: str = "main",
        *,
        engine: str = "auto",
        tell_tasks: Callable[[int, int], None] | None = None,
        **options: Any,
    ) -> MergeResult | MergePreview:
        """Bring what `source` changed into `into` as one commit there; all conflicts are raised as MergeConflicts.

        `engine`: `embedded` merges in this process, `spark` on executors; `auto` takes Spark where very many rows
        differ and where a master is configured; both give the same. `tell_tasks` is told as by `load`.

        Other options: `dry_run=True`, only tell what would happen, at most `limit` changes by name; `strategy`, `ours`
        or `theirs`, who wins where rows conflict; `resolve`, a file of choices, which a dry run makes;
        `granularity="property"`; `delete_branch=True`; `message`, `actor` and `metadata` for the commit; `progress`.
        """
        check_engine(engine)
        room = partial(_merge_room, engine=engine, tell_tasks=tell_tasks)
        return super().branch_merge(source, into, open_room=room, **options)

    def optimize(
        self,
        branch: str | None = "main",
        *,
        engine: str = "auto",
        tell_tasks: Callable[[int, int], None] | None = None,
        **options: Any,
    ) -> OptimizeResult:
        """Fold small fragments of the tables the branch owns, bring indexes up to date; rows and ids stay as they are.

        `engine`: `embedded` rewrites in this process, `spark` on executors; `auto` takes Spark where much is to be
        rewritten and where a master is configured; both give the same. `tell_tasks` is told as by `load`.

        Other options: `message` and `actor` for the commit.
        """
        check_engine(engine)
        run_tasks = partial(_rewritten, settings=self.settings, engine=engine, tell_tasks=tell_tasks)
        return super().optimize(branch, run_tasks=run_tasks, **options)

    def upkeep(self, rules: str | PathLike[str], *, dry_run: bool = False) -> tuple[Outcome, ...]:
        """Run every rule of a file that is due, once and in order; what fails is told in its `error`, others run.

        `dry_run`: only tell what is due. When `cleanup` and `verify` last ran is noted in `FILE.state.json`.
        """
        from omnigraph.pipeline.rules_file import RunNotes, read_rules

        if not dry_run:
            self.refuse_read_only()
        file = fspath(rules)
        found, notes = read_rules(file), RunNotes.beside(file)
        outcomes = run_rules(self, found, notes.read(self.uri), dry_run)
        ran = {o.rule: o.at_us for o in outcomes if o.do in WHOLE_GRAPH and o.error is None}
        if ran and not dry_run:
            notes.add(self.uri, ran)
        return tuple(outcomes)

    def load_engine(self, files: Sequence[str], engine: str = "auto") -> str:
        """Which engine a load of these inputs takes: `embedded` or `spark`."""
        size = stored_bytes(find_sources(files, handle.s3_access(self.settings)))
        return choose_engine(engine, size, self.settings)


def _rewritten(
    tasks: Sequence[RewriteTask], settings: Settings, engine: str, tell_tasks: Callable[[int, int], None] | None
) -> list[str]:
    if choose_engine(engine, sum(task.bytes for task in tasks), settings) == "embedded":
        return run_here(tasks, settings)
    from omnigraph.pipeline.optimize import rewrite_on_spark

    return rewrite_on_spark(tasks, settings, tell_tasks)


def _merge_room(
    sides: Sides, engine: str, tell_tasks: Callable[[int, int], None] | None
) -> AbstractContextManager[Room]:
    if choose_merge_engine(engine, sides) == "embedded":
        return embedded_room(sides)
    from omnigraph.pipeline.merge.room import spark_room

    return spark_room(sides, tell_tasks)


def clone(
    source: str,
    target: str,
    *,
    branch: str | Sequence[str] | None = None,
    settings: Settings | None = None,
    progress: Tell | None = None,
) -> CloneResult:
    """Copy a graph to an empty place, on a local disk or an object store, while others go on writing to it.

    All branches, or main, the named ones and those they were made from. `progress` is told the stage, how much of it is
    done, and of how much. A clone that was interrupted goes on when it is called again.
    """
    chosen = settings or Settings.resolve()
    names = [branch] if isinstance(branch, str) else branch
    return clone_graph(_context(source, chosen), _context(target, chosen), names, progress or silent)


def verify(
    uri: str,
    branches: str | Sequence[str] = (),
    *,
    settings: Settings | None = None,
    progress: Progress | None = None,
) -> VerifyResult:
    """Read everything of a graph, or of some branches, and tell what is broken; it need not open, nothing is changed.

    `progress` is told the stage and the rows read so far.
    """
    names = [branches] if isinstance(branches, str) else branches
    return verify_graph(_context(uri, settings or Settings.resolve()), names, progress)


def repair(
    uri: str,
    *,
    confirm: bool = False,
    force: bool = False,
    settings: Settings | None = None,
    progress: Progress | None = None,
) -> RepairResult:
    """Mend what can be mended of a graph, which need not open; without `confirm` nothing is touched, only told.

    `force`: also show rows that another tool wrote, if they keep every rule of the schema.
    """
    ctx = _context(uri, settings or Settings.resolve())
    return repair_graph(ctx, confirm=confirm, force=force, progress=progress)


def _context(uri: str, chosen: Settings) -> CommitContext:
    root = open_root(uri, handle.s3_access(chosen), syncs=chosen.storage_durability == "full")
    return CommitContext.of(root, chosen)


Omnigraph = Graph

__all__ = [
    "Append",
    "BadRequest",
    "BreaksQueries",
    "BuildIndexes",
    "CatalogError",
    "ChangeDiffRefusal",
    "ChangeFeedGap",
    "ChangeSet",
    "CloneResult",
    "Compact",
    "Conflict",
    "Delete",
    "DeleteWhere",
    "Drift",
    "ExpectedVersionMismatch",
    "Finding",
    "Fragments",
    "Graph",
    "GraphCommit",
    "GraphMoved",
    "InternalError",
    "InvalidData",
    "KeyConflict",
    "LimitExceeded",
    "LogEntry",
    "MergeConflicts",
    "MergePreview",
    "MergeResult",
    "NotFound",
    "OmniError",
    "Omnigraph",
    "OpenMode",
    "Overwrite",
    "ParseError",
    "PolicyDenied",
    "PreconditionFailed",
    "QueryResult",
    "Reclaimed",
    "RecoveryRequired",
    "RepairResult",
    "RowLevelCasContention",
    "SchemaPlan",
    "Settings",
    "Snapshot",
    "Tag",
    "TypeCheckError",
    "Unavailable",
    "UnsupportedSchemaChange",
    "Upsert",
    "VerifyResult",
    "clone",
    "repair",
    "verify",
]
