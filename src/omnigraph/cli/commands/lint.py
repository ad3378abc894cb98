"""`omnigraph lint`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.command import Run, command
from omnigraph.cli.failures import UsageMistake
from omnigraph.cli.formats import JSON
from omnigraph.cli.output import one_line, put_json, put_line
from omnigraph.cli.sources import read_source, shown_in

if TYPE_CHECKING:
    from omnigraph.catalog.catalog import Catalog
    from omnigraph.plan.lint import Finding, LintReport, QueryResult, SchemaSource

EXIT_ERRORS = 1
_EXAMPLES = (
    "omnigraph lint --query people.gq --schema schema.pg",
    "omnigraph lint --query people.gq --store ./library --json",
)


def add_to(app: typer.Typer) -> None:
    command(app, "lint", examples=_EXAMPLES)(_lint)


def _lint(
    run: Run,
    query: Annotated[str, typer.Option("--query", metavar="FILE", help="The queries, a .gq file.")],
    schema: Annotated[
        str | None, typer.Option("--schema", metavar="FILE", help="Check against a .pg file, not a graph.")
    ] = None,
) -> None:
    """Check a file of queries against a schema."""
    from omnigraph.plan.lint import lint

    if schema is not None and run.names_a_store:
        raise UsageMistake("--schema and --store cannot be given together", "Name one schema to check against.")
    source = read_source(query, "query", "--query")
    catalog, where = _schema(run, schema)
    report = lint(catalog, source, schema_source=where, query_path=query)
    if run.format == JSON:
        put_json(report.to_json())
    else:
        _put_text(report)
    if report.status == "error":
        raise typer.Exit(EXIT_ERRORS)


def _schema(run: Run, path: str | None) -> tuple[Catalog, SchemaSource]:
    from omnigraph.catalog.build import compile_source
    from omnigraph.plan.lint import SchemaSource

    if path is not None:
        source = read_source(path, "schema", "--schema")
        with shown_in(source, path):
            return compile_source(source, path), SchemaSource("file", path)
    return run.read().catalog, SchemaSource("graph", run.uri())


def _put_text(report: LintReport) -> None:
    for result in report.results:
        put_line(one_line(_result(result)))
    for finding in report.findings:
        put_line(one_line(_finding(finding)))
    counted = (
        _counted(report.queries_processed, "query", "queries"),
        _counted(report.errors, "error", "errors"),
        _counted(report.warnings, "warning", "warnings"),
    )
    put_line(f"INFO  Lint complete: {', '.join(counted)}")


def _counted(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}"


def _result(result: QueryResult) -> str:
    if result.status == "ok":
        return f"OK    query `{result.name}` ({result.kind})"
    hint = f"; {result.hint}" if result.hint else ""
    return f"ERROR query `{result.name}`: {result.error}{hint}"


def _finding(finding: Finding) -> str:
    label = {"error": "ERROR", "warning": "WARN ", "info": "INFO "}[finding.severity]
    names = ", ".join(f"`{name}`" for name in finding.query_names)
    about = f" query {names}:" if names else ""
    return f"{label}{about} {finding.code}: {finding.message}"
