"""A town of people who follow each other: made by Spark, written by its executors, committed once, read back.

python -m demo [directory]
"""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console
from rich.table import Table

import omnigraph as og
from omnigraph.pipeline.frames import append_frames
from omnigraph.pipeline.session import spark_session

PEOPLE, FOLLOWS = 50_000, 200_000
SCHEMA = """\
node Person {
  handle: String @key
  born: Date?
  city: enum(lisbon, oslo, quito, turin)
}
edge Follows: Person -> Person { since: Date? }
"""
console = Console(width=100)


def people(spark: SparkSession) -> DataFrame:
    return spark.sql(f"""
        select concat('p', id) as id, concat('p', id) as handle,
               date_add(date'1960-01-01', cast(id * 37 % 18000 as int)) as born,
               element_at(array('lisbon', 'oslo', 'quito', 'turin'), cast(id % 4 as int) + 1) as city
        from range({PEOPLE})""")


def follows(spark: SparkSession) -> DataFrame:
    return spark.sql(f"""
        select concat('f', id) as id, concat('p', id % {PEOPLE}) as src,
               concat('p', (id * 7919 + 13) % {PEOPLE}) as dst,
               date_add(date'2015-01-01', cast(id % 3000 as int)) as since
        from range({FOLLOWS})""")


def show_snapshot(title: str, snapshot: og.Snapshot) -> None:
    table = Table(title=title, title_justify="left")
    for column in ("table", "version", "rows"):
        table.add_column(column, justify="left" if column == "table" else "right")
    for key, entry in snapshot.tables.items():
        table.add_row(key, str(entry.table_version), f"{entry.row_count:,}")
    console.print(table)


def main() -> None:
    place = Path(sys.argv[1] if len(sys.argv) > 1 else "demo-graph")
    shutil.rmtree(place, ignore_errors=True)
    graph = og.Graph.init(str(place), SCHEMA)
    console.print(f"[bold]1.[/] an empty graph at {place}/, schema of {len(graph.catalog.tables())} types")

    started = time.monotonic()
    spark = spark_session(graph.settings)
    java = spark.sparkContext._jvm.System.getProperty("java.version")  # type: ignore[union-attr]
    console.print(
        f"[bold]2.[/] Spark {spark.version} on {spark.sparkContext.master}, Java {java}, "
        f"started in {time.monotonic() - started:.1f} s"
    )

    started = time.monotonic()
    frames = {"node:Person": people(spark), "edge:Follows": follows(spark)}
    receipt = append_frames(graph, frames, message="a town", actor="act-demo")
    rows = PEOPLE + FOLLOWS
    console.print(
        f"[bold]3.[/] executors wrote {rows:,} rows as Lance fragments; the driver committed once: "
        f"{receipt.graph_commit_id} ({time.monotonic() - started:.1f} s)"
    )
    show_snapshot(f"graph version {receipt.graph_version}", graph.snapshot())

    console.print(f"[bold]4.[/] read back: {graph.entity_at('node:Person', 'p42', receipt.graph_version)}")
    moved = [{"id": "p42", "handle": "p42", "city": "oslo"}, {"id": "p-new", "handle": "p-new", "city": "oslo"}]
    graph.write({"node:Person": og.Upsert(pa.Table.from_pylist(moved))}, message="two move to oslo")
    show_snapshot("after a small write", graph.snapshot())

    console.print("[bold]5.[/] history, newest first")
    for commit in graph.list_commits():
        console.print(
            f"   {commit.graph_commit_id} version={commit.manifest_version} {commit.kind}  {commit.message or ''}"
        )
    console.print("[bold]6.[/] time travel")
    for version in (receipt.graph_version, graph.snapshot().version):
        console.print(f"   p42 at version {version}: {graph.entity_at('node:Person', 'p42', version)}")
    graph.close()
    spark.stop()


if __name__ == "__main__":
    main()
