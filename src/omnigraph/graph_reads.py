"""What a handle reads: snapshots, queries, SQL, exports. Nothing here changes anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

from omnigraph.base.errors import BadRequest
from omnigraph.base.moments import Moment
from omnigraph.catalog.catalog import Catalog
from omnigraph.catalog.contract import AcceptedSchema
from omnigraph.commit.context import CommitContext
from omnigraph.engine.export import export
from omnigraph.engine.read.query import ReadCall, Reader
from omnigraph.engine.read.result import QueryResult
from omnigraph.engine.read.sql import Sql, run_sql
from omnigraph.engine.schema import SchemaKeeper
from omnigraph.engine.targets import snapshot_of
from omnigraph.engine.view import Current, View
from omnigraph.manifest.snapshot import Snapshot, SubTableEntry
from omnigraph.manifest.store import BranchState, branch_label, branch_name, refuse_internal
from omnigraph.records.encode import json_rows
from omnigraph.settings import Settings
from omnigraph.storage.tables import Table


class OpenMode(Enum):
    READ_ONLY = "r"
    READ_WRITE = "rw"


class Reads:
    """The reading half of a graph handle. Safe to use from several threads."""

    def __init__(self, context: CommitContext, mode: OpenMode) -> None:
        self._ctx = context
        self._mode = mode
        self._branch: str | None = None
        self._schema = SchemaKeeper(context.manifest)
        self._reader = Reader(context.settings, context.root.uri)
        self._newest: tuple[BranchState, View] | None = None
        """The last view of main and the head it shows."""
        context.watchers.append(self._committed)

    def __repr__(self) -> str:
        mode = "" if self._mode is OpenMode.READ_WRITE else ", read-only"
        return f"<Graph {self.uri} on branch {branch_label(self._branch)}{mode}>"

    def refuse_read_only(self) -> None:
        if self._mode is OpenMode.READ_ONLY:
            raise BadRequest("the graph is open read-only", "Open it with mode 'rw' to write.")

    @property
    def uri(self) -> str:
        return self._ctx.root.uri

    @property
    def context(self) -> CommitContext:
        return self._ctx

    @property
    def settings(self) -> Settings:
        return self._ctx.settings

    def schema(self, branch: str | None = None) -> AcceptedSchema:
        """The schema in force, which is the same on every branch."""
        if self._on(branch) is not None:
            self._ctx.manifest.state(self._on(branch))
        return self._schema.accepted(self._ctx.manifest.state())

    def current(self, state: BranchState | None = None) -> Current:
        """The schema in force and where its types lie; `state`: a branch as it was just read."""
        known = state if state is not None and state.branch is None else self._ctx.manifest.state()
        catalog, main = self._in_force(known)
        return Current(self._ctx.root, catalog, main.entries)

    def _in_force(self, main: BranchState) -> tuple[Catalog, BranchState]:
        """The schema in force and the head of main that it is in force at: `main`, as it was just read, or a later one.

        Reading a new schema may take a later head, and other threads move it too: as long as one came between the
        two looks, they may be of different moments, and a name that was dropped and made again is another type.
        """
        while True:
            accepted = self._schema.accepted(main)
            now = self._ctx.manifest.remembered()
            if now is main:
                return accepted.catalog, main
            main = now

    @property
    def catalog(self) -> Catalog:
        return self.schema().catalog

    def view(self, branch: str | None = None) -> View:
        """The branch as it is now, fixed."""
        return self._view(self._on(branch))

    def _view(self, name: str | None) -> View:
        if name is not None:
            state = self._ctx.manifest.state(name)
            return self.current(state).view(state.snapshot(), state.incarnation)
        main = self._ctx.manifest.state()
        known = self._newest
        return known[1] if known is not None and known[0] is main else self._seen(main)

    def _seen(self, main: BranchState) -> View:
        """The view of main that the next read asks for if nothing moves until then."""
        catalog, main = self._in_force(main)
        view = View(self._ctx.root, main.snapshot(), catalog, main.incarnation)
        self._newest = (main, view)
        return view

    def _committed(self, identity: str, written: Mapping[str, tuple[SubTableEntry, Table]]) -> None:
        """What is kept for reading follows a commit of this handle at once, not at the next read."""
        self._reader.committed(identity, written)
        self._seen(self._ctx.manifest.remembered())

    def view_at(self, snapshot: Snapshot) -> View:
        """A snapshot of any time and branch by the schema in force."""
        return self.current().view(snapshot)

    def snapshot(self, branch: str | None = None) -> Snapshot:
        return self._ctx.manifest.state(self._on(branch)).snapshot()

    def snapshot_of(self, target: str | None = None, *, as_of: Moment | None = None) -> Snapshot:
        """The snapshot a branch, a tag, a commit id or `NAME~n` names; with `as_of` a branch as it was at a time.

        A time is RFC 3339, a date (its start in UTC), microseconds since 1970, or a datetime with a time zone.
        """
        named = branch_label(self._branch) if target is None else target
        return snapshot_of(self._ctx.manifest, named, as_of)

    def snapshot_at_version(self, version: int, branch: str | None = None) -> Snapshot:
        return self._ctx.manifest.snapshot_at(self._on(branch), version)

    def entity_at(self, table_key: str, id: str, version: int, branch: str | None = None) -> dict[str, Any] | None:
        """One node or edge as it was at a graph version; None when the table or the row was not there."""
        view = self.view_at(self.snapshot_at_version(version, branch))
        rows = json_rows(view.table(table_key).find([id])) if table_key in view.entries else []
        return rows[0] if rows else None

    def query(
        self,
        source: str,
        params: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        branch: str | None = None,
        snapshot: str | Snapshot | None = None,
        as_of: Moment | None = None,
        timeout_ms: int | None = None,
        exact: bool = False,
        analyze: bool = False,
    ) -> QueryResult:
        """Run a read query over the newest commit of a branch, or over an older one.

        `snapshot` is a tag, a commit id, `NAME~n` or a snapshot in hand; `as_of` is a time on the branch.
        """
        view, target = self.view_of(branch, snapshot, as_of)
        call = ReadCall(source, name, params, None, timeout_ms, exact, analyze)
        return self._reader.query(view, self._ctx.manifest.remembered(None).incarnation, target, call)

    @property
    def reader(self) -> Reader:
        return self._reader

    def explain(
        self,
        source: str,
        *,
        name: str | None = None,
        branch: str | None = None,
        snapshot: str | Snapshot | None = None,
        as_of: Moment | None = None,
    ) -> str:
        """How a query would be answered, with the rows each step is expected to give; nothing is run."""
        return self._reader.explain(self.view_of(branch, snapshot, as_of)[0], ReadCall(source, name))

    def view_of(
        self, branch: str | None = None, snapshot: str | Snapshot | None = None, as_of: Moment | None = None
    ) -> tuple[View, dict[str, str]]:
        """What a reader named, fixed, and its name for the answer; the catalog is today's in either case."""
        if snapshot is None and as_of is None:
            name = self._on(branch)
            return self._view(name), {"branch": branch_label(name)}
        if snapshot is not None and as_of is not None:
            raise BadRequest("a snapshot and a time were both named", "A time is one of a branch; name one of them.")
        if snapshot is not None and branch is not None:
            raise BadRequest("a branch and a snapshot were both named", "Name one of them.")
        target = branch if snapshot is None else snapshot
        found = target if isinstance(target, Snapshot) else self.snapshot_of(target, as_of=as_of)
        return self.view_at(found), {"snapshot": found.graph_commit_id or f"version {found.version}"}

    def sql(
        self,
        text: str,
        *,
        branch: str | None = None,
        snapshot: str | Snapshot | None = None,
        as_of: Moment | None = None,
        timeout_ms: int | None = None,
    ) -> QueryResult:
        """Run one SELECT over the views `node_<T>` and `edge_<E>` of a branch, or of an older commit as in `query`."""
        return run_sql(Sql(text, *self.view_of(branch, snapshot, as_of), self.settings, timeout_ms))

    def export(
        self,
        types: Sequence[str] = (),
        *,
        branch: str | None = None,
        snapshot: str | Snapshot | None = None,
        as_of: Moment | None = None,
    ) -> Iterator[bytes]:
        """A branch or an older commit as NDJSON in pieces, by table key and id; `types` chooses, none means all."""
        return export(self.view_of(branch, snapshot, as_of)[0], types, self.settings)

    def _on(self, branch: str | None) -> str | None:
        name = self._branch if branch is None else branch_name(branch)
        refuse_internal(name)
        return name
