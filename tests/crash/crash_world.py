"""The graph every crash happens to, the writes that are interrupted, and what a user can see of either."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from omnigraph.commit.plan import (
    BRANCH_MERGE,
    ENSURE_INDICES,
    LOAD,
    MUTATION,
    OPTIMIZE,
    RESET,
    REVERT,
    SCHEMA_APPLY,
    SCHEMA_CATCH_UP,
    DeferredIndex,
    WritePlan,
    Writer,
    effect_of,
)
from omnigraph.engine.view import View
from omnigraph.engine.write.changes import (
    Annotations,
    Append,
    BuildIndexes,
    Change,
    Compact,
    Delete,
    DeleteWhere,
    Fragments,
    Overwrite,
    Upsert,
    plan_changes,
)
from omnigraph.graph import Graph
from omnigraph.storage.fragments import write_fragment_messages
from omnigraph.storage.stage import IndexKind, IndexSpec
from omnigraph.storage.tables import head_version

COLUMNS = "{ name: String  bio: String?  n: I64?  vec: Vector(4)? }"
SCHEMA = f"node Person {COLUMNS}\nnode Company {COLUMNS}\nedge Knows: Person -> Person {COLUMNS}\n"
TABLES = ("edge:Knows", "node:Company", "node:Person")
ACTOR, MESSAGE = "act-crash", "the write that is interrupted"
ROW_FACTS = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]


def rows_of(table_key: str, ids: Sequence[str], name: str, n: int = 0) -> pa.Table:
    """Rows of any of the tables; edges lead from p0 to p0."""
    columns: dict[str, Any] = {
        "id": list(ids),
        "name": [f"{name} {i}" for i in ids],
        "bio": [f"the {name} life of {i}" for i in ids],
        "n": pa.array([n + k for k in range(len(ids))], pa.int64()),
        "vec": [[1.0, float(k), 0.5, 0.25] for k in range(len(ids))],
    }
    if table_key.startswith("edge:"):
        columns |= {"src": ["p0"] * len(ids), "dst": ["p0"] * len(ids)}
    return pa.table(columns)


def build_graph(path: str) -> None:
    """Three tables of three fragments each, deletion files in them, an index on one."""
    with Graph.init(path, SCHEMA) as graph:
        for k in range(3):
            graph.write({t: Append(rows_of(t, [f"p{k}", f"q{k}"], "old", k)) for t in TABLES})
        graph.write({t: Delete(("q1",)) for t in TABLES}, writer=MUTATION)
        graph.write({"node:Company": BuildIndexes((IndexSpec("n", IndexKind.BTREE),))}, writer=ENSURE_INDICES)


@dataclass(frozen=True)
class Effect:
    """One way to change a table, by the writer that uses it; `then` is built once the first step has landed."""

    name: str
    writer: Writer
    change: Callable[[View, str], Change]
    then: tuple[IndexSpec, ...] = ()

    @property
    def steps(self) -> int:
        return 2 if self.then else 1


def _fragments(view: View, table_key: str) -> Fragments:
    table = view.table(table_key)
    ids = ["elsewhere-1", "elsewhere-2"]
    rows = rows_of(table_key, ids, "new").select(table.schema.names).cast(table.schema)
    messages = write_fragment_messages(table.ref.uri, table.version, rows, table.ref.options)
    return Fragments(tuple(messages), len(ids), table.version)


def _index(column: str, kind: IndexKind) -> Callable[[View, str], Change]:
    return lambda _view, _key: BuildIndexes((IndexSpec(column, kind),))


NAME_INDEX = (IndexSpec("name", IndexKind.BTREE),)
EFFECTS = {
    e.name: e
    for e in (
        Effect("append", MUTATION, lambda _, t: Append(rows_of(t, ["new-1", "new-2"], "new"))),
        Effect("upsert", LOAD, lambda _, t: Upsert(rows_of(t, ["p0", "p1", "new-1"], "new"))),
        Effect("upsert_and_delete", BRANCH_MERGE, lambda _, t: Upsert(rows_of(t, ["p1", "new"], "new"), ("q0", "p2"))),
        Effect("delete_by_id", MUTATION, lambda _, t: Delete(("p0", "q2"))),
        Effect("delete_by_predicate", MUTATION, lambda _, t: DeleteWhere("n >= 2")),
        Effect("overwrite", LOAD, lambda _, t: Overwrite(rows_of(t, ["p0", "new-1"], "new"))),
        Effect("overwrite_to_empty", LOAD, lambda _, t: Overwrite(rows_of(t, [], "new"))),
        Effect("fragments_from_elsewhere", LOAD, _fragments),
        Effect("scalar_index", ENSURE_INDICES, _index("name", IndexKind.BTREE)),
        Effect("text_index", ENSURE_INDICES, _index("bio", IndexKind.TEXT)),
        Effect("vector_index", ENSURE_INDICES, _index("vec", IndexKind.VECTOR)),
        Effect("compaction", OPTIMIZE, lambda _v, _t: Compact()),
        Effect("compaction_then_index", OPTIMIZE, lambda _v, _t: Compact(), NAME_INDEX),
        Effect("revert", REVERT, lambda _, t: Upsert(rows_of(t, ["p0"], "reverted"), ("q2",))),
        Effect("reset", RESET, lambda _, t: Overwrite(rows_of(t, ["p0", "q1"], "reset"))),
        Effect("schema_catch_up", SCHEMA_CATCH_UP, lambda _, t: Upsert(rows_of(t, ["p0"], "caught up"))),
        Effect("schema_apply", SCHEMA_APPLY, lambda _, t: Overwrite(rows_of(t, ["p0"], "applied")), NAME_INDEX),
    )
}


def plan_of(graph: Graph, effect: Effect, tables: Sequence[str], operation_id: str) -> WritePlan:
    """The write, staged; nothing has moved."""
    view = graph.view()
    changes = {t: effect.change(view, t) for t in tables}
    plan = plan_changes(view, changes, effect.writer, Annotations(ACTOR, MESSAGE, {"why": "crash"}), operation_id)
    assert len(plan.effects) == len(tables), "every table must have something to do"
    if not effect.then:
        return plan
    later = DeferredIndex(effect.then)
    return dataclasses.replace(plan, effects=tuple(effect_of(e.steps[0], later) for e in plan.effects))


@dataclass(frozen=True)
class TableSeen:
    """One table as readers see it, row ids and row versions included, and how it is stored."""

    rows: tuple[tuple[tuple[str, Any], ...], ...]
    indexes: tuple[str, ...]
    fragments: int


def seen(graph: Graph) -> dict[str, TableSeen]:
    """Everything a reader of the graph can see; ids are unique and the manifest counts the rows rightly."""
    view, found = graph.view(), {}
    for key, entry in view.entries.items():
        table = view.table(key)
        rows = table.read([*table.schema.names, *ROW_FACTS]).sort_by("id").to_pylist()
        ids = [r["id"] for r in rows]
        assert len(set(ids)) == len(ids), f"{key} holds an id twice"
        assert entry.row_count == len(rows), f"the manifest counts {entry.row_count} rows of {key}, not {len(rows)}"
        frozen = tuple(tuple((k, tuple(v) if isinstance(v, list) else v) for k, v in r.items()) for r in rows)
        indexes = tuple(sorted(i.name for i in table.dataset.describe_indices()))
        found[key] = TableSeen(frozen, indexes, table.fragment_count())
    return found


def pins(graph: Graph) -> dict[str, int]:
    return {key: entry.table_version for key, entry in graph.snapshot().tables.items()}


def heads(graph: Graph) -> dict[str, int]:
    """The newest version of every table, readable or not."""
    entries = graph.snapshot().tables.items()
    return {k: head_version(graph.context.ref(e.location, e.table_branch), e.table_version) for k, e in entries}


def listing(path: str) -> dict[str, tuple[int, int]]:
    """Every file below `path` with its size and time of change."""
    found = {}
    for folder, _, names in os.walk(path):
        for name in names:
            full = os.path.join(folder, name)
            stat = os.stat(full)
            found[os.path.relpath(full, path)] = (stat.st_size, stat.st_mtime_ns)
    return found


def pending_files(path: str) -> list[str]:
    """Sidecars on disk. A writer killed while it writes one may leave a temporary file, which nobody takes for one."""
    folder = os.path.join(path, "__recovery")
    return sorted(n for n in os.listdir(folder) if n.endswith(".json")) if os.path.isdir(folder) else []
