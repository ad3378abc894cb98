"""Looks over a query file: does it parse, does each query fit the schema, and what looks like a slip?

Holds for every report: `status` is error iff a query failed or the file does not parse; warnings never fail.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from omnigraph.base.errors import ParseError, TypeCheckError
from omnigraph.catalog.catalog import Catalog, NodeType, TableType
from omnigraph.lang.gq import ast, parse_queries
from omnigraph.plan.check import check_query
from omnigraph.plan.check.mutations import table_of
from omnigraph.plan.operation import Operation, operation_of
from omnigraph.plan.typed import CheckedQuery

Status = Literal["ok", "error"]
Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True)
class SchemaSource:
    """Where the schema came from: the path of a file, or the URI of a graph."""

    kind: Literal["file", "graph"]
    place: str

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "path" if self.kind == "file" else "uri": self.place}


@dataclass(frozen=True)
class Finding:
    severity: Severity
    code: str
    message: str
    type_name: str | None = None
    property: str | None = None
    query_names: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        more = {"type_name": self.type_name, "property": self.property, "query_names": list(self.query_names)}
        found = {name: value for name, value in more.items() if value}
        return {"severity": self.severity, "code": self.code, "message": self.message, **found}


@dataclass(frozen=True)
class QueryResult:
    name: str
    kind: Literal["read", "mutation"]
    status: Status
    warnings: tuple[str, ...] = ()
    error: str | None = None
    hint: str | None = None
    operation: Operation | None = None

    def to_json(self) -> dict[str, Any]:
        body: dict[str, Any] = {"name": self.name, "kind": self.kind, "status": self.status}
        if self.warnings:
            body["warnings"] = list(self.warnings)
        if self.error is not None:
            body["error"] = self.error
        if self.operation is not None:
            body["operation"] = self.operation.to_json()
        return body


@dataclass(frozen=True)
class LintReport:
    schema_source: SchemaSource
    query_path: str
    results: tuple[QueryResult, ...]
    findings: tuple[Finding, ...]

    @property
    def status(self) -> Status:
        return "error" if self.errors else "ok"

    @property
    def queries_processed(self) -> int:
        return len(self.results)

    @property
    def errors(self) -> int:
        return sum(result.status == "error" for result in self.results) + self._count("error")

    @property
    def warnings(self) -> int:
        return self._count("warning")

    @property
    def infos(self) -> int:
        return self._count("info")

    def _count(self, severity: Severity) -> int:
        return sum(finding.severity == severity for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        return {
            "status": self.status,
            "schema_source": self.schema_source.to_json(),
            "query_path": self.query_path,
            "queries_processed": self.queries_processed,
            "errors": self.errors,
            "warnings": self.warnings,
            "infos": self.infos,
            "results": [result.to_json() for result in self.results],
            "findings": [finding.to_json() for finding in self.findings],
        }


def lint(catalog: Catalog, source: str, *, schema_source: SchemaSource, query_path: str) -> LintReport:
    """A report on every query of a `.gq` text; `query_path` names it in errors."""
    try:
        tree = parse_queries(source, query_path)
    except ParseError as error:
        found = Finding("error", "Q000", str(error))
        return LintReport(schema_source, query_path, (), (found,))
    checked = [(query, _checked(catalog, query, query_path)) for query in tree.queries]
    findings = [_hard_coded(query) for query in tree.queries if _is_hard_coded(query)]
    findings += _never_updated(tree.queries, catalog)
    results = tuple(_result(query, typed, findings, catalog) for query, typed in checked)
    return LintReport(schema_source, query_path, results, tuple(findings))


def _checked(catalog: Catalog, query: ast.Query, file: str) -> CheckedQuery | TypeCheckError:
    try:
        return check_query(catalog, query, file)
    except TypeCheckError as error:
        return error


def _result(
    query: ast.Query, typed: CheckedQuery | TypeCheckError, findings: Sequence[Finding], catalog: Catalog
) -> QueryResult:
    kind: Literal["read", "mutation"] = "mutation" if isinstance(query.body, ast.Mutation) else "read"
    warnings = tuple(f"{f.code}: {f.message}" for f in findings if query.name in f.query_names)
    if isinstance(typed, TypeCheckError):
        return QueryResult(query.name, kind, "error", warnings, str(typed), typed.hint or None)
    return QueryResult(query.name, kind, "ok", warnings, operation=operation_of(typed, catalog))


def _is_hard_coded(query: ast.Query) -> bool:
    return isinstance(query.body, ast.Mutation) and not query.params


def _hard_coded(query: ast.Query) -> Finding:
    message = "hard-coded mutation: it declares no parameters"
    return Finding("warning", "L202", message, query_names=(query.name,))


def _never_updated(queries: Sequence[ast.Query], catalog: Catalog) -> list[Finding]:
    """L201, once for each nullable property that no update of its type assigns, in whatever query."""
    updaters: defaultdict[str, list[str]] = defaultdict(list)
    assigned: defaultdict[str, set[str]] = defaultdict(set)
    tables: dict[str, TableType] = {}
    for name, update, table in _updates(queries, catalog):
        key = table.table_key
        tables[key] = table
        assigned[key] |= {entry.name for entry in update.assignments}
        if name not in updaters[key]:
            updaters[key].append(name)
    return [
        _forgotten(tables[key], name, tuple(updaters[key]))
        for key in sorted(tables)
        for name in _updatable(tables[key])
        if name not in assigned[key]
    ]


def _updates(queries: Sequence[ast.Query], catalog: Catalog) -> Iterator[tuple[str, ast.Update, TableType]]:
    for query in queries:
        statements = query.body.statements if isinstance(query.body, ast.Mutation) else ()
        for statement in statements:
            if isinstance(statement, ast.Update):
                with suppress(TypeCheckError):
                    yield query.name, statement, table_of(statement, catalog)


def _updatable(table: TableType) -> list[str]:
    keyed = {known.name for known in table.key_properties} if isinstance(table, NodeType) else set()
    return [p.name for p in table.properties if p.type.nullable and p.embed is None and p.name not in keyed]


def _forgotten(table: TableType, name: str, queries: tuple[str, ...]) -> Finding:
    message = f"nullable property '{table.name}.{name}' is assigned by no update of this file"
    return Finding("warning", "L201", message, table.name, name, queries)
