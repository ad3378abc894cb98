"""What reading costs, beside the raw substrate and a peer in the same run.

    python -m benchmarks.reads [--persons 100000] [--only walks,groups,search,write,cold,calls]

walks   a point look-up, one hop with names, two and three hops, all within four hops
groups  the ten best known, filter + hop + group, negation
search  ten best by text, ten nearest by vector
write   two hops right after an edge was added
cold    opening and the first query, in a process of its own that has imported what it needs
calls   storage calls of a warm point look-up after 10 and 1,000 commits

`raw` is what the substrate needs for the same answer: pylance for look-ups and searches, numpy over two arrays for
walks, DuckDB for joins. Every answer is compared before anything is timed. A million persons: --persons 1000000.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import lance
import numpy as np

import omnigraph as og
from benchmarks.local_calls import MARK, TRACED, counted, shown
from benchmarks.social import CITIES, SCHEMA, Csr, Duck, Ladybug, Social, answer, name_of

TIMES, SECONDS_MAX = 100, 6.0
# A table is read into memory once looking things up in the store has taken as long as that would.
WARM_TIMES, WARM_SECONDS_MAX = 200, 2.0
WARM_UP_TIMES_MAX = 5_000
CALLS = 50
DEPTHS = (10, 1000)

POINT = "query q($n: String) { match { $p: Person { name: $n } } return { $p.age } }"
HOP = "query q($n: String) { match { $p: Person { name: $n } $p knows $q } return { $q.name } }"
TWO = "query q($n: String) { match { $p: Person { name: $n } $p knows $q $q knows $r } return { count($r) as n } }"
THREE = """query q($n: String) {
  match { $p: Person { name: $n } $p knows $q $q knows $r $r knows $s } return { count($s) as n } }"""
REACH = "query q($n: String) { match { $p: Person { name: $n } $p knows{1,4} $q } return { count($q) as n } }"
KNOWN = "query q() { match { $p knows $q } return { $q.name, count($p) as n } order { n desc } limit 10 }"
GROUP = """query q($c: String) {
  match { $p: Person { city: $c } $p knows $q }
  return { $q.city as city, count($q) as n } order { n desc, city } limit 10 }"""
ALONE = "query q($c: String) { match { $p: Person { city: $c } not { $_ knows $p } } return { count($p) as n } }"
TEXT = """query q($w: String) {
  match { $p: Person search($p.bio, $w) } return { $p.name } order { bm25($p.bio, $w) } limit 10 }"""
NEAR = "query q($v: Vector(64)) { match { $p: Person } return { $p.name } order { nearest($p.vec, $v) } limit 10 }"
LINK = "query q($a: String, $b: String) { insert Knows { from: $a, to: $b } }"


@dataclass(frozen=True)
class Contender:
    """`act` answers question number n; `same` is what of its answer has to be equal for all."""

    name: str
    act: Callable[[int], Any]
    same: Callable[[Any], Any] = lambda found: found


class Scene:
    """One social graph in OmniGraph, in the raw substrate and, if it is installed, in the peer."""

    def __init__(self, place: Path, persons: int) -> None:
        self.place, self.social = place, Social(persons)
        self.graph = og.Graph.init(str(place / "graph"), SCHEMA)
        start = time.perf_counter()
        self.graph.load_frames({"Person": self.social.nodes, "Knows": self.social.edge_reader()}, mode="append")
        edges = len(self.social.edges[0])
        print(f"{persons:,} persons, {edges:,} edges, loaded and indexed in {time.perf_counter() - start:.1f} s")
        self.csr, self.duck = Csr(self.social), Duck(self.social)
        view = self.graph.view()
        self.raw_nodes, self.raw_edges = (
            lance.dataset(view.table(key).ref.uri, version=view.table(key).version)
            for key in ("node:Person", "edge:Knows")
        )
        self.peer = Ladybug(place, self.social) if Ladybug.is_installed() else None
        if self.peer is None:
            print("Ladybug is not installed (pip install '.[bench]')")
        self.starts = np.random.default_rng(13).integers(0, persons, 1000)

    def start(self, turn: int) -> int:
        return int(self.starts[turn % len(self.starts)])

    def ours(self, source: str, **given: Callable[[int], Any]) -> Contender:
        ask = self.graph.query
        same = _first if "count(" in source and "order" not in source else _rows
        return Contender("ours", lambda n: ask(source, {k: make(n) for k, make in given.items()}).rows, same)

    def named(self, source: str) -> Contender:
        return self.ours(source, n=lambda turn: name_of(self.start(turn)))

    def ladybug(self, statement: str, **given: Callable[[int], Any]) -> Contender | None:
        peer = self.peer
        if peer is None:
            return None
        same = _first if "RETURN count(" in statement else _rows
        return Contender("Ladybug", lambda n: peer.ask(statement, {k: make(n) for k, make in given.items()}), same)

    def ladybug_named(self, pattern: str) -> Contender | None:
        return self.ladybug(f"MATCH (p:Person {{name: $n}}){pattern}", n=lambda turn: name_of(self.start(turn)))


def _rows(found: list[Any]) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) if isinstance(row, dict) else tuple(row) for row in found)


def _first(found: list[Any]) -> Any:
    return _rows(found)[0][0]


def measured(act: Callable[[int], Any]) -> list[float]:
    """Seconds of each turn on warm data; few turns of what is slow."""
    begun = time.perf_counter()
    warm = 0
    while warm < WARM_TIMES and (warm < 3 or time.perf_counter() - begun < WARM_SECONDS_MAX):
        act(warm)
        warm += 1
    taken: list[float] = []
    while len(taken) < TIMES and (len(taken) < 5 or sum(taken) < SECONDS_MAX):
        start = time.perf_counter()
        act(warm + len(taken))
        taken.append(time.perf_counter() - start)
    return taken


def compare(label: str, *given: Contender | None) -> None:
    """One line: our p50 and p95, and what part of it the others need."""
    contenders = [one for one in given if one is not None]
    answers = {c.name: [c.same(c.act(turn)) for turn in range(3)] for c in contenders}
    for name, found in answers.items():
        if found != next(iter(answers.values())):
            raise RuntimeError(f"{label}: {name} answers {found}, {next(iter(answers))} {next(iter(answers.values()))}")
    report(label, {c.name: measured(c.act) for c in contenders})


def report(label: str, taken: dict[str, list[float]]) -> None:
    p50 = {name: statistics.median(times) for name, times in taken.items()}
    line = ""
    for name, times in taken.items():
        p95 = sorted(times)[int(0.95 * (len(times) - 1))]
        ratio = "" if name == "ours" or "ours" not in p50 else f" ({p50['ours'] / p50[name]:.2f}x)"
        line += f"  {name} {p50[name] * 1000:.2f} / {p95 * 1000:.2f} ms{ratio}"
    print(f"{label:28}{line}", flush=True)


def walks(scene: Scene) -> None:
    start, csr = scene.start, scene.csr

    def looked_up(turn: int) -> list[Any]:
        found = scene.raw_nodes.to_table(columns=["age"], filter=f"id = '{name_of(start(turn))}'")
        return found.to_pylist()

    point = Contender("raw (pylance)", looked_up, _rows)
    compare("point look-up", scene.named(POINT), point, scene.ladybug_named(" RETURN p.age"))
    names = Contender("raw (numpy)", lambda n: [(name,) for name in csr.names_of_known(start(n))], _rows)
    compare("1 hop with names", scene.named(HOP), names, scene.ladybug_named("-[:Knows]->(q) RETURN q.name"))
    step = "-[:Knows]->()"
    for label, hops, query in (("2 hops, counted", 2, TWO), ("3 hops, counted", 3, THREE)):
        raw = Contender("raw (numpy)", lambda n, hops=hops: csr.walks(start(n), hops))
        path = f"{step * (hops - 1)}-[:Knows]->(q) RETURN count(q)"
        compare(label, scene.named(query), raw, scene.ladybug_named(path))
    reached = Contender("raw (numpy)", lambda n: csr.reached(start(n), 4))
    path = "-[:Knows* SHORTEST 1..4]->(q) RETURN count(q)"
    compare("reached within 4, counted", scene.named(REACH), reached, scene.ladybug_named(path))
    memory(scene)


def kept_bytes(graph: og.Graph) -> dict[str, int]:
    """Bytes of adjacency and ids that the handle holds in memory."""
    return graph._reader.hot.sizes()


def warm_up(scene: Scene) -> None:
    """Ask until the edges are in memory, as they are once looking them up has cost as much as loading them."""
    begun, asked = time.perf_counter(), 0
    while not kept_bytes(scene.graph)["adjacency"] and asked < WARM_UP_TIMES_MAX:
        scene.graph.query(TWO, {"n": name_of(scene.start(asked))})
        asked += 1
    print(f"in memory after {asked:,} queries, {time.perf_counter() - begun:.1f} s")


def memory(scene: Scene) -> None:
    """What the adjacency and the id dictionary hold after the walks above, both directions of every edge."""
    for outwards in ("$p knows $q", "$q knows $p"):
        scene.graph.query(
            f'query q() {{ match {{ $p: Person {{ name: "{name_of(0)}" }} {outwards} }} return {{ $q }} }}'
        )
    held = kept_bytes(scene.graph)
    edges, persons = len(scene.social.edges[0]), scene.social.persons
    adjacency, ids = held["adjacency"] / edges / 2, held["ids"] / persons
    print(f"{'memory':28}  adjacency {adjacency:.1f} bytes per edge and direction, ids {ids:.1f} bytes per node")


def groups(scene: Scene) -> None:
    duck, csr = scene.duck, scene.csr

    def city(turn: int) -> str:
        return f"city-{scene.start(turn) % min(CITIES, scene.social.persons)}"

    counts = scene.ours(KNOWN)
    most = Contender("ours", counts.act, lambda found: [row["n"] for row in found])
    best = scene.ladybug("MATCH (p:Person)-[:Knows]->(q:Person) RETURN q.name, count(p) AS n ORDER BY n DESC LIMIT 10")
    best = None if best is None else Contender(best.name, best.act, lambda found: [row[1] for row in found])
    compare("10 best known", most, Contender("raw (numpy)", lambda _: csr.most_known()), best)
    joined = """select q.city, count(*) n from person p join knows on src = p.number join person q on dst = q.number
                where p.city = ? group by 1 order by n desc, 1 limit 10"""
    pattern = "MATCH (p:Person {city: $c})-[:Knows]->(q:Person) RETURN q.city AS city, count(q) AS n"
    compare(
        "filter, hop, group",
        scene.ours(GROUP, c=city),
        Contender("raw (DuckDB)", lambda n: duck.ask(joined, city(n)), _rows),
        scene.ladybug(f"{pattern} ORDER BY n DESC, city LIMIT 10", c=city),
    )
    anti = "select count(*) from person where city = ? and number not in (select dst from knows)"
    absent = "WHERE NOT EXISTS { MATCH (:Person)-[:Knows]->(p) } RETURN count(p)"
    compare(
        "negation",
        scene.ours(ALONE, c=city),
        Contender("raw (DuckDB)", lambda n: duck.ask(anti, city(n)), _first),
        scene.ladybug(f"MATCH (p:Person {{city: $c}}) {absent}", c=city),
    )


def search(scene: Scene) -> None:
    rare = max(scene.social.persons // 20, 1)
    vectors = np.random.default_rng(14).standard_normal((100, 64)).astype(np.float32)

    def word(turn: int) -> str:
        return f"word{scene.start(turn) % rare}"

    def by_text(turn: int) -> list[Any]:
        query = {"query": word(turn), "columns": ["bio"]}
        return scene.raw_nodes.to_table(columns=["name", "_score"], full_text_query=query, limit=10).to_pylist()

    def near(turn: int) -> list[Any]:
        asked = {"column": "vec", "q": vectors[turn % 100], "k": 10, "metric": "cosine", "refine_factor": 5}
        return scene.raw_nodes.to_table(columns=["name", "_distance"], nearest=asked).to_pylist()

    # Which of many equal scores are among the ten, and which near vectors an index finds, may differ.
    ours = Contender("ours", scene.ours(TEXT, w=word).act, len)
    compare("10 best by text", ours, Contender("raw (pylance)", by_text, len))
    ours = Contender("ours", scene.ours(NEAR, v=lambda n: vectors[n % 100].tolist()).act, len)
    compare("10 nearest by vector", ours, Contender("raw (pylance)", near, len))


def write(scene: Scene) -> None:
    """The first two-hop walk after each of several writes, beside the same walk when nothing was written."""
    walk = scene.named(TWO).act
    first, warm, peer = [], measured(walk), []
    path = scene.ladybug_named("-[:Knows]->()-[:Knows]->(q) RETURN count(q)")
    link = "MATCH (a:Person {name: $a}), (b:Person {name: $b}) CREATE (a)-[:Knows {since: 1}]->(b)"
    for turn in range(20):
        ends = {"a": name_of(scene.start(turn)), "b": name_of(scene.start(turn + 500))}
        scene.graph.mutate(LINK, ends)
        start = time.perf_counter()
        walk(turn)
        first.append(time.perf_counter() - start)
        if path is not None and scene.peer is not None:
            scene.peer.ask(link, ends)
            start = time.perf_counter()
            path.act(turn)
            peer.append(time.perf_counter() - start)
    report("2 hops after a write", {"ours": first, "ours, nothing written": warm} | ({"Ladybug": peer} if peer else {}))


def cold(scene: Scene) -> None:
    taken = {}
    person = name_of(scene.start(0))
    if scene.peer is not None:
        scene.peer.connection.close()
    places = {"ours": scene.graph.uri, "raw (pylance)": f"{scene.raw_nodes.uri},{scene.raw_edges.uri}"}
    if scene.peer is not None:
        places["Ladybug"] = str(scene.peer.place)
    for who, place in places.items():
        taken[who] = [float(_child_answer(["cold", who, place, person])) for _ in range(5)]
    report("open and first query", taken)


def _child_answer(words: list[str]) -> str:
    command = [sys.executable, "-m", "benchmarks.reads", "--child", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout.split()[-1]


def calls(place: Path) -> None:
    strace = shutil.which("strace")
    if strace is None:
        print("storage calls: strace is not installed")
        return
    # How the history came about does not matter to a reader, so it is made without waiting for the disk.
    graph = og.Graph.init(str(place / "history"), SCHEMA, settings=og.Settings.resolve(storage_durability="os"))
    insert = "query q($n: String) { insert Person { name: $n } }"
    made = 0
    for depth in DEPTHS:
        while made < depth:
            graph.mutate(insert, {"n": name_of(made)})
            made += 1
        graph.ensure_indices()
        log = place / "calls"
        child = [sys.executable, "-m", "benchmarks.reads", "--child", "calls", graph.uri]
        options = ["-f", "-qq", "-y", "-s", "400", "-e", f"trace={TRACED}", "-o", str(log)]
        subprocess.run([strace, *options, *child], check=True, capture_output=True)
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        found = {kind: n / CALLS for kind, n in counted(lines, graph.uri).items()}
        print(f"storage calls of a warm point look-up, {depth:,} commits: {shown(found)}", flush=True)


def child(words: list[str]) -> None:
    if words[0] == "calls":
        graph = og.Graph.open(words[1], "r")
        for turn in range(3 + CALLS):
            if turn == 3:
                os.path.exists(f"/{MARK}-begin")
            graph.query(POINT, {"n": name_of(turn % 10)})
        os.path.exists(f"/{MARK}-end")
        return
    who, place, person = words[1:]
    act = {"ours": _cold_ours, "raw (pylance)": _cold_raw, "Ladybug": _cold_ladybug}[who]
    import_module({"ours": "omnigraph.api", "raw (pylance)": "lance", "Ladybug": "ladybug"}[who])
    start = time.perf_counter()
    assert act(place, person)
    print(time.perf_counter() - start)


def _cold_ours(place: str, person: str) -> list[Any]:
    return og.Graph.open(place, "r").query(HOP, {"n": person}).rows


def _cold_raw(places: str, person: str) -> list[Any]:
    nodes, edges = (lance.dataset(place) for place in places.split(","))
    known = edges.to_table(columns=["dst"], filter=f"src = '{person}'")["dst"].to_pylist()
    quoted = ", ".join(f"'{name}'" for name in known)
    return nodes.to_table(columns=["name"], filter=f"id in ({quoted})").to_pylist()


def _cold_ladybug(place: str, person: str) -> list[Any]:
    import ladybug

    connection = ladybug.Connection(ladybug.Database(place, read_only=True), num_threads=1)
    return answer(connection, "MATCH (p:Person {name: $n})-[:Knows]->(q) RETURN q.name", {"n": person})


PARTS: dict[str, Callable[[Scene], None]] = {
    "walks": walks,
    "groups": groups,
    "search": search,
    "write": write,
    "cold": cold,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join([*PARTS, "calls"]))
    parser.add_argument("--persons", type=int, default=100_000)
    parser.add_argument("--child", nargs="*")
    chosen = parser.parse_args()
    if chosen.child:
        child(chosen.child)
        return
    place = Path(tempfile.mkdtemp(prefix="omnigraph-reads-"))
    wanted = chosen.only.split(",")
    try:
        if set(wanted) & PARTS.keys():
            scene = Scene(place, chosen.persons)
            warm_up(scene)
            print("p50 / p95; in brackets how many times as long we take")
            for name in wanted:
                if name in PARTS:
                    PARTS[name](scene)
        if "calls" in wanted:
            calls(place)
    finally:
        shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    main()
