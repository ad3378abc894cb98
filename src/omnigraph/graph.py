"""The handle users hold. Every method is a few lines and delegates down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from os import PathLike, fspath
from types import TracebackType
from typing import Any, Self

from omnigraph.base.errors import BadRequest, Conflict
from omnigraph.base.ids import new_ulid
from omnigraph.catalog.contract import accept
from omnigraph.commit.branches import make_branch, remove_branch
from omnigraph.commit.context import CommitContext
from omnigraph.commit.locks import Holder
from omnigraph.commit.plan import LOAD, Receipt, Writer
from omnigraph.commit.protocol import commit_plan
from omnigraph.commit.tags import remove_tag
from omnigraph.engine import opening
from omnigraph.engine.operations import OperationOutcome, Recoveries, outcome_of, recoveries
from omnigraph.engine.status import GraphStatus, break_lock, breakable_lock, read_locks, read_status
from omnigraph.engine.targets import refuse_pinned, tag_target
from omnigraph.engine.upkeep.cleanup import cleanup
from omnigraph.engine.upkeep.result import CleanupResult
from omnigraph.engine.view import View
from omnigraph.engine.write.changes import Annotations, Change, plan_changes
from omnigraph.engine.write.ensure_indices import IndexResult, ensure_indices
from omnigraph.engine.write.frames import Frame
from omnigraph.engine.write.intake import Progress
from omnigraph.engine.write.load import LoadOptions, LoadResult, Mode, OnError, indexed, load_files, load_tables
from omnigraph.engine.write.mutate import Call, MutationResult, mutate
from omnigraph.engine.write.retry import told_if_deleted, writable
from omnigraph.graph_history import History
from omnigraph.graph_merges import Merges
from omnigraph.graph_reads import OpenMode
from omnigraph.graph_schema import Schemas
from omnigraph.graph_travel import Travel
from omnigraph.graph_upkeep import Upkeep
from omnigraph.graph_verify import Verifies
from omnigraph.manifest.branches import visible_branches
from omnigraph.manifest.genesis import init_graph
from omnigraph.manifest.store import branch_label, branch_name
from omnigraph.manifest.tags import Tag
from omnigraph.settings import Settings
from omnigraph.storage.places import open_root
from omnigraph.storage.s3 import S3Access


class Graph(Merges, History, Travel, Schemas, Upkeep, Verifies):
    """A graph at one place. Safe to use from several threads."""

    @classmethod
    def init(cls, uri: str, schema: str, *, force: bool = False, settings: Settings | None = None) -> Self:
        """Create an empty graph of the `.pg` schema and open it read-write."""
        ctx = _context(uri, settings)
        init_graph(ctx.manifest, accept(schema, new_ulid()), force)
        return cls.open(uri, settings=ctx.settings)

    @classmethod
    def open(cls, uri: str, mode: OpenMode | str = OpenMode.READ_WRITE, *, settings: Settings | None = None) -> Self:
        """Open a graph. Read-write settles interrupted writes first; read-only changes nothing on disk."""
        try:
            mode = OpenMode(mode)
        except ValueError as error:
            raise BadRequest(f"unknown open mode {mode!r}", "Use 'r' or 'rw'.") from error
        ctx = _context(uri, settings)
        opening.open_graph(ctx, writable=mode is OpenMode.READ_WRITE)
        graph = cls(ctx, mode)
        graph.schema()
        return graph

    def close(self) -> None:
        """Bring the commit tables up to date; the handle may still be used for reading."""
        self._desk.clear()
        if self._mode is OpenMode.READ_WRITE:
            self._ctx.projections.catch_up(self._ctx.manifest.state(self._branch))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def branch_list(self) -> list[str]:
        return visible_branches(self._ctx.manifest)

    def branch_create(self, name: str) -> None:
        """A new branch at the head of the current one."""
        self.branch_create_from(branch_label(self._branch), name)

    def branch_create_from(self, source: str, name: str) -> None:
        """A new branch at the head of `source`; no data is copied."""
        self.refuse_read_only()
        refuse_pinned(self._ctx.manifest, source)
        make_branch(self._ctx, self._on(source), name)

    def branch_delete(self, name: str) -> None:
        self.refuse_read_only()
        remove_branch(self._ctx, name.strip(), self._branch)

    def tag_create(
        self, name: str, target: str | None = None, *, actor: str | None = None, message: str | None = None
    ) -> Tag:
        """Name a commit for good: the head of the current branch, or what a branch, a tag, an id or `NAME~n` names.

        What it shows is kept by every cleanup while the tag is there.
        """
        self.refuse_read_only()
        named = branch_label(self._branch) if target is None else target
        return tag_target(self._ctx, name, named, actor, message)

    def tag_delete(self, name: str) -> None:
        self.refuse_read_only()
        remove_tag(self._ctx, name)

    def sync_branch(self, name: str) -> None:
        """Make `name` the branch of later calls that name none."""
        branch = self._on(name)
        self._ctx.manifest.state(branch)
        self._branch = branch

    def refresh(self) -> None:
        """See the newest head, settle interrupted writes where possible, bring the commit tables up to date."""
        self._schema.forget()
        self._ctx.manifest.forget(self._branch)
        self._newest = None
        if self._mode is OpenMode.READ_WRITE:
            opening.settle_pending(self._ctx, self._branch)
        self.schema()

    def operation(self, operation_id: str) -> OperationOutcome:
        return outcome_of(self._ctx, operation_id)

    def recoveries(self) -> Recoveries:
        return recoveries(self._ctx)

    def status(self) -> GraphStatus:
        return read_status(self._ctx, self.schema().catalog)

    def locks(self) -> tuple[Holder, ...]:
        """Who holds the lock of each branch, or held it last."""
        return read_locks(self._ctx)

    def breakable_lock(self, branch: str | None = None) -> Holder | None:
        """Whom `break_lock` would take the lock from; None when it is free."""
        return breakable_lock(self._ctx, branch_name(branch))

    def break_lock(self, branch: str | None = None) -> Holder | None:
        """Free a lock that its holder does not give back; who had it, or None when it was free.

        On a local disk the system frees the locks of dead processes, so one that is held is refused with its pid.
        """
        self.refuse_read_only()
        return break_lock(self._ctx, branch_name(branch))

    def write(
        self,
        changes: Mapping[str, Change],
        *,
        writer: Writer = LOAD,
        branch: str | None = None,
        actor: str | None = None,
        message: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        if_commit: str | None = None,
        view: View | None = None,
    ) -> Receipt:
        """Commit changes of several tables (`{"node:Person": Upsert(rows)}`) as one atomic commit.

        `view`: what the changes were prepared on; the write is refused if a table it touches has moved since.
        """
        self.refuse_read_only()
        notes = Annotations(actor, message, metadata, if_commit)
        fixed = view or self.view(branch)
        with told_if_deleted(self._ctx, fixed):
            ready = writable(self._ctx, fixed, changes, actor)
            return commit_plan(self._ctx, plan_changes(ready, changes, writer, notes))

    def mutate(
        self,
        source: str,
        params: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        branch: str | None = None,
        actor: str | None = None,
        message: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        if_commit: str | None = None,
        retries: int | None = None,
    ) -> MutationResult:
        """Run a mutation query (`insert`, `update`, `delete`) as one atomic commit; nothing changed, no commit."""
        self.refuse_read_only()
        notes = Annotations(actor, message, metadata, if_commit)
        return mutate(self._ctx, lambda: self.view(branch), Call(source, name, params), notes, retries)

    def mutate_as(
        self, actor: str, source: str, params: Mapping[str, Any] | None = None, **more: Any
    ) -> MutationResult:
        return self.mutate(source, params, actor=actor, **more)

    def load(
        self,
        files: str | PathLike[str] | Sequence[str | PathLike[str]],
        *,
        mode: Mode,
        on_error: OnError = "fail",
        rejects: str | None = None,
        max_errors: int | None = None,
        retries: int | None = None,
        actor: str | None = None,
        message: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        if_commit: str | None = None,
        progress: Progress | None = None,
        branch: str | None = None,
        from_branch: str | None = None,
        index: bool = True,
    ) -> LoadResult:
        """Load NDJSON files, directories or standard input (`-`) as one commit, then build missing indexes.

        `from_branch`: make `branch` from it if it is not there. `progress` is told the stage and the rows read so far.
        """
        options = LoadOptions(mode, on_error, rejects, max_errors, retries)
        notes = Annotations(actor, message, metadata, if_commit)
        names = [fspath(files)] if isinstance(files, str | PathLike) else [fspath(file) for file in files]
        created = self.branch_for_load(branch, from_branch)
        access = s3_access(self.settings)
        done = load_files(self._ctx, lambda: self.view(branch), names, options, notes, progress, access)
        return self.after_load(replace(done, base_branch=from_branch, branch_created=created), branch, index, actor)

    def load_frames(
        self,
        frames: Mapping[str, Frame],
        *,
        mode: Mode,
        branch: str | None = None,
        from_branch: str | None = None,
        index: bool = True,
        actor: str | None = None,
        message: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        if_commit: str | None = None,
        progress: Progress | None = None,
        **options: Any,
    ) -> LoadResult:
        """Load Arrow, pandas or polars frames by type name; `options` are those of `load`."""
        chosen, notes = LoadOptions(mode, **options), Annotations(actor, message, metadata, if_commit)
        created = self.branch_for_load(branch, from_branch)
        done = load_tables(self._ctx, lambda: self.view(branch), frames, chosen, notes, progress)
        return self.after_load(replace(done, base_branch=from_branch, branch_created=created), branch, index, actor)

    def load_as(
        self, actor: str, files: str | PathLike[str] | Sequence[str | PathLike[str]], **more: Any
    ) -> LoadResult:
        return self.load(files, actor=actor, **more)

    def branch_for_load(self, branch: str | None, base: str | None) -> bool:
        """Make the branch from its base if it is not there; whether it was made."""
        self.refuse_read_only()
        name = self._on(branch)
        if base is None or name is None or name in self.branch_list():
            return False
        try:
            self.branch_create_from(base, name)
        except Conflict:
            # Another load may have made it meanwhile, which is as good.
            if name not in self.branch_list():
                raise
            return False
        return True

    def after_load(self, done: LoadResult, branch: str | None, index: bool, actor: str | None) -> LoadResult:
        """The result of a load, its indexes built if they are wanted."""
        return indexed(self._ctx, lambda: self.view(branch), done, actor) if index else done

    def ensure_indices(
        self, branch: str | None = None, *, actor: str | None = None, message: str | None = None
    ) -> IndexResult:
        """Build every declared index that is missing and fold in rows that came since."""
        self.refuse_read_only()
        return ensure_indices(self._ctx, lambda: self.view(branch), Annotations(actor, message))

    def cleanup(
        self, keep: int | None = None, older_than: timedelta | None = None, *, confirm: bool = False
    ) -> CleanupResult:
        """Remove leftovers and what no kept commit needs; without `confirm` nothing is touched, only told."""
        if confirm:
            self.refuse_read_only()
        return cleanup(self._ctx, keep, older_than, confirm)


def s3_access(chosen: Settings) -> S3Access:
    """How the settings say S3 is reached, for graphs and for the sources of their loads."""
    return S3Access(
        region=chosen.aws_region,
        access_key_id=chosen.aws_access_key_id,
        secret_access_key=chosen.aws_secret_access_key,
        session_token=chosen.aws_session_token,
        endpoint=chosen.aws_endpoint_url_s3 or chosen.aws_endpoint_url,
        path_style=chosen.aws_path_style,
        allow_http=chosen.aws_allow_http,
        timeout_ms=chosen.storage_timeout_ms,
        retry_timeout_ms=chosen.storage_retry_timeout_ms,
    )


def _context(uri: str, settings: Settings | None) -> CommitContext:
    chosen = settings or Settings.resolve()
    return CommitContext.of(open_root(uri, s3_access(chosen), syncs=chosen.storage_durability == "full"), chosen)
