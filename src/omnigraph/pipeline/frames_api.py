"""`graph.spark`: the types of a graph as DataFrames and in SQL, each frame pinned to one snapshot."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from omnigraph.base.moments import Moment
from omnigraph.engine.analytics.call import Asked, Scope
from omnigraph.engine.read.limits import ReadLimits
from omnigraph.engine.read.query import ReadCall
from omnigraph.engine.read.result import QueryResult
from omnigraph.engine.view import View
from omnigraph.engine.write.frames import table_type
from omnigraph.engine.write.load import LoadOptions, LoadResult, Mode, OnError
from omnigraph.graph import Graph
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.pipeline.analytics import values_frame
from omnigraph.pipeline.failures import spark_failures
from omnigraph.pipeline.frame import planned_frame
from omnigraph.pipeline.inputs import FrameInput
from omnigraph.pipeline.load import load_inputs
from omnigraph.pipeline.options import GraphOptions
from omnigraph.pipeline.query.deadline import deadline
from omnigraph.pipeline.query.run import fitted, query_frame
from omnigraph.pipeline.query.trace import NOTE, StepTrace
from omnigraph.pipeline.read_plan import READ_OPTIONS, named_snapshot, plan_frame
from omnigraph.pipeline.session import spark_session
from omnigraph.records.blobs import EXTERNAL_MARKER


class SparkGraph:
    """A graph seen from Spark. What is wrong with a call is raised here as our own error, before Spark is asked."""

    def __init__(self, graph: Graph, session: SparkSession | None = None) -> None:
        self._graph = graph
        self._session = session

    @cached_property
    def session(self) -> SparkSession:
        """The session given, the active one, or one made as the settings say."""
        return self._session if self._session is not None else spark_session(self._graph.settings)

    def nodes(
        self,
        type_name: str,
        *,
        branch: str | None = None,
        snapshot: str | None = None,
        version: int | None = None,
        as_of: Moment | None = None,
        columns: Sequence[str] | None = None,
        filter: str | None = None,
    ) -> DataFrame:
        """The nodes of a type on a branch (now, at a graph version or at a time), or at a commit, `NAME~n` or tag."""
        seen = self._seen(branch, snapshot, version, as_of)
        return self._frame(f"node:{type_name}", seen, columns, filter)

    def edges(
        self,
        type_name: str,
        *,
        branch: str | None = None,
        snapshot: str | None = None,
        version: int | None = None,
        as_of: Moment | None = None,
        columns: Sequence[str] | None = None,
        filter: str | None = None,
    ) -> DataFrame:
        """The edges of a type; `src` and `dst` are the ids of their nodes."""
        seen = self._seen(branch, snapshot, version, as_of)
        return self._frame(f"edge:{type_name}", seen, columns, filter)

    def register_views(
        self,
        prefix: str = "",
        *,
        branch: str | None = None,
        snapshot: str | None = None,
        version: int | None = None,
        as_of: Moment | None = None,
    ) -> list[str]:
        """Make a temporary view of every type, all of one snapshot; their names.

        A view is called as its type, or `node_X` and `edge_X` where both exist. A view of that name is replaced.
        """
        seen = self._seen(branch, snapshot, version, as_of)
        names = view_names(seen.tables, prefix)
        for name, table_key in names.items():
            frame = self._frame(table_key, seen, None, None)
            with spark_failures(f"making the view '{name}'"):
                frame.createOrReplaceTempView(name)
        return list(names)

    def sql(
        self,
        query: str,
        *,
        branch: str | None = None,
        snapshot: str | None = None,
        version: int | None = None,
        as_of: Moment | None = None,
        args: Mapping[str, Any] | None = None,
    ) -> DataFrame:
        """A query over the types of one snapshot by their names, beside the tables and views of the session.

        Nothing is registered: inside the query a type's name hides a view of the same name.
        """
        seen = self._seen(branch, snapshot, version, as_of)
        words = {word.lower() for word in re.findall(r"\w+", query)}
        used = {name: key for name, key in view_names(seen.tables, "").items() if name.lower() in words}
        text, frames = query, {}
        if used:
            frames = {f"omnigraph_{n}": self._frame(key, seen, None, None) for n, key in enumerate(used.values())}
            named = ", ".join(
                f"`{name}` AS (SELECT * FROM {{{frame}}})" for name, frame in zip(used, frames, strict=True)
            )
            text = f"WITH {named} (\n{_literal_braces(query)}\n)"
        with spark_failures("the query"):
            return self.session.sql(text, args=None if args is None else dict(args), **frames)

    def query(
        self,
        source: str,
        params: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        branch: str | None = None,
        snapshot: str | Snapshot | None = None,
        as_of: Moment | None = None,
    ) -> DataFrame:
        """The answer of a read query as a frame: the rows `Graph.query` gives, computed by Spark."""
        view, _ = self._graph.view_of(branch, snapshot, as_of)
        return self.query_frame(view, ReadCall(source, name, params))

    def answer(
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
        """The same as a result in memory. Vectors are always compared exactly.

        With `analyze` each step is run by itself, and `plan` of the result tells what it gave and took.
        """
        view, target = self._graph.view_of(branch, snapshot, as_of)
        call = ReadCall(source, name, params)
        compiled = self._graph.reader.compiled(view.catalog, call)
        limits = ReadLimits.of(self._graph.settings, timeout_ms)
        with deadline(self.session, limits), spark_failures(f"query '{compiled.query.name}'"):
            trace = StepTrace() if analyze else None
            frame = self.query_frame(view, call, trace)
            found = (frame.limit(limits.result_rows + 1) if limits.result_rows else frame).toArrow()
        if limits.result_rows and found.num_rows > limits.result_rows:
            raise limits.too_many_rows()
        shown = None
        if trace is not None:
            shown = self._graph.reader.analyzed(view, compiled, trace.steps, found.num_rows, trace.seconds)
            shown = f"{shown}\n{NOTE}"
        return QueryResult(
            fitted(found, compiled.plan),
            [column.type for column in compiled.query.columns],
            query_name=compiled.query.name,
            target=target,
            graph_commit_id=view.snapshot.graph_commit_id,
            plan=shown,
        )

    def query_frame(self, view: View, call: ReadCall, trace: StepTrace | None = None) -> DataFrame:
        reader = self._graph.reader
        compiled = reader.compiled(view.catalog, call)

        def read(table_key: str, columns: Sequence[str]) -> DataFrame:
            return self._frame(table_key, view.snapshot, columns, None)

        with spark_failures(f"query '{compiled.query.name}'"), reader.embedding() as embed:
            values, keep = reader.values(compiled, call), trace.kept if trace is not None else None
            return query_frame(self.session, read, view, compiled, values, embed, keep)

    def analytics(self, view: View, scope: Scope, asked: Asked) -> pa.Table:
        """The values of an algorithm, in memory."""

        def read(table_key: str, columns: Sequence[str]) -> DataFrame:
            return self._frame(table_key, view.snapshot, columns, None)

        limits = ReadLimits.of(self._graph.settings)
        with deadline(self.session, limits), spark_failures(f"algorithm '{asked.algorithm}'"):
            return values_frame(read, scope, asked).toArrow()

    def load(
        self,
        frames: Mapping[str, DataFrame],
        *,
        mode: Mode,
        on_error: OnError = "fail",
        rejects: str | None = None,
        max_errors: int | None = None,
        retries: int | None = None,
        **more: Any,
    ) -> LoadResult:
        """Load frames by type name (`{"Person": df, "Knows": df2}`) as one commit, checked as every load is.

        Columns are the properties, `id`, and for edges `src` and `dst`. `more` is what `Graph.load` takes besides.
        """
        options = LoadOptions(mode, on_error, rejects, max_errors, retries)
        catalog = self._graph.catalog
        inputs = [FrameInput(table_type(catalog, name).table_key, frame, name) for name, frame in frames.items()]
        return load_inputs(self._graph, inputs, options, **more)

    @staticmethod
    def external_uri(blob: Column | str) -> Column:
        """The URI an external blob stands for; null where the bytes are the content itself."""
        column = sf.col(blob) if isinstance(blob, str) else blob
        uri = sf.decode(sf.substring(column, len(EXTERNAL_MARKER) + 1, 2**31 - 1), "UTF-8")
        return sf.when(sf.startswith(column, sf.lit(EXTERNAL_MARKER)), uri)

    def _seen(self, branch: str | None, snapshot: str | None, version: int | None, as_of: Moment | None) -> Snapshot:
        return self._graph.view_at(named_snapshot(self._graph, branch, snapshot, version, as_of)).snapshot

    def _frame(self, table_key: str, seen: Snapshot, columns: Sequence[str] | None, filter: str | None) -> DataFrame:
        given = {"path": self._graph.uri, "type": table_key, **_pinned(seen)}
        if columns is not None:
            given["columns"] = ",".join(columns)
        if filter is not None:
            given["filter"] = filter
        planned = plan_frame(self._graph, GraphOptions.of(given, READ_OPTIONS))
        with spark_failures(f"reading {table_key}"):
            return planned_frame(self.session, planned)


def _pinned(seen: Snapshot) -> dict[str, str]:
    """Options that name this very snapshot, whatever becomes of its branch."""
    if seen.graph_commit_id is not None:
        return {"snapshot": seen.graph_commit_id}
    return {"branch": seen.branch or "main", "version": str(seen.version)}


def view_names(table_keys: Mapping[str, Any], prefix: str) -> dict[str, str]:
    """A name for each table; Spark does not tell upper from lower case, so neither does this."""
    split = {key: key.split(":", 1) for key in table_keys}
    folded = [name.lower() for _, name in split.values()]
    return {
        f"{prefix}{name if folded.count(name.lower()) == 1 else f'{kind}_{name}'}": key
        for key, (kind, name) in split.items()
    }


def _literal_braces(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
