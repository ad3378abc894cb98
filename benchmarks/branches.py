"""What merging, comparing and looking back cost as a graph grows, beside raw Lance in the same run.

    python -m benchmarks.branches [--only growth,large] [--small 100000] [--big 10000000] [--changed 1000000]

growth  merge of 100 changed rows (100 others changed on the target meanwhile), the diff of the two branches and the
        history of one entity, in a small and in a big graph; beside them a raw merge_insert of the same 100 rows.
        In brackets how many times as long the big graph takes.
large   merge of many changed rows on each engine, beside a raw merge_insert of the same rows
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa

import omnigraph as og

SCHEMA = "node Item { name: String @key  n: I64?  text: String? }"
CHANGED, TURNS = 100, 7
_BATCH_ROWS = 500_000
_RAW_ROWS_MAX = 100_000
_FIELDS = pa.schema([("name", pa.string()), ("n", pa.int64()), ("text", pa.string())])
_STORED = pa.schema([("id", pa.string()), *_FIELDS])


def name_of(item: int) -> str:
    return f"item-{item:09d}"


def rows(items: np.ndarray[Any, Any], turn: int) -> pa.Table:
    names = [name_of(int(item)) for item in items]
    return pa.table({"name": names, "n": items + turn, "text": [f"text {turn} of {name}" for name in names]}, _FIELDS)


def batches(count: int) -> Iterator[pa.RecordBatch]:
    for first in range(0, count, _BATCH_ROWS):
        yield from rows(np.arange(first, min(first + _BATCH_ROWS, count)), 0).to_batches()


def stored(some: pa.Table) -> pa.Table:
    return some.add_column(0, "id", some["name"]).cast(_STORED)


@dataclass
class Scene:
    """One graph of `count` items, and the same items in a table of Lance's own."""

    place: Path
    count: int
    took: dict[str, list[float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        begun = time.perf_counter()
        self.graph = og.Graph.init(str(self.place / "graph"), SCHEMA)
        reader = pa.RecordBatchReader.from_batches(_FIELDS, batches(self.count))
        self.graph.load_frames({"Item": reader}, mode="append")
        self.raw = str(self.place / "raw")
        made = (batch for part in batches(self.count) for batch in stored(pa.table(part)).to_batches())
        lance.write_dataset(pa.RecordBatchReader.from_batches(_STORED, made), self.raw, enable_stable_row_ids=True)
        lance.dataset(self.raw).create_scalar_index("id", "BTREE")
        print(f"{self.count:,} items loaded and indexed in {time.perf_counter() - begun:.1f} s", flush=True)

    def timed(self, what: str, act: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        found = act()
        self.took.setdefault(what, []).append(time.perf_counter() - start)
        return found

    def part(self, turn: int, changed: int, on: int) -> pa.Table:
        """Items spread over the whole graph; another part for each turn and side."""
        step = self.count // changed
        return rows(np.arange(changed) * step + (2 * turn + on) % step, turn + 1)

    def diverge(self, turn: int, changed: int) -> str:
        """A branch on which some items changed, while others did on main."""
        branch = f"turn-{turn}"
        self.graph.branch_create_from("main", branch)
        self.graph.load_frames({"Item": self.part(turn, changed, 0)}, mode="merge", branch=branch)
        self.graph.load_frames({"Item": self.part(turn, CHANGED, 1)}, mode="merge")
        return branch

    def merge_raw(self, some: pa.Table) -> None:
        """In parts: more rows at once do not fit the memory that Lance allows itself for a merge."""
        for first in range(0, some.num_rows, _RAW_ROWS_MAX):
            merge = lance.dataset(self.raw).merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
            # Taken, not sliced: Lance would count all that lies behind a slice.
            merge.execute(stored(some.take(pa.array(range(first, min(first + _RAW_ROWS_MAX, some.num_rows))))))


def one_turn(scene: Scene, turn: int) -> None:
    branch = scene.diverge(turn, CHANGED)
    found = scene.timed("diff of the branches", lambda: scene.graph.diff("main", branch))
    assert found.stats.total.updates == 2 * CHANGED, found.stats
    done = scene.timed("merge of 100 rows", lambda: scene.graph.branch_merge(branch))
    assert done.outcome == "merged", done
    name = scene.part(turn, CHANGED, 0)["name"][0].as_py()
    past = scene.timed("history of one item", lambda: scene.graph.history("Item", name))
    assert [one.op for one in past] == ["update", "insert"], past
    scene.timed("raw merge_insert", lambda: scene.merge_raw(scene.part(turn, CHANGED, 0)))


def growth(place: Path, small: int, big: int) -> None:
    scenes = []
    for size in (small, big):
        scene = Scene(place / f"of-{size}", size)
        for turn in range(TURNS + 1):
            one_turn(scene, turn)
        scenes.append(scene)
    for what in scenes[0].took:
        # The first turn finds everything cold.
        less, more = (statistics.median(scene.took[what][1:]) for scene in scenes)
        line = f"{less * 1000:8.1f} ms in {small:,}  {more * 1000:8.1f} ms in {big:,}  ({more / less:.2f}x)"
        print(f"{what:24}{line}", flush=True)


def large(place: Path, size: int, changed: int) -> None:
    scene = Scene(place / "large", max(size, changed))
    for turn, engine in enumerate(("embedded", "spark")):
        branch = scene.diverge(turn, changed)
        done = scene.timed(engine, lambda on=branch, by=engine: scene.graph.branch_merge(on, engine=by))
        assert done.outcome == "merged", done
        print(f"{engine}: {scene.took[engine][0]:.2f} s", flush=True)
    scene.timed("raw merge_insert", lambda: scene.merge_raw(scene.part(9, changed, 0)))
    floor = scene.took["raw merge_insert"][0]
    for what, taken in scene.took.items():
        print(f"merge of {changed:,} rows, {what:18}{taken[0]:8.2f} s  ({taken[0] / floor:.2f}x of raw)", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="growth,large")
    parser.add_argument("--small", type=int, default=100_000)
    parser.add_argument("--big", type=int, default=10_000_000)
    parser.add_argument("--changed", type=int, default=1_000_000)
    given = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix="omnigraph-branches-"))
    try:
        if "growth" in given.only:
            growth(place, given.small, given.big)
        if "large" in given.only:
            large(place, 4 * given.changed, given.changed)
    finally:
        shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    main()
