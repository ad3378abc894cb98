"""A driver process: it takes orders, one JSON line each, loads on Spark, and answers each with one line.

With a gateway in its environment it works on a Spark that lives on when it dies; else it starts its own.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import odd_tasks
from pyspark import SparkConf, SparkContext, cloudpickle
from pyspark.java_gateway import launch_gateway

import omnigraph as og
from omnigraph.base import failpoints
from omnigraph.engine.write.changeset import TableChange
from omnigraph.pipeline.bulk import bench, folder, intake, questions, rows, write
from omnigraph.records import splits
from omnigraph.settings import Settings

_WAIT_S_MAX = 200
# Where the driver looks the tasks up that it sends out.
TASKS: dict[str, tuple[Any, str]] = {
    "read": (intake, "decode_splits"),
    "deal": (questions, "deal_pieces"),
    "ask": (questions, "ask_buckets"),
    "write": (write, "write_rows"),
    "match": (write, "write_matched"),
    "thin": (write, "thin"),
}
_plain = {name: getattr(module, attribute) for name, (module, attribute) in TASKS.items()}
_stage_on_spark = bench.stage_on_spark
_gathered = write._gathered


def say(**told: Any) -> None:
    os.write(1, (json.dumps(told) + "\n").encode())


def attach() -> None:
    """Take over the Spark of another process; the session of this one is then the active one."""
    gateway = launch_gateway()
    scala = gateway.jvm.org.apache.spark.SparkContext.getOrCreate()
    context = gateway.jvm.JavaSparkContext.fromSparkContext(scala)
    SparkContext(gateway=gateway, jsc=context, conf=SparkConf(_jconf=context.getConf()))


def spread(rows_per_task: int, split_bytes: int) -> None:
    """Nothing is few: executors check and stage whatever there is."""
    bench.STAGE_HERE_ROWS_MAX = 0
    rows.COMPARE_HERE_ROWS_MAX = -1
    write.ROWS_PER_TASK_MIN = rows_per_task
    splits.SPLIT_BYTES = split_bytes


def make_odd(odd: dict[str, str]) -> None:
    for name, (module, attribute) in TASKS.items():
        way = odd.get(name)
        setattr(module, attribute, odd_tasks.Odd(_plain[name], name, way, odd["folder"]) if way else _plain[name])


def waits(folder: str) -> Callable[[], None]:
    """Say by a file that the point was reached, and go on when another file says so."""

    def wait() -> None:
        Path(folder, "reached").touch()
        deadline = time.monotonic() + _WAIT_S_MAX
        while not Path(folder, "open").exists() and time.monotonic() < deadline:
            time.sleep(0.01)

    return wait


def watch(staged: list[str], fragments: list[str]) -> None:
    """Note which tables executors stage, how often, and the files they answer with."""

    def stage(*arguments: Any) -> Any:
        staged.extend(one.table_key for one in arguments if isinstance(one, TableChange))
        return _stage_on_spark(*arguments)

    def gathered(written: Any, expected: int, change: Any) -> Any:
        messages, count = _gathered(written, expected, change)
        fragments.extend(file["path"] for message in messages for file in json.loads(message)["files"])
        return messages, count

    bench.stage_on_spark, write._gathered = stage, gathered


def arm(order: dict[str, Any]) -> None:
    failpoints.disarm_all()
    if "die_at" in order:
        failpoints.arm(order["die_at"], failpoints.kill_now, order.get("skip", 0))
    if "wait_at" in order:
        failpoints.arm(order["wait_at"], waits(order["wait_in"]), order.get("skip", 0))


def obey(order: dict[str, Any]) -> dict[str, Any]:
    spread(order.get("rows_per_task", 50), order.get("split_bytes", 12_000))
    make_odd(order.get("odd", {}))
    arm(order)
    seen: dict[str, list[str]] = {"staged": [], "fragments": []}
    watch(seen["staged"], seen["fragments"])
    if order.get("as_on_a_cluster"):
        folder.runs_here = lambda _spark: False
    graph = og.Graph.open(order["graph"], settings=Settings.resolve(**order.get("settings", {})))
    try:
        done = graph.load(
            order["file"],
            mode=order["mode"],
            engine="spark",
            index=False,
            progress=lambda stage, _rows: failpoints.reach(f"progress.{stage}"),
        )
        return {"done": done.to_json(), **seen}
    except og.OmniError as error:
        return {"error": type(error).__name__, "text": str(error), "hint": error.hint, **seen}


def main() -> None:
    cloudpickle.register_pickle_by_value(odd_tasks)
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        attach()
    say(ready=os.getpid())
    for line in sys.stdin:
        say(**obey(json.loads(line)))


if __name__ == "__main__":
    main()
