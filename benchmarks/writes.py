"""What writing costs through the verbs people use, beside the raw substrate or a peer in the same run.

    python -m benchmarks.writes [--only mutation,processes,load,merge,branch] [--rows 1000000]

mutation   one-row insert ÷ the commit floor of `benchmarks.commit` and ÷ Ladybug's single insert
processes  inserts per second from 1, 4 and 8 processes on one branch
load       NDJSON into an empty graph ÷ (strict parse with duplicate check + pylance write, nothing validated)
merge      10,000 rows into the table just loaded ÷ raw merge_insert of the same rows
branch     branch create and first write at 1,000 rows and at all rows, in turns
"""

from __future__ import annotations

import argparse
import importlib.util
import multiprocessing
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import lance
import orjson
import pyarrow as pa

import omnigraph as og
from benchmarks.commit import Floor
from benchmarks.local_calls import calls_per_commit, shown
from omnigraph.catalog.build import compile_source
from omnigraph.records.decode import POSITION, Decoder
from omnigraph.records.sources import find_sources, read_batches
from omnigraph.records.violations import Findings

SCHEMA = """
node Person { name: String @key  age: I32?  city: String?  score: F64?  joined: Date?  @range(age, 0..150) }
node City { name: String @key }
edge Knows: Person -> Person { since: I32? }
"""
INSERT = "query q($n: String) { insert Person { name: $n, age: 31 } }"
TIMES = 60


def spread(taken: list[float]) -> str:
    return f"{statistics.median(taken) * 1000:7.2f} ms"


def timed(act: Callable[[int], Any], times: int = TIMES) -> list[float]:
    taken = []
    for number in range(times):
        start = time.perf_counter()
        act(number)
        taken.append(time.perf_counter() - start)
    return taken


def mutation(place: Path, _rows: int) -> None:
    graph = og.Graph.init(str(place / "mutation"), SCHEMA)
    floor = Floor(str(place / "mutation-floor"))
    for number in range(20):
        graph.mutate(INSERT, {"n": f"warm{number}"})
        floor.write(1)
    graph.ensure_indices()
    base = timed(lambda _: floor.write(1))
    ours = timed(lambda n: graph.mutate(INSERT, {"n": f"p{n}"}))
    ratio = statistics.median(ours) / statistics.median(base)
    print(f"one-row mutation {spread(ours)}, commit floor {spread(base)}: {ratio:.2f}x")
    peer = ladybug(place)
    if peer is None:
        print("Ladybug is not installed (pip install '.[bench]')")
    else:
        ratio = statistics.median(ours) / statistics.median(peer)
        print(f"one-row mutation {spread(ours)}, Ladybug insert {spread(peer)}: {ratio:.1f}x")


def ladybug(place: Path) -> list[float] | None:
    """The peer keeps one file and a log; it has neither branches nor readers in other processes."""
    if importlib.util.find_spec("ladybug") is None:
        return None
    import ladybug as peer

    connection = peer.Connection(peer.Database(str(place / "ladybug.db")))
    connection.execute("CREATE NODE TABLE Person(name STRING, age INT32, PRIMARY KEY(name))")
    statement = "CREATE (:Person {name: $n, age: 31})"
    for number in range(20):
        connection.execute(statement, {"n": f"warm{number}"})
    return timed(lambda n: connection.execute(statement, {"n": f"p{n}"}))


def _insert(uri: str, number: int, count: int) -> None:
    graph = og.Graph.open(uri)
    for turn in range(count):
        graph.mutate(INSERT, {"n": f"w{number}-{turn}"})


def processes(place: Path, _rows: int) -> None:
    each = 30
    for count in (1, 4, 8):
        graph = og.Graph.init(str(place / f"processes{count}"), SCHEMA)
        with ProcessPoolExecutor(count, multiprocessing.get_context("spawn")) as pool:
            list(pool.map(_insert, [graph.uri] * count, range(100, 100 + count), [1] * count))
            start = time.perf_counter()
            list(pool.map(_insert, [graph.uri] * count, range(count), [each] * count))
            taken = time.perf_counter() - start
        found = graph.snapshot().tables["node:Person"].row_count
        assert found == count * (each + 1), "an acknowledged insert is missing"
        print(f"{count} processes: {count * each / taken:6.1f} inserts per second, all of them there")


def write_input(path: Path, rows: int) -> None:
    chance = random.Random(7)
    with open(path, "wb") as file:
        for number in range(rows):
            data = {"name": f"person-{number:08d}", "age": chance.randrange(100), "city": f"city-{number % 997}"}
            data |= {"score": chance.random(), "joined": f"20{number % 24:02d}-01-{1 + number % 28:02d}"}
            file.write(orjson.dumps({"type": "Person", "data": data}) + b"\n")


def parse_and_write(path: Path, target: str) -> None:
    """What any loader must do: the strict parse, and the rows in a table."""
    catalog = compile_source(SCHEMA)
    decoder, findings = Decoder(catalog), Findings()
    schema = catalog.arrow_schema("node:Person")

    def batches() -> Any:
        for lines in read_batches(find_sources([str(path)])):
            found = decoder.decode(lines, findings).get("node:Person")
            if found is not None:
                yield found.drop_columns([POSITION])

    lance.write_dataset(pa.RecordBatchReader.from_batches(schema, batches()), target, enable_stable_row_ids=True)


def measured_child(words: list[str]) -> tuple[float, float]:
    """Seconds and peak memory in MiB of a run in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.writes", "--child", *words]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode:
        raise RuntimeError(answer.stderr)
    seconds, peak = answer.stdout.split()[-2:]
    return float(seconds), float(peak)


def child(words: list[str]) -> None:
    kind, source, target = words
    start = time.perf_counter()
    if kind == "floor":
        parse_and_write(Path(source), target)
    else:
        og.Graph.open(target).load(source, mode="append", index=False)
    taken = time.perf_counter() - start
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    print(taken, peak / 1024)


def load(place: Path, rows: int) -> None:
    source = place / "people.jsonl"
    write_input(source, rows)
    og.Graph.init(str(place / "loaded"), SCHEMA)
    base, base_peak = measured_child(["floor", str(source), str(place / "load-floor")])
    ours, peak = measured_child(["ours", str(source), str(place / "loaded")])
    print(f"load of {rows:,} rows ({source.stat().st_size >> 20} MiB): {ours:.1f} s, peak {peak:.0f} MiB")
    print(f"  parse and write alone: {base:.1f} s, peak {base_peak:.0f} MiB: {ours / base:.2f}x")


def merge(place: Path, rows: int) -> None:
    graph = og.Graph.open(str(place / "loaded"))
    graph.ensure_indices()
    raw = lance.dataset(str(place / "load-floor"))
    raw.create_scalar_index("id", "BTREE")
    chance = random.Random(8)
    ours, base = [], []
    for turn in range(3):
        keys = chance.sample(range(rows + 5000), 10_000)
        source = place / f"merge{turn}.jsonl"
        with open(source, "wb") as file:
            for key in keys:
                file.write(orjson.dumps({"type": "Person", "data": {"name": f"person-{key:08d}", "age": turn}}) + b"\n")
        names = [f"person-{key:08d}" for key in keys]
        table = pa.table({"id": names, "name": names, "age": pa.array([turn] * len(keys), pa.int32())})
        absent = {f.name: pa.nulls(len(keys), f.type) for f in raw.schema if f.name not in table.column_names}
        columns = {name: absent[name] if name in absent else table[name] for name in raw.schema.names}
        table = pa.table(columns, schema=raw.schema)
        start = time.perf_counter()
        raw.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(table)
        base.append(time.perf_counter() - start)
        start = time.perf_counter()
        graph.load(str(source), mode="merge", index=False)
        ours.append(time.perf_counter() - start)
    ratio = statistics.median(ours) / statistics.median(base)
    print(f"merge of 10,000 rows into {rows:,}: {spread(ours)}, raw merge_insert {spread(base)}: {ratio:.2f}x")


class BranchWriter:
    """Makes a branch and writes one row on it."""

    def __init__(self, graph: og.Graph) -> None:
        self.graph = graph

    @staticmethod
    def reopened(place: str) -> BranchWriter:
        return BranchWriter(og.Graph.open(place))

    def write(self, _tables: int) -> None:
        name = f"c{time.time_ns()}"
        self.graph.branch_create(name)
        self.graph.mutate(INSERT, {"n": name}, branch=name)


def branch(place: Path, rows: int) -> None:
    small = og.Graph.init(str(place / "small"), SCHEMA)
    write_input(place / "few.jsonl", 1000)
    small.load(str(place / "few.jsonl"), mode="append")
    large = og.Graph.open(str(place / "loaded"))
    large.ensure_indices()
    graphs = {"1,000": small, f"{rows:,}": large}
    figures: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in graphs}
    for turn in range(17):
        for name, graph in graphs.items():
            create = timed(lambda _, g=graph, n=turn: g.branch_create(f"b{n}"), 1)
            write = timed(lambda _, g=graph, n=turn: g.mutate(INSERT, {"n": f"new{n}"}, branch=f"b{n}"), 1)
            if turn > 1:  # the first ones find everything cold
                figures[name][0].extend(create)
                figures[name][1].extend(write)
    for name, (create, write) in figures.items():
        print(f"{name:>9} rows: create {spread(create)}, first write {spread(write)}")
        print(f"{'':>9} storage calls of both: {shown(calls_per_commit('branch', Path(graphs[name].uri), 5))}")
    (c1, w1), (c2, w2) = figures.values()
    made, written = (statistics.median(b) / statistics.median(a) for a, b in ((c1, c2), (w1, w2)))
    print(f"large ÷ small: create {made:.2f}x, first write {written:.2f}x")


PARTS: dict[str, Callable[[Path, int], None]] = {
    "mutation": mutation,
    "processes": processes,
    "load": load,
    "merge": merge,
    "branch": branch,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--child", nargs="*")
    chosen = parser.parse_args()
    if chosen.child:
        child(chosen.child)
        return
    place = Path(tempfile.mkdtemp(prefix="omnigraph-writes-"))
    try:
        for name in chosen.only.split(","):
            PARTS[name](place, chosen.rows)
            sys.stdout.flush()
    finally:
        shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    main()
