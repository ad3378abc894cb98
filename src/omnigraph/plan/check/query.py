"""One query against a catalog.

Holds at every return: the typed query names only what the catalog has; else a TypeCheckError says rule, place and why.
"""

from __future__ import annotations

from omnigraph.base.errors import SourceError
from omnigraph.catalog.annotations import compile_type
from omnigraph.catalog.catalog import Catalog
from omnigraph.lang.gq import ast, parse_queries, select_query
from omnigraph.plan.check.mutations import check_statement
from omnigraph.plan.check.orders import check_order
from omnigraph.plan.check.patterns import check_pattern
from omnigraph.plan.check.returns import check_returns
from omnigraph.plan.check.scope import Scope
from omnigraph.plan.typed import CheckedQuery, MutationQuery, ParamSpec, ReadQuery


def compile_query(catalog: Catalog, source: str, name: str | None = None, file: str | None = None) -> CheckedQuery:
    """The query of that name, or the only one of the source, typed."""
    return check_query(catalog, select_query(parse_queries(source, file), name), file)


def check_query(catalog: Catalog, query: ast.Query, file: str | None = None) -> CheckedQuery:
    """The query typed; `file` only names the place in errors."""
    try:
        return _checked(catalog, query)
    except SourceError as error:
        error.file = file
        raise


def _checked(catalog: Catalog, query: ast.Query) -> CheckedQuery:
    params = tuple(ParamSpec(param.name, compile_type(param.type)) for param in query.params)
    scope = Scope(catalog, {param.name: param.type for param in params})
    if isinstance(query.body, ast.Mutation):
        changes = tuple(check_statement(statement, scope) for statement in query.body.statements)
        return MutationQuery(query.name, params, changes, query.description, query.instruction)
    pattern = check_pattern(query.body.clauses, scope)
    columns = check_returns(query.body.projections, scope)
    return ReadQuery(
        query.name,
        params,
        pattern,
        columns,
        check_order(query.body, columns, scope),
        query.body.limit,
        query.exact,
        query.description,
        query.instruction,
    )
