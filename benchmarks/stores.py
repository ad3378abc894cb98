"""What a one-row commit costs on each store, beside the raw floor on the same store, as history grows.

    python -m benchmarks.stores [--depths 10,1000] [--stores full,os,s3]

`full` and `os` are a local disk with and without syncing, `s3` is a SeaweedFS server started on loopback. The floor is
raw pylance keeping one table and a manifest (see `benchmarks.commit`). Latency is the p50 of a compaction cycle;
storage calls are counted by strace on a disk and by a proxy before the server.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import omnigraph as og
from benchmarks.commit import Floor, Ours, grow, p50_ms
from benchmarks.local_calls import calls_per_commit, shown

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from fault_proxy import FaultProxy
from s3_server import S3Server

COUNTED = 50


@dataclass(frozen=True)
class Store:
    """The two writers on one store, and how their storage calls are counted: by writer, as text."""

    name: str
    floor: Floor
    ours: Ours
    calls: Callable[[str], str]


@contextmanager
def local(place: Path, durability: str) -> Iterator[Store]:
    folder = place / durability
    settings = og.Settings(storage_durability=durability)  # type: ignore[arg-type]
    floor, ours = Floor(str(folder / "floor")), Ours(str(folder / "ours"), settings)

    def calls(who: str) -> str:
        return shown(calls_per_commit(who, folder / who, durability=durability))

    yield Store(f"local {durability}", floor, ours, calls)


@contextmanager
def s3(place: Path) -> Iterator[Store]:
    (place / "weed").mkdir()
    server = S3Server(place / "weed")
    server.start()
    try:
        with FaultProxy(server.port) as proxy:
            direct, watched = server.settings(), server.settings(aws_endpoint_url=proxy.endpoint)
            uri = server.uri()
            ours = Ours(uri, direct)
            floor = Floor(f"{uri}-floor", dict(ours.options or {}))

            def calls(who: str) -> str:
                return _through(proxy, _again(who, uri, watched))

            yield Store("s3", floor, ours, calls)
    finally:
        server.stop()


def _again(who: str, uri: str, settings: og.Settings) -> Floor | Ours:
    """The same tables reached through the proxy."""
    ours = Ours.__new__(Ours)
    ours.graph = og.Graph.open(uri, settings=settings)
    ours.options, ours.count = ours.graph.context.root.storage_options, time.time_ns()
    return ours if who == "ours" else Floor.reopened(f"{uri}-floor", dict(ours.options or {}))


def _through(proxy: FaultProxy, writer: Floor | Ours) -> str:
    writer.write(1)
    proxy.calm()
    for _ in range(COUNTED):
        writer.write(1)
    kinds = Counter(r.kind.split()[0].lower() for r in proxy.requests)
    total = sum(kinds.values()) / COUNTED
    return f"{total:5.1f} ({', '.join(f'{kind} {n / COUNTED:.1f}' for kind, n in sorted(kinds.items()))})"


def run(depths: list[int], names: list[str]) -> None:
    place = Path(tempfile.mkdtemp(prefix="omnigraph-stores-"))
    opened = {"full": lambda: local(place, "full"), "os": lambda: local(place, "os"), "s3": lambda: s3(place)}
    try:
        for name in names:
            with opened[name]() as store:
                measure(store, depths)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def measure(store: Store, depths: list[int]) -> None:
    for depth in depths:
        store.floor.catch_up()
        grow(store.floor, store.ours, depth)
        floor = statistics.median(p50_ms(store.floor.write, 1))
        ours = statistics.median(p50_ms(store.ours.write, 1))
        store.floor.keep_small()
        store.ours.keep_small()
        print(f"{store.name:10} depth {depth:5}  floor {floor:6.2f} ms  ours {ours:6.2f} ms  {ours / floor:4.2f}x")
        print(f"           calls: floor {store.calls('floor')}")
        print(f"                  ours  {store.calls('ours')}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--depths", default="10,1000")
    parser.add_argument("--stores", default="full,os,s3")
    chosen = parser.parse_args()
    run([int(d) for d in chosen.depths.split(",")], chosen.stores.split(","))


if __name__ == "__main__":
    main()
