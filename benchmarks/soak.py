"""Small commits for a long time, on main and on a branch, with upkeep in between: does anything grow?

    python -m benchmarks.soak [--commits 2000] [--every 50] [--keep 100]

Each commit inserts a person and an edge or, from some time on every second time, deletes an old person with its edges,
so that the number of rows stays about the same; every fourth commit is on the branch. After every `--every` commits
`upkeep` runs a rules file. Printed are

latency  the median of the first and of the last 200 commits, and their ratio
calls    storage calls per commit on a copy of the graph early and at the end (strace), and their ratio
bytes    on disk after upkeep, by what they belong to: data tables, which the rules bound, and the manifest, whose
         versions are kept for good
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import orjson

import omnigraph as og
from benchmarks.local_calls import calls_per_commit, shown, store_calls

SCHEMA = """
node Person { name: String @key  age: I32? @index  bio: String? @index }
edge Knows: Person -> Person { since: I32? }
"""
RULES = """
version: 1
rules:
  - {{do: optimize, branches: ["*"], when: {{fragments: 24}}}}
  - {{do: cleanup, keep: {keep}}}
"""
PEOPLE, BRANCH, COUNTED = 500, "draft", 50
_WRITE = """query write($name: String, $friend: String, $age: I32) {
  insert Person { name: $name, age: $age, bio: $name }
  insert Knows { from: $name, to: $friend, since: $age }
}"""
_DELETE = "query gone($name: String) { delete Person where name = $name }"


@dataclass
class Writer:
    """Commits by number; a number is never used twice."""

    graph: og.Graph
    number: int = PEOPLE
    written: dict[str, list[int]] = field(default_factory=lambda: {"main": [], BRANCH: []})

    @staticmethod
    def reopened(place: str) -> Writer:
        """For counting calls: writes to main only, and deletes nobody."""
        return Writer(og.Graph.open(place), time.time_ns() % 10**12)

    def write(self, _tables: int = 1) -> None:
        self.number += 1
        name = f"p{self.number}"
        self.graph.mutate(_WRITE, {"name": name, "friend": f"p{PEOPLE - 1}", "age": self.number % 90})

    def commit(self, turn: int) -> None:
        """One commit on main or on the branch: a person comes or, every second time, an old one goes."""
        branch = BRANCH if turn % 4 == 3 else "main"
        mine = self.written[branch]
        if turn // 4 % 2 and len(mine) > 20:
            self.graph.mutate(_DELETE, {"name": f"p{mine.pop(0)}"}, branch=branch)
            return
        self.number += 1
        mine.append(self.number)
        given = {"name": f"p{self.number}", "friend": f"p{PEOPLE - 1}", "age": self.number % 90}
        self.graph.mutate(_WRITE, given, branch=branch)


@contextmanager
def workplace() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def seeded(place: Path) -> og.Graph:
    graph = og.Graph.init(str(place / "graph"), SCHEMA)
    rows = [{"type": "Person", "data": {"name": f"p{n}", "age": n % 90, "bio": f"p{n}"}} for n in range(PEOPLE)]
    (place / "seed.jsonl").write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    graph.load(place / "seed.jsonl", mode="append")
    graph.branch_create(BRANCH)
    return graph


def sizes(place: Path) -> dict[str, int]:
    found = {"data": 0, "manifest": 0, "other": 0}
    for file in (place / "graph").rglob("*"):
        if file.is_file():
            top = file.relative_to(place / "graph").parts[0]
            found[{"nodes": "data", "edges": "data", "__manifest": "manifest"}.get(top, "other")] += file.stat().st_size
    return found


def counted(place: Path, label: str) -> float | None:
    copy = place / label
    shutil.copytree(place / "graph", copy, symlinks=True)
    calls = calls_per_commit("soak", copy, COUNTED)
    print(f"calls    {label:>5} {shown(calls)}")
    shutil.rmtree(copy)
    return None if calls is None else store_calls(calls)


def soak(place: Path, commits: int, every: int, keep: int) -> None:
    graph = seeded(place)
    rules = place / "upkeep.yaml"
    rules.write_text(RULES.format(keep=keep))
    writer, took_ms, spent_s = Writer(graph), [], 0.0
    bytes_seen: list[dict[str, int]] = []
    early: float | None = None
    for turn in range(commits):
        begun = time.perf_counter()
        writer.commit(turn)
        took_ms.append((time.perf_counter() - begun) * 1_000)
        if (turn + 1) % every:
            continue
        begun = time.perf_counter()
        outcomes = graph.upkeep(rules)
        spent_s += time.perf_counter() - begun
        failed = [o for o in outcomes if o.error is not None]
        assert not failed, failed
        bytes_seen.append(sizes(place))
        told = ", ".join(f"{kind} {size / 1e6:7.2f} MB" for kind, size in bytes_seen[-1].items())
        print(f"bytes    {turn + 1:>5} {told}; last {every}: {statistics.median(took_ms[-every:]):.1f} ms")
        if early is None and turn + 1 >= min(200, commits // 2):
            early = counted(place, "early")
    late = counted(place, "late")
    few = min(200, commits // 4)
    first, last = statistics.median(took_ms[:few]), statistics.median(took_ms[-few:])
    print(f"latency  first {few} {first:.1f} ms, last {few} {last:.1f} ms, ratio {last / first:.2f}")
    if early and late:
        print(f"calls    ratio {late / early:.2f}")
    half = bytes_seen[len(bytes_seen) // 4]["data"]
    print(f"bytes    data tables at the end ÷ after a quarter {bytes_seen[-1]['data'] / half:.2f}")
    grown = (bytes_seen[-1]["manifest"] - bytes_seen[0]["manifest"]) / max(1, commits - every)
    print(f"bytes    manifest {grown / 1e3:.1f} kB per commit, kept for good")
    print(f"upkeep   {spent_s:.1f} s in {len(bytes_seen)} runs")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commits", type=int, default=2_000)
    parser.add_argument("--every", type=int, default=50)
    parser.add_argument("--keep", type=int, default=100)
    chosen = parser.parse_args()
    with workplace() as place:
        soak(place, chosen.commits, chosen.every, chosen.keep)


if __name__ == "__main__":
    main()
