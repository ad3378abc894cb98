"""Every cell of the truth table, for nodes and edges, each strategy and each granularity.

The outcomes are written out here once more, by hand: a cell that is missing, or that the product decides otherwise,
fails.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest
from merge_scene import conflicts_of, new_graph, people, person, rows_of, write

import omnigraph as og
from omnigraph.engine.merge.table import CELLS, Cell, Outcome, State

pytestmark = pytest.mark.slow

ABSENT = ("none", "x", "y")
PRESENT = ("keep", "x", "y", "delete")
INSERT, UPDATE, DELETE = "divergent_insert", "divergent_update", "delete_vs_update"

# (base, source, target) -> the value that is there afterwards, or the kind of conflict. None: no row.
EXPECTED: dict[tuple[str, str, str], str | None] = {
    ("none", "none", "none"): None,
    ("none", "none", "x"): "x",
    ("none", "none", "y"): "y",
    ("none", "x", "none"): "x",
    ("none", "x", "x"): "x",
    ("none", "x", "y"): INSERT,
    ("none", "y", "none"): "y",
    ("none", "y", "x"): INSERT,
    ("none", "y", "y"): "y",
    ("b", "keep", "keep"): "b",
    ("b", "keep", "x"): "x",
    ("b", "keep", "y"): "y",
    ("b", "keep", "delete"): None,
    ("b", "x", "keep"): "x",
    ("b", "x", "x"): "x",
    ("b", "x", "y"): UPDATE,
    ("b", "x", "delete"): DELETE,
    ("b", "y", "keep"): "y",
    ("b", "y", "x"): UPDATE,
    ("b", "y", "y"): "y",
    ("b", "y", "delete"): DELETE,
    ("b", "delete", "keep"): None,
    ("b", "delete", "x"): DELETE,
    ("b", "delete", "y"): DELETE,
    ("b", "delete", "delete"): None,
}
KINDS = (INSERT, UPDATE, DELETE)
# One unit changes to the same, to another, or not at all; the unit `a` of a row does not care about its unit `b`.
BY_PROPERTY: dict[tuple[str, str], str] = {
    ("keep", "keep"): "b",
    ("keep", "x"): "x",
    ("keep", "y"): "y",
    ("x", "keep"): "x",
    ("x", "x"): "x",
    ("x", "y"): UPDATE,
    ("y", "keep"): "y",
    ("y", "x"): UPDATE,
    ("y", "y"): "y",
}
VALUES = {"b": 1, "x": 2, "y": 3}
TABLES = ("node:Person", "edge:Knows")


def test_every_cell_has_its_outcome() -> None:
    cells = {("none", s, t) for s, t in product(ABSENT, ABSENT)} | {("b", s, t) for s, t in product(PRESENT, PRESENT)}
    assert EXPECTED.keys() == cells
    assert len(EXPECTED) == 25
    named = {Cell(base == "b", State(s), State(t)) for base, s, t in cells}
    assert CELLS.keys() == named
    assert BY_PROPERTY.keys() == set(product(("keep", "x", "y"), repeat=2))


@pytest.mark.parametrize("cell", EXPECTED, ids="-".join)
def test_the_table_says_what_this_list_says(cell: tuple[str, str, str]) -> None:
    base, source, target = cell
    outcome = CELLS[Cell(base == "b", State(source), State(target))]
    expected = EXPECTED[cell]
    if expected in KINDS:
        assert outcome.value == expected
    else:
        kept = {"keep": base, "none": None, "delete": None}.get(target, target)
        assert outcome is (Outcome.KEEP if kept == expected else Outcome.TAKE)


def row_of(table_key: str, name: str, value: str) -> dict[str, Any]:
    if table_key == "node:Person":
        return person(name, a=VALUES[value], b=value)
    return {"id": name, "src": "ana", "dst": "bo", "w": VALUES[value], "t": value}


def side(graph: og.Graph, branch: str | None, table_key: str, cells: list[tuple[str, str, str]], which: int) -> None:
    """Do on one branch what its side of every cell says."""
    changed = [row_of(table_key, "-".join(cell), cell[which]) for cell in cells if cell[which] in ("x", "y")]
    gone = tuple("-".join(cell) for cell in cells if cell[which] == "delete")
    write(graph, branch, table_key, changed, gone)


def build(folder: Path, cells: list[tuple[str, str, str]]) -> og.Graph:
    graph = new_graph(folder)
    people(graph, None, person("ana"), person("bo"))
    for key in TABLES:
        write(graph, None, key, [row_of(key, "-".join(cell), "b") for cell in cells if cell[0] == "b"])
    graph.branch_create("draft")
    for key in TABLES:
        side(graph, "draft", key, cells, 1)
        side(graph, None, key, cells, 2)
    return graph


def seen(graph: og.Graph, table_key: str) -> dict[str, str]:
    """The value each cell's row has; both columns must agree on it."""
    rows = rows_of(graph, table_key)
    number, letter = ("a", "b") if table_key == "node:Person" else ("w", "t")
    found = {name: row for name, row in rows.items() if name not in ("ana", "bo")}
    assert all(VALUES[row[letter]] == row[number] for row in found.values())
    return {name: row[letter] for name, row in found.items()}


def wanted(strategy: str | None) -> dict[str, str]:
    """What is there afterwards; conflicts go as the strategy says."""
    found: dict[str, str | None] = {}
    for cell, outcome in EXPECTED.items():
        if outcome in KINDS:
            winner = cell[2] if strategy == "ours" else cell[1]
            outcome = {"delete": None, "keep": "b", "none": None}.get(winner, winner)
        found["-".join(cell)] = outcome
    return {name: value for name, value in found.items() if value is not None}


@pytest.mark.parametrize("granularity", ["row", "property"])
def test_all_conflicts_are_reported_and_nothing_is_written(tmp_path: Path, granularity: Any) -> None:
    graph = build(tmp_path, list(EXPECTED))
    heads = [graph.head_commit_id_for_branch(b) for b in ("main", "draft")]
    with pytest.raises(og.MergeConflicts) as refused:
        graph.branch_merge("draft", granularity=granularity)
    kinds = {"-".join(cell): outcome for cell, outcome in EXPECTED.items() if outcome in KINDS}
    assert conflicts_of(refused.value) == {(key, name, kind) for key in TABLES for name, kind in kinds.items()}
    told = [(c["table_key"], c["row_id"], c["kind"]) for c in refused.value.merge_conflicts]
    assert told == sorted(told)
    assert [graph.head_commit_id_for_branch(b) for b in ("main", "draft")] == heads


@pytest.mark.parametrize("granularity", ["row", "property"])
@pytest.mark.parametrize("strategy", ["ours", "theirs"])
def test_a_strategy_decides_conflicting_rows_and_no_others(tmp_path: Path, strategy: Any, granularity: Any) -> None:
    graph = build(tmp_path, list(EXPECTED))
    before = {key: seen(graph, key) for key in TABLES}
    done = graph.branch_merge("draft", strategy=strategy, granularity=granularity)
    assert isinstance(done, og.MergeResult)
    for key in TABLES:
        after = seen(graph, key)
        assert after == wanted(strategy)
        (told,) = [t for t in done.tables if t["table_key"] == key]
        assert told["inserts"] == len(after.keys() - before[key].keys())
        assert told["deletes"] == len(before[key].keys() - after.keys())
        assert told["updates"] == sum(
            1 for name in after.keys() & before[key].keys() if after[name] != before[key][name]
        )
        counts = graph.get_commit(done.graph_commit_id or "").counts[key]
        assert (counts.inserts, counts.updates, counts.deletes) == (told["inserts"], told["updates"], told["deletes"])


@pytest.mark.parametrize("granularity", ["row", "property"])
def test_cells_without_a_conflict_merge_by_themselves(tmp_path: Path, granularity: Any) -> None:
    cells = [cell for cell, outcome in EXPECTED.items() if outcome not in KINDS]
    graph = build(tmp_path, cells)
    graph.branch_merge("draft", granularity=granularity)
    expected = {"-".join(cell): value for cell in cells if (value := EXPECTED[cell]) is not None}
    for key in TABLES:
        assert seen(graph, key) == expected


def units(graph: og.Graph, branch: str | None, which: int) -> None:
    """Rows `<a of source>-<a of target>-<b of source>-<b of target>`: every pair of property cells at once."""
    for key, number, letter in (("node:Person", "a", "b"), ("edge:Knows", "w", "t")):
        rows = []
        for cell in product(BY_PROPERTY, BY_PROPERTY):
            one, other = cell[0][which], cell[1][which]
            base = row_of(key, "-".join((*cell[0], *cell[1])), "b")
            base[number] = VALUES["b" if one == "keep" else one]
            base[letter] = "b" if other == "keep" else other
            rows.append(base)
        write(graph, branch, key, rows)


@pytest.mark.parametrize("strategy", [None, "ours", "theirs"])
def test_properties_are_merged_one_by_one_by_the_same_table(tmp_path: Path, strategy: Any) -> None:
    graph = new_graph(tmp_path)
    people(graph, None, person("ana"), person("bo"))
    names = ["-".join((*one, *other)) for one, other in product(BY_PROPERTY, BY_PROPERTY)]
    for key in TABLES:
        write(graph, None, key, [row_of(key, name, "b") for name in names])
    graph.branch_create("draft")
    units(graph, "draft", 0)
    units(graph, None, 1)
    expected: dict[str, dict[str, tuple[int, str]]] = {key: {} for key in TABLES}
    disputed: dict[tuple[str, str], list[str]] = {}
    for (one, other), key in product(product(BY_PROPERTY, BY_PROPERTY), TABLES):
        name = "-".join((*one, *other))
        winner = 0 if strategy == "theirs" else 1
        decided = [BY_PROPERTY[cell] if BY_PROPERTY[cell] != UPDATE else cell[winner] for cell in (one, other)]
        expected[key][name] = VALUES[decided[0]], decided[1]
        columns = ("a", "b") if key == "node:Person" else ("w", "t")
        names_in_dispute = [c for c, cell in zip(columns, (one, other), strict=True) if BY_PROPERTY[cell] == UPDATE]
        if names_in_dispute:
            # Properties are told in the order of the schema, which is that of their names.
            disputed[key, name] = sorted(names_in_dispute)
    if strategy is None:
        with pytest.raises(og.MergeConflicts) as refused:
            graph.branch_merge("draft", granularity="property")
        told = refused.value.merge_conflicts
        assert {(c["table_key"], c["row_id"]): c["properties"] for c in told} == disputed
        assert {c["kind"] for c in told} == {UPDATE}
        return
    graph.branch_merge("draft", granularity="property", strategy=strategy)
    for key, number, letter in (("node:Person", "a", "b"), ("edge:Knows", "w", "t")):
        found = {n: (r[number], r[letter]) for n, r in rows_of(graph, key).items() if n not in ("ana", "bo")}
        assert found == expected[key]


def test_the_endpoints_of_an_edge_are_one_value(tmp_path: Path) -> None:
    graph = new_graph(tmp_path)
    people(graph, None, *(person(name) for name in ("ana", "bo", "cy")))
    write(graph, None, "edge:Knows", [{"id": "e", "src": "ana", "dst": "bo"}])
    graph.branch_create("draft")
    write(graph, "draft", "edge:Knows", [{"id": "e", "src": "cy", "dst": "bo"}])
    write(graph, None, "edge:Knows", [{"id": "e", "src": "ana", "dst": "cy", "w": 5}])
    with pytest.raises(og.MergeConflicts) as refused:
        graph.branch_merge("draft", granularity="property")
    assert refused.value.merge_conflicts[0]["properties"] == ["src", "dst"]
    graph.branch_merge("draft", granularity="property", strategy="theirs")
    assert rows_of(graph, "edge:Knows")["e"] == {"id": "e", "src": "cy", "dst": "bo", "w": 5, "t": None}


def test_null_the_empty_text_and_list_contents_differ(tmp_path: Path) -> None:
    graph = new_graph(tmp_path, "node T { k: String @key  s: String?  l: [I32]?  p: Blob?  v: Vector(2)?  f: F64? }")
    values: dict[str, tuple[str, Any, Any]] = {
        "s": ("s", None, ""),
        "l": ("l", [1, 2], [2, 1]),
        "empty": ("l", None, []),
        "p": ("p", b"one", b"two"),
        "v": ("v", [1.0, 2.0], [1.0, 2.5]),
        "f": ("f", 0.0, -0.0),
    }
    write(graph, None, "node:T", [{"id": n, "k": n} for n in values])
    graph.branch_create("draft")
    for branch, which in (("draft", 1), (None, 2)):
        # Both touch every row, so that a value equal to the base's counts as a rewrite and not as a change.
        write(
            graph,
            branch,
            "node:T",
            [{"id": n, "k": n, v[0]: v[which], "f": 7.0} | {v[0]: v[which]} for n, v in values.items()],
        )
    with pytest.raises(og.MergeConflicts) as refused:
        graph.branch_merge("draft")
    assert {c["row_id"] for c in refused.value.merge_conflicts} == set(values)
    graph.branch_merge("draft", strategy="theirs")
    assert rows_of(graph, "node:T") == rows_of(graph, "node:T", "draft")
