"""Random additions to the schema and writes on main and on a branch hold what a plain dict holds, at every commit."""

from __future__ import annotations

import copy
import json
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from past_scene import everything, head

import omnigraph as og

IDS, BRANCHES = ["a", "b", "c", "d"], ["main", "side"]
# Type by type, its rows by id, of each the properties that are not null.
State = dict[str, dict[str, dict[str, int]]]

# The first type, or the newest one.
TYPES = st.sampled_from([0, -1, -1])
WRITES = st.tuples(
    st.just("write"),
    st.sampled_from(BRANCHES),
    TYPES,
    st.sampled_from(IDS),
    st.sampled_from([0, -1, -1]),
    st.integers(0, 99),
)
DELETES = st.tuples(st.just("delete"), st.sampled_from(BRANCHES), TYPES, st.sampled_from(IDS))
ADDITIONS = st.sampled_from([("property", 0), ("property", -1), ("type",), ("type",)])
MERGES = st.sampled_from([("merge", "side", "main"), ("merge", "main", "side")])
UPKEEP = st.tuples(st.just("upkeep"), st.sampled_from(BRANCHES))
USES = st.lists(st.one_of(WRITES, WRITES, WRITES, WRITES, DELETES, MERGES, UPKEEP), min_size=3, max_size=6)
STEPS = st.lists(st.tuples(ADDITIONS, USES), min_size=1, max_size=3)


class Model:
    """What a graph with one branch beside main ought to hold."""

    def __init__(self, place: Path) -> None:
        self.schema: dict[str, list[str]] = {"T0": ["p0"]}
        self.states: dict[str, State] = {"main": {}, "side": {}}
        self.base: State = {}
        self.past: list[tuple[str, State]] = []
        self.graph = og.Graph.init(str(place / "graph"), self.source())
        self.graph.branch_create("side")

    def source(self) -> str:
        lines = []
        for name, properties in self.schema.items():
            listed = "  ".join(f"{p}: I32?{' @index' if p == 'p1' else ''}" for p in properties)
            lines.append(f"node {name} {{ k: String @key  {listed} }}")
        return "\n".join(lines)

    def named(self, number: int) -> str:
        return list(self.schema)[number % len(self.schema)]

    def step(self, step: tuple[Any, ...]) -> None:
        getattr(self, step[0])(*step[1:])
        for branch in BRANCHES:
            self.past.append((head(self.graph, branch), copy.deepcopy(self.states[branch])))

    def write(self, branch: str, which: int, id: str, column: int, value: int) -> None:
        name = self.named(which)
        properties = self.schema[name]
        chosen = properties[column % len(properties)]
        # Replaces the whole row, as an upsert does.
        self.states[branch].setdefault(name, {})[id] = {chosen: value}
        catalog = self.graph.catalog.arrow_schema(f"node:{name}")
        row = {field.name: None for field in catalog} | {"id": id, "k": id, chosen: value}
        self.graph.write({f"node:{name}": og.Upsert(_table(catalog, row))}, branch=branch)

    def delete(self, branch: str, which: int, id: str) -> None:
        name = self.named(which)
        if self.states[branch].get(name, {}).pop(id, None) is not None:
            self.graph.write({f"node:{name}": og.Delete((id,))}, branch=branch)

    def property(self, which: int) -> None:
        name = self.named(which)
        self.schema[name].append(f"p{len(self.schema[name])}")
        self.graph.schema_apply(self.source())

    def type(self) -> None:
        self.schema[f"T{len(self.schema)}"] = ["p0"]
        self.graph.schema_apply(self.source())

    def merge(self, source: str, target: str) -> None:
        theirs, ours = self.states[source], self.states[target]
        for name in {*theirs, *self.base}:
            was, now = self.base.get(name, {}), theirs.get(name, {})
            for id in {*was, *now}:
                if was.get(id) != now.get(id):
                    ours.setdefault(name, {}).pop(id, None)
                    if id in now:
                        ours[name][id] = dict(now[id])
        self.base = copy.deepcopy(theirs)
        self.graph.branch_merge(source, target, strategy="theirs")

    def upkeep(self, branch: str) -> None:
        self.graph.ensure_indices(branch)
        self.graph.optimize(branch)

    def check(self) -> None:
        for branch in BRANCHES:
            assert self.read(branch=branch) == self.expected(self.states[branch])
        for commit, state in dict(self.past).items():
            assert self.read(snapshot=commit) == self.expected(state)
        told = {(c.table_key, c.id): c.op for c in self.graph.diff("main", "side").changes}
        assert told == self.differences()

    def read(self, **target: Any) -> dict[str, dict[str, dict[str, int | None]]]:
        found: dict[str, dict[str, dict[str, int | None]]] = {name: {} for name in self.schema}
        for line in everything(self.graph, **target).splitlines():
            row = json.loads(line)
            data = row["data"]
            id = data.pop("id")
            assert data.pop("k") == id
            found[row["type"]][id] = data
        return found

    def expected(self, state: State) -> dict[str, dict[str, dict[str, int | None]]]:
        return {
            name: {id: {p: row.get(p) for p in properties} for id, row in state.get(name, {}).items()}
            for name, properties in self.schema.items()
        }

    def differences(self) -> dict[tuple[str, str], str]:
        found = {}
        for name in self.schema:
            one, two = (self.states[branch].get(name, {}) for branch in BRANCHES)
            for id in {*one, *two}:
                if one.get(id) != two.get(id):
                    op = "update" if id in one and id in two else "insert" if id in two else "delete"
                    found[f"node:{name}", id] = op
        return found


def _table(schema: Any, row: dict[str, Any]) -> Any:
    return pa.Table.from_pylist([row], schema=schema)


@pytest.mark.slow
@given(steps=STEPS)
@settings(max_examples=16, deadline=None, phases=[Phase.generate], database=None)
def test_additions_and_writes_on_two_branches_hold_what_a_dict_holds(steps: list[tuple[Any, list[Any]]]) -> None:
    with tempfile.TemporaryDirectory() as place:
        model = Model(Path(place))
        for addition, uses in steps:
            for step in (addition, *uses):
                model.step(step)
        model.check()
