"""A mutation query: its statements run in order over one view, are checked as a whole, and become one commit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import groupby
from typing import Any

from omnigraph.base.clock import now_us
from omnigraph.base.errors import BadRequest, InvalidData, PreconditionFailed
from omnigraph.catalog.catalog import Catalog
from omnigraph.commit.context import CommitContext
from omnigraph.commit.plan import MUTATION, WritePlan
from omnigraph.engine.view import View
from omnigraph.engine.write.bench import EmbeddedBench
from omnigraph.engine.write.changes import Annotations
from omnigraph.engine.write.pending import Counts, MutationStaging
from omnigraph.engine.write.planning import plan_changeset
from omnigraph.engine.write.retry import Attempt, commit_with_retries
from omnigraph.engine.write.validate.check import Check
from omnigraph.engine.write.validate.stages import refusal, validate
from omnigraph.lang.gq import parse_queries, select_query
from omnigraph.lang.gq.ast import QueryFile
from omnigraph.manifest.store import branch_label
from omnigraph.plan.check import check_query
from omnigraph.plan.operands import Values
from omnigraph.plan.params import bind_parameters
from omnigraph.plan.typed import Change as Statement
from omnigraph.plan.typed import DeleteRows, InsertRow, MutationQuery, UpdateRows
from omnigraph.records.violations import Findings
from omnigraph.sets.scratch import Scratch

_CACHED_SOURCES = 256


@dataclass(frozen=True)
class MutationResult:
    """`commit` is the id of the commit that was made, None when nothing changed."""

    branch: str
    query_name: str
    affected_nodes: int
    affected_edges: int
    actor_id: str | None
    operation_id: str | None
    commit: str | None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Call:
    """A mutation as the caller gave it; `name` chooses among several queries of one source."""

    source: str
    name: str | None = None
    params: Mapping[str, Any] | None = None
    file: str | None = None


def mutate(
    ctx: CommitContext, open_view: Callable[[], View], call: Call, notes: Annotations, retries: int | None = None
) -> MutationResult:
    """Run the mutation and commit what it did. Only inserts commute, so only they are prepared again."""
    tree = _parsed(call.source, call.file)
    first = open_view()
    query = compiled(first.catalog, tree, call)
    parameters = bind_parameters(query.params, call.params)
    now_ms = now_us() // 1000
    done = Counts()

    def prepare(attempt: Attempt) -> WritePlan | None:
        nonlocal done
        _refuse_other_head(attempt.view, notes.if_commit)
        ready = compiled(attempt.view.catalog, tree, call)
        with Scratch(ctx.settings) as scratch:
            findings = Findings(ctx.settings.load_max_errors)
            staging = MutationStaging(attempt.view, Values(parameters, now_ms), scratch, findings)
            _run(ready.changes, staging)
            done = staging.counts
            return _planned(attempt, staging, findings, scratch, notes)

    commutes = all(isinstance(statement, InsertRow) for statement in query.changes)
    allowed = ctx.settings.write_retries if retries is None else retries
    receipt = commit_with_retries(ctx, open_view, prepare, retries=allowed if commutes else 0)
    return MutationResult(
        branch_label(first.branch),
        query.name,
        done.nodes,
        done.edges,
        notes.actor,
        receipt.operation_id if receipt else None,
        receipt.graph_commit_id if receipt else None,
    )


def compiled(catalog: Catalog, tree: QueryFile, call: Call) -> MutationQuery:
    query = check_query(catalog, select_query(tree, call.name), call.file)
    if not isinstance(query, MutationQuery):
        raise BadRequest(f"query '{query.name}' only reads", "Run it with query; mutate is for insert, update, delete.")
    return query


@lru_cache(_CACHED_SOURCES)
def _parsed(source: str, file: str | None) -> QueryFile:
    return parse_queries(source, file)


def _run(statements: tuple[Statement, ...], staging: MutationStaging) -> None:
    """Runs of inserts are taken together; every statement is known by its place, counted from 1."""
    numbered = list(enumerate(statements, 1))
    for kind, run in groupby(numbered, key=lambda entry: type(entry[1])):
        if kind is InsertRow:
            staging.insert([(place, s) for place, s in run if isinstance(s, InsertRow)])
            continue
        for place, statement in run:
            match statement:
                case UpdateRows():
                    staging.update(place, statement)
                case DeleteRows():
                    staging.delete(statement)


def _planned(
    attempt: Attempt, staging: MutationStaging, findings: Findings, scratch: Scratch, notes: Annotations
) -> WritePlan | None:
    changes = staging.changes()
    read = staging.read
    if findings.first_stage() is None:
        read = read | validate(Check(attempt.view, changes, scratch, findings))
    error = refusal(findings, ())
    if error is not None:
        if isinstance(error, InvalidData):
            error.hint = "Nothing was written. Correct the statement or its parameters and run it again."
        raise error
    if not changes.tables:
        return None
    bench = EmbeddedBench(scratch)
    return plan_changeset(attempt.writable(changes.tables, notes.actor), changes, read, MUTATION, notes, bench)


def _refuse_other_head(view: View, if_commit: str | None) -> None:
    """Also a mutation that would change nothing must find the head its caller named."""
    if if_commit is not None and view.snapshot.graph_commit_id != if_commit:
        raise PreconditionFailed(if_commit, view.snapshot.graph_commit_id or "")
