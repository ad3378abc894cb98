"""What indexes answer beside what a scan finds, for every table of every branch of a graph."""

from __future__ import annotations

from typing import Any

from omnigraph.graph import Graph
from omnigraph.storage.tables import Table, TableRef, open_table

_VALUES_MAX = 60


def disagreements(graph: Graph) -> list[str]:
    """Each value for which an index and a scan give different rows; none of a whole graph."""
    states: dict[tuple[str, str | None, int], str] = {}
    for branch in graph.branch_list():
        for key, entry in graph.view(branch).entries.items():
            # Branches share the states that neither has changed; a type without a version has no table yet.
            if entry.table_version:
                states.setdefault((entry.location, entry.table_branch, entry.table_version), f"{branch} {key}")
    found, root = [], graph.context.root
    for (location, fork, version), name in states.items():
        table = open_table(TableRef(root, location, fork), version)
        found += [f"{name} v{version}: {wrong}" for wrong in table_disagreements(table)]
    return found


def table_disagreements(table: Table) -> list[str]:
    whole = table.dataset.to_table(columns=[c for c in table.schema.names if not _is_vector(table, c)])
    found: list[str] = []
    for index in table.dataset.describe_indices():
        (column,) = (n for n in table.schema.names if index.name.startswith(f"{n}_") and index.name.count("_") >= 2)
        if index.name.endswith("_vector_idx"):
            found += _vectors(table, column)
        elif index.name.endswith("_text_idx"):
            found += _texts(table, column, whole.select(["id", column]).to_pylist())
        else:
            found += _values(table, column, whole.select(["id", column]).to_pylist())
    return found


def _is_vector(table: Table, column: str) -> bool:
    return str(table.schema.field(column).type).startswith("fixed_size_list")


def _values(table: Table, column: str, rows: list[dict[str, Any]]) -> list[str]:
    having: dict[Any, list[str]] = {}
    for row in rows:
        having.setdefault(row[column], []).append(row["id"])
    having.pop(None, None)
    found = []
    for value in sorted(having, key=str)[:: max(1, len(having) // _VALUES_MAX)]:
        where = f"{column} = '{value}'" if isinstance(value, str) else f"{column} = {value}"
        by_index = table.dataset.to_table(columns=["id"], filter=where, use_scalar_index=True).column(0).to_pylist()
        if sorted(by_index) != sorted(having[value]):
            found.append(f"{where}: {sorted(by_index)} by index, {sorted(having[value])} by scan")
    is_text = str(table.schema.field(column).type) == "string"
    missing = f"{column} = 'no such'" if is_text else f"{column} = -77"
    if table.dataset.to_table(columns=["id"], filter=missing).num_rows:
        found.append(f"{missing}: found")
    return found


def _texts(table: Table, column: str, rows: list[dict[str, Any]]) -> list[str]:
    words = sorted({word for row in rows if row[column] for word in row[column].split()})
    found = []
    for word in words[:: max(1, len(words) // _VALUES_MAX)]:
        hits = table.dataset.to_table(columns=["id", "_score"], full_text_query=word, prefilter=True)
        wanted = {row["id"] for row in rows if row[column] and word in row[column].split()}
        if set(hits.column("id").to_pylist()) != wanted:
            found.append(f"{column} '{word}': {hits.column('id').to_pylist()} by index, {wanted} by scan")
    return found


def _vectors(table: Table, column: str) -> list[str]:
    """The nearest of all rows are all rows that have a vector."""
    rows = table.dataset.to_table(columns=["id", column]).to_pylist()
    having = [row for row in rows if row[column] is not None]
    if not having:
        return []
    query = {"column": column, "q": having[0][column], "k": len(having), "nprobes": 64, "metric": "cosine"}
    hits = table.dataset.to_table(columns=["id", "_distance"], nearest=query).column("id").to_pylist()
    return [] if sorted(hits) == sorted(r["id"] for r in having) else [f"{column}: {sorted(hits)} by index"]
