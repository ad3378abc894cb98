"""Loads spread over executors give the same graph, the same counts and the same words as one process does."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import omnigraph as og
from omnigraph.pipeline.bulk import bench, rows, write
from omnigraph.records import splits

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SCHEMA = """
node Person { name: String @key  age: I32?  email: String? @unique  @range(age, 0..150) }
node Note { text: String  number: U64? @unique  seen: DateTime? @unique  day: Date? }
node Spot { row: I32  col: String  @key(row, col) }
edge Knows: Person -> Person @card(0..3) { since: I32? }
"""


def person(name: str, **data: Any) -> str:
    return json.dumps({"type": "Person", "data": {"name": name, **data}})


def knows(one: str, other: str, **data: Any) -> str:
    return json.dumps({"edge": "Knows", "from": one, "to": other, "data": data})


def note(id: str, number: int, **data: Any) -> str:
    return json.dumps({"type": "Note", "data": {"id": id, "text": "…", "number": number, **data}})


FIRST = [
    *(person(f"p{n}", age=n, email=f"e{n}") for n in range(100)),
    *(knows(f"p{n}", f"p{n + 1}", since=n, id=f"k{n}") for n in range(99)),
    *(note(f"n{n}", 2**64 - 1 - n, seen=f"2020-01-01T00:00:{n:02d}Z", day="9999-12-31") for n in range(30)),
]


@pytest.fixture(autouse=True)
def spread(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is few: every relation is a frame, every table is staged by executors, every file is cut."""
    monkeypatch.setattr(bench, "STAGE_HERE_ROWS_MAX", 0)
    monkeypatch.setattr(rows, "COMPARE_HERE_ROWS_MAX", -1)
    monkeypatch.setattr(write, "ROWS_PER_TASK_MIN", 20)
    monkeypatch.setattr(splits, "SPLIT_BYTES", 2_000)


@dataclass
class Pair:
    """The same graph twice, each loaded by its own engine."""

    folder: Path
    graphs: dict[str, og.Graph]

    def outcome(self, engine: str, lines: list[str], mode: str, **options: Any) -> Any:
        path = self.folder / "in.jsonl"
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        rejects = self.folder / f"{engine}.rejects"
        if options.get("on_error") == "quarantine":
            options["rejects"] = str(rejects)
        try:
            told = self.graphs[engine].load(str(path), mode=mode, engine=engine, index=False, **options).to_json()
            own = ("uri", "operation_id", "commit", "engine", "rejects_file")
            kept = {k: v for k, v in told.items() if k not in own}
            text = rejects.read_text(encoding="utf-8") if rejects.exists() else None
            rejects.unlink(missing_ok=True)
            return kept, text
        except og.InvalidData as error:
            return str(error), error.violations, error.total
        except og.OmniError as error:
            return type(error).__name__, str(error)

    def both(self, lines: list[str], mode: str = "append", **options: Any) -> Any:
        embedded, spark = (self.outcome(engine, lines, mode, **options) for engine in ("embedded", "spark"))
        assert spark == embedded
        assert self.content("spark") == self.content("embedded")
        return embedded

    def content(self, engine: str) -> list[Any]:
        """Every row; those whose ids are made up by their values alone."""
        found = [json.loads(line) for part in self.graphs[engine].export() for line in part.splitlines()]
        for row in found:
            if row.get("edge") or row.get("type") == "Note":
                row["data"].pop("id")
        return sorted(json.dumps(row, sort_keys=True) for row in found)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base")
    (folder / "first.jsonl").write_text("\n".join(FIRST), encoding="utf-8")
    og.Graph.init(str(folder / "graph"), SCHEMA).load(folder / "first.jsonl", mode="append", engine="embedded")
    return folder / "graph"


@pytest.fixture
def pair(base: Path, tmp_path: Path) -> Pair:
    for engine in ("embedded", "spark"):
        shutil.copytree(base, tmp_path / engine)
    return Pair(tmp_path, {engine: og.Graph.open(str(tmp_path / engine)) for engine in ("embedded", "spark")})


def test_an_empty_graph_is_filled_alike(tmp_path: Path) -> None:
    graphs = {engine: og.Graph.init(str(tmp_path / engine), SCHEMA) for engine in ("embedded", "spark")}
    told, _ = Pair(tmp_path, graphs).both(FIRST)
    assert told["total_entities"] == len(FIRST)


def test_an_append_stores_every_row_once(pair: Pair) -> None:
    lines = [person(f"q{n}", age=n) for n in range(60)] + [knows(f"q{n}", f"p{n}") for n in range(60)]
    lines += [json.dumps({"type": "Spot", "data": {"row": n % 7, "col": f"c{n}"}}) for n in range(40)]
    told, _ = pair.both(lines)
    assert told["total_entities"] == 160


def test_a_stored_id_refuses_an_append(pair: Pair) -> None:
    kind, _ = pair.both([person(f"q{n}") for n in range(50)] + [person("p7")])
    assert kind == "KeyConflict"


def test_a_merge_replaces_rows_in_their_place_and_the_last_record_wins(pair: Pair) -> None:
    graph = pair.graphs["spark"]
    before = {r["id"]: r["_rowid"] for r in graph.view().table("node:Person").read(["id", "_rowid"]).to_pylist()}
    lines = [person(f"p{n}", age=1, email=f"e{n + 50}") for n in range(50, 150)] + [person("p60", age=2)] * 3
    told, _ = pair.both(lines, "merge")
    assert told["duplicates_merged"] == 3
    table = graph.view().table("node:Person").read(["id", "_rowid", "age"]).to_pylist()
    after = {r["id"]: r["_rowid"] for r in table}
    assert {i: after[i] for i in before} == before
    assert next(r["age"] for r in table if r["id"] == "p60") == 2


def test_an_overwrite_replaces_the_types_it_touches(pair: Pair) -> None:
    lines = [person(f"p{n}", age=9) for n in range(120)]
    pair.both(lines, "overwrite")
    assert pair.graphs["spark"].snapshot().tables["edge:Knows"].row_count == 99


def test_each_stage_tells_the_same_violations(pair: Pair) -> None:
    unread = [person(f"q{n}", age="x" if n % 3 else n) + ("" if n % 7 else "}") for n in range(60)]
    ids = [person(f"q{n}", id=f"q{n}" if n % 5 else "other") for n in range(60)] + [person("p3")]
    values = [person(f"q{n}", age=n * 5) for n in range(60)]
    unique = [person(f"q{n}", email=f"e{n * 3 % 80}") for n in range(60)] + [person("q1")]
    unsigned = [note(f"m{n}", 2**64 - 1 - n % 50, seen="2020-01-01T00:00:05Z") for n in range(60)]
    endpoints = [person(f"q{n}") for n in range(60)] + [knows(f"q{n}", f"r{n}") for n in range(60)]
    crowded = [knows(f"p{n % 20}", "p1") for n in range(60)]
    for lines in (unread, ids, values, unique, unsigned, endpoints, crowded):
        assert len(pair.both(lines, max_errors=7)) == 3


def test_an_overwrite_that_leaves_edges_dangling_is_refused(pair: Pair) -> None:
    text, _, total = pair.both([person(f"p{n}") for n in range(90)], "overwrite")
    assert "stored edge" in text
    assert total == 10 + 9, "ten that end and nine that start at one of the ten who are gone"


def test_quarantine_sets_the_same_rows_aside(pair: Pair) -> None:
    # More pieces than tasks: each task reads several that lie apart.
    lines = [person(f"q{n}", age=n if n % 4 else "x", email=f"e{n + 90}") for n in range(200)]
    lines += ["{nothing"] + [knows(f"q{n}", f"p{n % 100}") for n in range(200)] + [person("q59"), person("p1")]
    told, text = pair.both(lines, on_error="quarantine")
    assert told["rejected"] == len(text.splitlines()) > 30
    assert "endpoint_rejected" in text


def test_quarantine_does_not_help_an_edge_to_nowhere(pair: Pair) -> None:
    text, _, total = pair.both([person("q", age="x"), knows("p1", "nobody")], on_error="quarantine")
    assert ("dst 'nobody' not found in Person" in text, total) == (True, 1)


def test_an_empty_input_is_a_commit_of_its_own(pair: Pair) -> None:
    told, _ = pair.both([])
    assert told["total_entities"] == 0
