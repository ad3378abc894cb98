"""The `where` of updates and deletes: three-valued, by mathematical value, the same for stored and pending rows."""

from __future__ import annotations

import datetime as dt
import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mutate_scene import SCHEMA, people, run

import omnigraph as og

VALUES: dict[str, list[Any]] = {
    "age": [0, 1, 2, 149, None],
    "score": [-1.5, 0.0, 0.1, 2.0, 1000000.5, None],
    "ratio": [-1.5, 0.0, 0.1, 2.0, None],
    "big": [0, 1, 2**53 + 1, 2**64 - 1, None],
    "tier": ["free", "paid", None],
    "born": ["1969-12-31", "1970-01-01", "2024-02-29", None],
    "seen": ["1969-12-31T23:59:59.999Z", "2024-01-01T00:00:00Z", None],
    "email": ["a@b", "a@bc", "é@x", "z@", None],
}
ASKED: dict[str, list[str]] = {
    "age": ["1", "2", "-1", "2.7", "1.0", "99999999999", "-99999999999"],
    "score": ["0", "2", "0.1", "-1.5", "9007199254740993"],
    "ratio": ["0", "2", "0.1", "0.25"],
    "big": ["1", "0", "18446744073709551615", "-1", "9007199254740993", "0.5"],
    "tier": ['"paid"'],
    "born": ['date("1970-01-01")', 'date("2024-02-29")'],
    "seen": ['datetime("2024-01-01T00:00:00Z")'],
    "email": ['"a@b"', '"b"', '"é"'],
}
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
CASES = [(name, op, value) for name, values in ASKED.items() for value in values for op in OPERATORS]


def written(name: str, value: Any) -> str:
    match name:
        case "born":
            return f'date("{value}")'
        case "seen":
            return f'datetime("{value}")'
        case "tier" | "email":
            return f'"{value}"'
    return "null" if value is None else repr(value)


def meaning(text: str) -> Any:
    """A literal as Python compares it."""
    if text.startswith("date("):
        return dt.date.fromisoformat(text[6:-2])
    if text.startswith("datetime("):
        return dt.datetime.fromisoformat(text[10:-2].replace("Z", "+00:00"))
    if text.startswith('"'):
        return text[1:-1].encode()
    return float(text) if "." in text else int(text)


def comparable(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    graph = og.Graph.init(str(Path(tmp_path_factory.mktemp("conditions")) / "graph"), SCHEMA)
    inserts = []
    for name, values in VALUES.items():
        for number, value in enumerate(values):
            given = "" if value is None else f", {name}: {written(name, value)}"
            inserts.append(f'insert Person {{ name: "{name}{number}"{given} }}')
    run(graph, "\n".join(inserts))
    return graph


@pytest.mark.parametrize(("name", "op", "value"), CASES)
def test_a_row_is_selected_iff_the_comparison_is_true(filled: og.Graph, name: str, op: str, value: str) -> None:
    """Updates to the same value change nothing but are counted; the expectation is plain Python."""
    compare, asked = OPERATORS[op], meaning(value)
    expected = {
        key for key, row in people(filled).items() if row[name] is not None and compare(comparable(row[name]), asked)
    }
    view = filled.view()
    from omnigraph.engine.write.matching import Where
    from omnigraph.plan.check import compile_query
    from omnigraph.plan.operands import Values
    from omnigraph.plan.typed import DeleteRows, MutationQuery

    query = compile_query(view.catalog, f"query q() {{ delete Person where {name} {op} {value} }}")
    assert isinstance(query, MutationQuery)
    statement = query.changes[0]
    assert isinstance(statement, DeleteRows)
    where, table = Where(statement.where, Values({}, 0)), view.table("node:Person")
    found = {i for batch in where.selected(table, ["id"]) for i in batch.column("id").to_pylist()}
    masked = {i for batch in table.batches() for i in batch.filter(where.mask(batch)).column("id").to_pylist()}
    assert found == expected
    assert masked == expected


def test_conditions_conjoin(filled: og.Graph) -> None:
    result = run(filled, 'update Person set { tier: "free" } where age >= 1 and age < 149')
    assert result.affected_nodes == 2
