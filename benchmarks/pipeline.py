"""What the pipeline costs on Spark, beside the same work of Spark alone in the same run.

    python -m benchmarks.pipeline [--only load,overwrite,read,merge,crossover,large] [--rows 1000000] [--turns 3]

load       NDJSON into an empty graph, all checks on ÷ the same strict parse and fragments without checks,
           and ÷ Spark's own NDJSON to Parquet; cold (a new session) and warm
overwrite  Parquet into a graph by `overwrite` ÷ a Parquet copy by Spark
read       a type through our source, by its name and as a frame of `graph.spark` ÷ `spark.read.parquet` of the rows
merge      1 % of the rows merged into them
crossover  the embedded engine beside Spark at growing sizes
large      20 times the rows with a driver heap of 2 GB: seconds, and the peak memory of every process (not by default)

A fifth of the rows are nodes, the others edges between them. `local[2]`, one process for each part.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import omnigraph as og
from omnigraph.base.ids import new_ulid
from omnigraph.engine.write.changeset import TableChange
from omnigraph.pipeline.bulk.desk import Desk
from omnigraph.pipeline.bulk.intake import BulkIntake
from omnigraph.pipeline.bulk.questions import Questions
from omnigraph.pipeline.bulk.write import stage_on_spark
from omnigraph.pipeline.session import SparkSettings, session
from omnigraph.pipeline.worker.decode import DecodeTask
from omnigraph.records.sources import find_sources
from omnigraph.sets.scratch import Scratch
from omnigraph.settings import Settings
from omnigraph.storage.row_files import RowFolder
from omnigraph.storage.stage import Stamp

SCHEMA = """
node Person { name: String @key  age: I32?  city: String?  score: F64?  joined: Date?  @range(age, 0..150) }
edge Knows: Person -> Person { since: I32? }
"""


def people(first: int, count: int) -> pa.Table:
    numbers = np.arange(first, first + count)
    return pa.table(
        {
            "name": pa.array([f"person-{n:09d}" for n in numbers.tolist()]),
            "age": pa.array((numbers % 97).astype(np.int32)),
            "city": pa.array([f"city-{n}" for n in (numbers % 997).tolist()]),
            "score": pa.array(numbers * 0.5),
            "joined": pa.array((10_000 + numbers % 9_000).astype(np.int32)).cast(pa.date32()),
        }
    )


def write_ndjson(path: Path, rows: int) -> None:
    nodes = max(rows // 5, 1)
    chance = np.random.default_rng(7)
    with open(path, "w", encoding="ascii") as file:
        for n in range(nodes):
            day = f"20{n % 24:02d}-{1 + n % 12:02d}-{1 + n % 28:02d}"
            file.write(
                f'{{"type":"Person","data":{{"name":"person-{n:09d}","age":{n % 97},"city":"city-{n % 997}",'
                f'"score":{n * 0.5},"joined":"{day}"}}}}\n'
            )
        for start in range(0, rows - nodes, 100_000):
            ends = chance.integers(0, nodes, (min(100_000, rows - nodes - start), 2)).tolist()
            file.writelines(
                f'{{"edge":"Knows","from":"person-{a:09d}","to":"person-{b:09d}","data":{{"since":{a % 60}}}}}\n'
                for a, b in ends
            )


def start(heap: str = "1g") -> SparkSession:
    return session(SparkSettings(master="local[2]", search_path=os.environ["PATH"], driver_memory=heap))


def timed(act: Callable[[], Any]) -> float:
    before = time.perf_counter()
    act()
    return time.perf_counter() - before


def fresh(place: Path) -> og.Graph:
    return og.Graph.init(str(place / new_ulid()), SCHEMA)


def load_once(place: Path, source: Path, engine: str = "spark") -> None:
    fresh(place).load(source, mode="append", engine=engine, index=False)


def without_checks(place: Path, source: Path, spark: SparkSession) -> None:
    """The same strict parse and the same fragments, nothing compared and nothing committed."""
    graph, settings = fresh(place), Settings.resolve()
    folder = RowFolder(str(place / new_ulid()))
    desk, view = Desk(spark, folder), graph.view()
    task = DecodeTask(view.catalog, folder, settings.load_max_line_bytes, settings.load_batch_rows, 20, False)
    with Scratch(settings) as scratch:
        reading = BulkIntake(desk, task, scratch, lambda _stage, _rows: None)
        reading.read_files(find_sources([str(source)]))
        for key, rows in reading.intake().rows.items():
            change = TableChange(key, rows, strict_insert=True)
            schema, stamp = view.catalog.arrow_schema(key), Stamp(new_ulid(), key, "0")
            stage_on_spark(Questions(desk, settings), desk, view.table_to_write(key), schema, change, stamp)
    shutil.rmtree(folder.uri, ignore_errors=True)


def to_parquet(place: Path, source: Path, spark: SparkSession) -> None:
    spark.read.json(str(source)).write.parquet(str(place / new_ulid()))


def load(place: Path, rows: int, turns: int) -> None:
    source = place / "in.jsonl"
    write_ndjson(source, rows)
    spark = start()
    acts = {
        "ours": partial(load_once, place, source),
        "without checks": partial(without_checks, place, source, spark),
        "NDJSON to Parquet": partial(to_parquet, place, source, spark),
    }
    cold = timed(acts["ours"])
    taken: dict[str, list[float]] = {name: [] for name in acts}
    for _ in range(turns):
        for name, act in acts.items():
            taken[name].append(timed(act))
    base = {name: statistics.median(times) for name, times in taken.items()}
    print(f"load of {rows:,} rows ({source.stat().st_size >> 20} MiB): cold {cold:.1f} s, warm {base['ours']:.1f} s")
    for name in ("without checks", "NDJSON to Parquet"):
        print(f"  ÷ {name} {base[name]:.1f} s: {base['ours'] / base[name]:.2f}x")


def overwrite(place: Path, rows: int, turns: int) -> None:
    source = str(place / "people.parquet")
    pq.write_table(people(0, rows), source, row_group_size=100_000)
    spark, graph = start(), fresh(place)

    def load_parquet() -> None:
        graph.spark.load({"Person": spark.read.parquet(source)}, mode="overwrite", index=False)

    def copy() -> None:
        spark.read.parquet(source).write.parquet(str(place / new_ulid()))

    load_parquet(), copy()
    mine, base = [], []
    for _ in range(turns):
        base.append(timed(copy))
        mine.append(timed(load_parquet))
    told(f"overwrite of {rows:,} nodes from Parquet", mine, "Parquet copy", base)


def read(place: Path, rows: int, turns: int) -> None:
    source = str(place / "people.parquet")
    pq.write_table(people(0, rows), source, row_group_size=100_000)
    spark, graph = start(), fresh(place)
    graph.spark.load({"Person": spark.read.parquet(source)}, mode="append", index=False)
    columns = pq.read_schema(source).names

    def drained(frame: Callable[[], DataFrame]) -> None:
        frame().write.format("noop").mode("overwrite").save()

    found = spark.read.format("omnigraph").option("type", "Person").option("columns", ",".join(columns))
    ways: dict[str, Callable[[], DataFrame]] = {
        "spark.read.parquet": lambda: spark.read.parquet(source),
        "the source": lambda: found.load(graph.uri),
        "graph.spark": lambda: graph.spark.nodes("Person", columns=columns),
    }
    taken: dict[str, list[float]] = {way: [] for way in ways}
    for turn in range(turns + 1):
        for way, frame in ways.items():
            seconds = timed(partial(drained, frame))
            if turn:
                taken[way].append(seconds)
    (peer, base), *ours = taken.items()
    for way, mine in ours:
        told(f"read of {rows:,} nodes through {way}", mine, peer, base)


def merge(place: Path, rows: int, turns: int) -> None:
    spark, graph = start(), fresh(place)
    source = str(place / "people.parquet")
    pq.write_table(people(0, rows), source, row_group_size=100_000)
    graph.spark.load({"Person": spark.read.parquet(source)}, mode="append", index=False)
    changed = str(place / "changed.parquet")
    pq.write_table(people(rows - rows // 200, rows // 100), changed)
    taken = [
        timed(lambda: graph.spark.load({"Person": spark.read.parquet(changed)}, mode="merge", index=False))
        for _ in range(turns)
    ]
    print(f"merge of {rows // 100:,} rows, half of them new at first, into {rows:,}: {statistics.median(taken):.1f} s")


def crossover(place: Path, rows: int, _turns: int) -> None:
    start()
    for size in (rows // 50, rows // 10, rows, rows * 4):
        source = place / f"in-{size}.jsonl"
        write_ndjson(source, size)
        taken = {}
        for engine in ("spark", "embedded", "spark", "embedded"):
            taken[engine] = timed(partial(load_once, place, source, engine))
        print(f"{size:>12,} rows: embedded {taken['embedded']:6.1f} s, spark {taken['spark']:6.1f} s")


def large(place: Path, rows: int, _turns: int) -> None:
    count = rows * 20
    source = place / "large.jsonl"
    write_ndjson(source, count)
    peaks: dict[str, int] = {}
    stop = threading.Event()
    threading.Thread(target=watch_memory, args=(peaks, stop), daemon=True).start()
    start(heap="2g")
    taken = timed(partial(load_once, place, source))
    stop.set()
    shown = ", ".join(f"{name} {peak >> 10} MiB" for name, peak in sorted(peaks.items()))
    size = source.stat().st_size >> 20
    print(f"{count:,} rows ({size} MiB), driver heap 2 GB: {taken:.0f} s; highest peaks: {shown}")


def watch_memory(peaks: dict[str, int], stop: threading.Event) -> None:
    """The highest VmHWM in KiB of this process, of any Python worker, and of the JVM."""
    mine = os.getpid()
    while not stop.wait(0.5):
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
                peak, name = int(status["VmHWM"].split()[0]), status["Name"].strip()
            except (OSError, KeyError, ValueError):
                continue
            kind = "driver" if int(folder.name) == mine else "JVM" if name == "java" else "worker"
            if kind != "worker" or "pyspark" in name or name.startswith("python"):
                peaks[kind] = max(peaks.get(kind, 0), peak)


def told(what: str, mine: list[float], peer: str, base: list[float]) -> None:
    own, other = statistics.median(mine), statistics.median(base)
    print(f"{what}: {own:.2f} s, {peer} {other:.2f} s: {own / other:.2f}x")


PARTS: dict[str, Callable[[Path, int, int], None]] = {
    "load": load,
    "overwrite": overwrite,
    "read": read,
    "merge": merge,
    "crossover": crossover,
    "large": large,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="load,overwrite,read,merge,crossover")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    for name in chosen.only.split(","):
        if not chosen.here:
            words = ["--only", name, "--rows", str(chosen.rows), "--turns", str(chosen.turns), "--here"]
            subprocess.run([sys.executable, "-m", "benchmarks.pipeline", *words], check=True)
            continue
        place = Path(tempfile.mkdtemp(prefix="omnigraph-pipeline-"))
        try:
            PARTS[name](place, chosen.rows, chosen.turns)
        finally:
            shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    main()
