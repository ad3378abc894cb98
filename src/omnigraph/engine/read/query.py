"""A read query: compiled once per text and catalog, run over one view."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, NamedTuple, Self

import pyarrow as pa

from omnigraph.base.clock import now_us
from omnigraph.base.errors import BadRequest, LimitExceeded, Unavailable
from omnigraph.catalog.catalog import Catalog
from omnigraph.catalog.types import PropertyType
from omnigraph.embeddings.embedder import Embedder, embedder_of
from omnigraph.embeddings.vectors import Vector
from omnigraph.engine.read.allowance import Allowance
from omnigraph.engine.read.execute import Executor, Trace
from omnigraph.engine.read.found import Found
from omnigraph.engine.read.gathered import Gathered
from omnigraph.engine.read.hot.cache import HotTables, State
from omnigraph.engine.read.limits import ReadLimits
from omnigraph.engine.read.output import Output
from omnigraph.engine.read.result import QueryResult
from omnigraph.engine.read.scores import Scores
from omnigraph.engine.read.tables import States, Tables
from omnigraph.engine.view import View
from omnigraph.lang.gq import parse_queries, select_query
from omnigraph.manifest.snapshot import SubTableEntry
from omnigraph.plan.check import check_query
from omnigraph.plan.explain import Estimates, Seen, explained
from omnigraph.plan.needs import columns_read
from omnigraph.plan.operands import Values
from omnigraph.plan.params import bind_parameters
from omnigraph.plan.rules import planned
from omnigraph.plan.steps import Plan
from omnigraph.plan.typed import ReadQuery
from omnigraph.settings import Settings
from omnigraph.storage.failures import Unreadable
from omnigraph.storage.shapes import shape_of
from omnigraph.storage.tables import Table

_COMPILED_MAX = 256


class ReadCall(NamedTuple):
    """A query as the caller gave it; `name` chooses among several queries of one source."""

    source: str
    name: str | None = None
    params: Mapping[str, Any] | None = None
    file: str | None = None
    timeout_ms: int | None = None
    exact: bool = False
    analyze: bool = False


@dataclass(frozen=True)
class Compiled:
    query: ReadQuery
    plan: Plan
    columns: Mapping[str, frozenset[str]]
    types: tuple[PropertyType, ...]


class Reader:
    """Answers the queries of one handle; what it keeps between them changes no answer."""

    def __init__(self, settings: Settings, graph: str) -> None:
        self._settings = settings
        self._limits = ReadLimits.of(settings)
        self._graph = graph
        self.hot = HotTables(settings.cache_hot_bytes, settings.cache_csr_bytes)
        self._catalog = Catalog()
        """That of the newest query: what is in memory is of its columns."""
        self._states: States | None = None
        self._lock = threading.Lock()
        self._compiled: OrderedDict[tuple[str, str | None, str | None, int], tuple[Catalog, Compiled]] = OrderedDict()

    def query(self, view: View, identity: str, target: Mapping[str, str], call: ReadCall) -> QueryResult:
        compiled = self.compiled(view.catalog, call)
        self._catalog = view.catalog
        begun = perf_counter()
        trace = Trace() if call.analyze else None
        try:
            table = self._table(view, identity, compiled, call, trace)
        except (Unavailable, Unreadable) as error:
            # Files of a version go with it; a table that was opened before does not notice by itself.
            view.refuse_reclaimed()
            states = self._states_of(view, identity)
            places = [states[key].place for key in view.entries]
            if getattr(error, "what", "store") != "store" or not self.hot.forget(places):
                raise
            # What was in memory may have been read from files that are gone, of a state that still is there.
            table = self._table(view, identity, compiled, call, trace)
        shown = None
        if trace is not None:
            shown = self.analyzed(view, compiled, trace.steps, table.num_rows, perf_counter() - begun)
        return QueryResult(
            table,
            compiled.types,
            query_name=compiled.query.name,
            target=target,
            graph_commit_id=view.snapshot.graph_commit_id,
            plan=shown,
        )

    def committed(self, identity: str, written: Mapping[str, tuple[SubTableEntry, Table]]) -> None:
        """Tables that a write of this handle moved, as they are now."""
        for key, (entry, table) in written.items():
            type_ = self._catalog.find_table(key)
            # A write that changed the columns is read anew: what is in memory knows them by other names.
            if type_ is not None and shape_of(table.schema, type_.arrow_schema) is None:
                self.hot.committed(State.of(self.named(identity), entry, type_.columns_id), table)

    def named(self, identity: str) -> str:
        """What tells this graph from others, and from those that lay here before, in memory."""
        return f"{self._graph}#{identity}"

    def _states_of(self, view: View, identity: str) -> States:
        """Those of the last view are kept: most queries are asked of the same one again."""
        known = self._states
        if known is None or known.view is not view or known.identity != identity:
            known = self._states = States(view, self.named(identity), identity)
        return known

    def explain(self, view: View, call: ReadCall) -> str:
        """How the query would be answered; nothing is read."""
        return explained(self.compiled(view.catalog, call).plan, _estimates(view))

    def analyzed(self, view: View, compiled: Compiled, seen: Seen, rows: int, seconds: float) -> str:
        """The plan with what its steps gave and took."""
        return explained(compiled.plan, _estimates(view), seen, rows, seconds)

    def compiled(self, catalog: Catalog, call: ReadCall) -> Compiled:
        key = (call.source, call.name, call.file, id(catalog))
        known = self._compiled.get(key)
        # The catalog is held on to, so that no other one can take its place in memory.
        if known is not None and known[0] is catalog:
            return known[1]
        query = check_query(catalog, select_query(parse_queries(call.source, call.file), call.name), call.file)
        if not isinstance(query, ReadQuery):
            raise BadRequest(f"query '{query.name}' changes data", "Run it with mutate; query only reads.")
        plan = planned(query)
        made = Compiled(query, plan, columns_read(plan), tuple(column.type for column in query.columns))
        with self._lock:
            self._compiled[key] = (catalog, made)
            while len(self._compiled) > _COMPILED_MAX:
                self._compiled.popitem(last=False)
        return made

    def values(self, compiled: Compiled, call: ReadCall) -> Values:
        """What the operands of this run stand for; the moment is fixed here."""
        return Values(bind_parameters(compiled.query.params, call.params), now_us() // 1000)

    def embedding(self) -> LateEmbedder:
        """Texts to vectors for one run."""
        return LateEmbedder(self._settings, Allowance(self._limits))

    def _table(
        self, view: View, identity: str, compiled: Compiled, call: ReadCall, trace: Trace | None
    ) -> Found | pa.Table | Gathered:
        settings = self._settings
        values = self.values(compiled, call)
        limits = self._limits if call.timeout_ms is None else ReadLimits.of(settings, call.timeout_ms)
        allowance = Allowance(limits)
        tables = Tables(self._states_of(view, identity), self.hot, settings, compiled.columns)
        executor = Executor(tables, values, allowance, trace)
        exact = call.exact or settings.search_vector_mode == "exact"
        with LateEmbedder(settings, allowance) as embed:
            output = Output(compiled.plan, executor, Scores(executor, embed, exact))
            found = output.found()
        self.hot.trim()
        if limits.result_rows and found.num_rows > limits.result_rows:
            raise limits.too_many_rows()
        return found


class LateEmbedder:
    """Reaches for the provider when the first text has to be embedded."""

    def __init__(self, settings: Settings, allowance: Allowance) -> None:
        self._settings = settings
        self._allowance = allowance
        self._made: Embedder | None = None

    def __call__(self, text: str, dimension: int, model: str | None) -> Vector:
        if self._made is None:
            self._made = embedder_of(self._patient())
        try:
            return self._made.embed_query(text, dimension, model)
        except (Unavailable, LimitExceeded):
            self._allowance.check()
            raise

    def _patient(self) -> Settings:
        """The provider is not waited for longer than the read may take."""
        left = self._allowance.left_ms
        given = self._settings.embeddings_deadline_ms
        if left is None or (given and given <= left):
            return self._settings
        return replace(self._settings, embeddings_deadline_ms=max(left, 1))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        if self._made is not None:
            self._made.close()


def _estimates(view: View) -> Estimates:
    return Estimates({key: entry.row_count for key, entry in view.entries.items()})
