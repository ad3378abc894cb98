"""What indexes answer beside what a scan finds, for every table of every branch of a graph."""

from __future__ import annotations

from typing import Any

from omnigraph.graph import Graph
from omnigraph.storage.tables import Table, TableRef, open_table

_VALUES_MAX = 60


def disagreements(graph: Graph) -> list[str]:
    """Each value for which an index and a scan give different rows; none of a whole graph."""
    found = []
    for branch in graph.branch_list():
        view = graph.view(branch)
        for key, entry in view.entries.items():
            if not entry.table_version:
                continue  # a type that the branch has no table of yet
            table = open_table(TableRef(view.root, entry.location, entry.table_branch), entry.table_version)
            found += [f"{branch} {key} v{entry.table_version}: {wrong}" for wrong in table_disagreements(table)]
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
            found += _values(table, column, whole.column(column).to_pylist())
    return found


def _is_vector(table: Table, column: str) -> bool:
    return str(table.schema.field(column).type).startswith("fixed_size_list")


def _values(table: Table, column: str, values: list[Any]) -> list[str]:
    chosen = sorted({v for v in values if v is not None}, key=str)
    found = []
    for value in chosen[:: max(1, len(chosen) // _VALUES_MAX)]:
        where = f"{column} = '{value}'" if isinstance(value, str) else f"{column} = {value}"
        by_index, by_scan = (
            sorted(table.dataset.to_table(columns=["id"], filter=where, use_scalar_index=use).column(0).to_pylist())
            for use in (True, False)
        )
        if by_index != by_scan:
            found.append(f"{where}: {by_index} by index, {by_scan} by scan")
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
