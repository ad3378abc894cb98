"""What a one-row commit costs, beside the raw floor, as history grows.

    python -m benchmarks.commit [--depths 10,100,1000,5000] [--tables 1,2,5]

The floor is raw pylance doing the least that keeps k tables and a manifest: stage and commit one row in each table,
then one merge_insert into a manifest table that is compacted every 50 publishes. Ours is `Graph.write` with everything
on. Each figure is the p50 over a whole compaction cycle (50 commits), both measured alternately in the same run.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
from lance.fragment import write_fragments

import omnigraph as og
from benchmarks.local_calls import calls_per_commit, shown
from omnigraph.engine.write.changes import Change
from omnigraph.manifest.rows import SCHEMA as MANIFEST_SCHEMA
from omnigraph.storage.fragments import write_fragment_messages

CYCLE = 50
TABLES_MAX = 5
ROW_SCHEMA = pa.schema([pa.field("id", pa.string(), nullable=False), ("age", pa.int32()), ("name", pa.string())])


def rows(key: str) -> pa.Table:
    return pa.table({"id": [key], "age": [1], "name": [key]}, schema=ROW_SCHEMA)


class Floor:
    """Raw pylance: k staged appends, k commits, one manifest merge_insert."""

    def __init__(self, root: str, options: dict[str, str] | None = None, *, create: bool = True) -> None:
        def place(name: str, schema: pa.Schema) -> lance.LanceDataset:
            uri = f"{root}/{name}"
            if not create:
                return lance.dataset(uri, storage_options=options)
            empty = schema.empty_table()
            return lance.write_dataset(empty, uri, enable_stable_row_ids=True, storage_options=options)

        self.tables = [place(f"t{i}", ROW_SCHEMA) for i in range(TABLES_MAX)]
        self.manifest = place("manifest", MANIFEST_SCHEMA)
        self.count = 0

    @staticmethod
    def reopened(root: str, options: dict[str, str] | None = None) -> Floor:
        floor = Floor(root, options, create=False)
        floor.count = time.time_ns()
        return floor

    def catch_up(self) -> None:
        """See what somebody else wrote."""
        for table in (*self.tables, self.manifest):
            table.checkout_latest()

    def write(self, k: int) -> None:
        self.count += 1
        for i in range(k):
            transaction = write_fragments(
                rows(f"r{self.count}"), self.tables[i], mode="append", return_transaction=True
            )
            self.tables[i] = lance.LanceDataset.commit(self.tables[i], transaction, max_retries=0)
        ids = [f"table_version:{i}@{self.count:020d}" for i in range(k)] + [f"graph_commit:after:{self.count}"]
        n = len(ids)
        published = pa.table(
            {
                "object_id": ids,
                "object_type": ["table_version"] * n,
                "location": ["nodes/0000000000000000"] * n,
                "metadata": ["{" + "x" * 200 + "}"] * n,
                "base_objects": pa.nulls(n, pa.list_(pa.string())),
                "table_key": ["node:T"] * n,
                "table_version": [self.count] * n,
                "table_branch": [None] * n,
                "row_count": [1] * n,
            },
            schema=MANIFEST_SCHEMA,
        )
        builder = self.manifest.merge_insert("object_id").when_matched_fail().when_not_matched_insert_all()
        builder.conflict_retries(0).execute(published)
        if self.count % CYCLE == 0:
            self.manifest.optimize.compact_files()

    def keep_small(self) -> None:
        for table in self.tables:
            table.optimize.compact_files()
            table.checkout_latest()


class Ours:
    """The whole protocol: lock, settle, re-check, sidecar, apply, publish, clear.

    `write` inserts rows known to be new, as the floor does; `insert` looks each id up first, as a user's append does.
    """

    def __init__(self, root: str, settings: og.Settings | None = None) -> None:
        schema = "\n".join(f"node T{i} {{ name: String? age: I32? }}" for i in range(TABLES_MAX))
        self.graph = og.Graph.init(root, schema, settings=settings)
        self.options = self.graph.context.root.storage_options
        self.count = 0

    @staticmethod
    def reopened(root: str) -> Ours:
        ours = Ours.__new__(Ours)
        ours.graph, ours.options = og.Graph.open(root), None
        ours.count = time.time_ns()
        return ours

    def write(self, k: int) -> None:
        self.count += 1
        view = self.graph.view()
        changes: dict[str, Change] = {}
        for i in range(k):
            table = view.table(f"node:T{i}")
            messages = write_fragment_messages(table.ref.uri, table.version, rows(f"r{self.count}"), self.options)
            changes[f"node:T{i}"] = og.Fragments(tuple(messages), 1, table.version)
        self.graph.write(changes, view=view)

    def insert(self, k: int) -> None:
        self.count += 1
        self.graph.write({f"node:T{i}": og.Append(rows(f"r{self.count}")) for i in range(k)})

    def keep_small(self) -> None:
        for i in range(TABLES_MAX):
            self.graph.write({f"node:T{i}": og.Compact()})


def p50_ms(write: Callable[[int], None], k: int) -> list[float]:
    taken = []
    for _ in range(CYCLE):
        start = time.perf_counter()
        write(k)
        taken.append((time.perf_counter() - start) * 1000)
    return taken


def grow(floor: Floor, ours: Ours, depth: int) -> None:
    """Bring both to `depth` commits, data tables compacted so that only history grows."""
    while ours.count < depth:
        floor.write(1)
        ours.write(1)
        if ours.count % 200 == 0:
            floor.keep_small()
            ours.keep_small()
    floor.keep_small()
    ours.keep_small()


def run(depths: list[int], tables: list[int]) -> None:
    place = Path(tempfile.mkdtemp(prefix="omnigraph-bench-"))
    first: dict[int, float] = {}
    try:
        floor, ours = Floor(str(place / "floor")), Ours(str(place / "ours"))
        print("one row into each of k tables, p50 of a compaction cycle; ratio to the floor of the same run")
        print("depth  k    floor      commit           checked insert   commit vs first depth")
        for depth in depths:
            grow(floor, ours, depth)
            for k in tables:
                base = statistics.median(p50_ms(floor.write, k))
                mine = statistics.median(p50_ms(ours.write, k))
                floor.keep_small()
                ours.keep_small()
                checked = statistics.median(p50_ms(ours.insert, k))
                ours.keep_small()
                first.setdefault(k, mine / base)
                print(
                    f"{depth:5}  {k}  {base:6.2f} ms  {mine:6.2f} ms {mine / base:4.2f}x  "
                    f"{checked:6.2f} ms {checked / base:4.2f}x   {mine / base / first[k]:4.2f}x",
                    flush=True,
                )
            print(f"       storage calls of a one-table commit: {shown(calls_per_commit('ours', place / 'ours'))}")
    finally:
        shutil.rmtree(place, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--depths", default="10,100,1000,5000")
    parser.add_argument("--tables", default="1,2,5")
    chosen = parser.parse_args()
    run([int(d) for d in chosen.depths.split(",")], [int(t) for t in chosen.tables.split(",")])


if __name__ == "__main__":
    main()
