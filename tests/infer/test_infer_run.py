"""From files to a graph through the draft alone: every row that was inferred from is there, with its values."""

from __future__ import annotations

import csv
import datetime as dt
import gzip
import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph as og
from omnigraph.pipeline.infer.infer import Inferred, infer
from omnigraph.pipeline.job.run import run_job, validate_job

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def loaded(done: Inferred, spark: Any) -> og.Graph:
    graph = og.Graph.init("draft/graph", Path(done.schema_file).read_text(encoding="utf-8"))
    validate_job(done.pipeline_file, graph, spark=spark)
    run_job(done.pipeline_file, graph, spark=spark)
    return graph


def rows(graph: og.Graph, type_: str) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in b"".join(graph.export([type_])).splitlines()]
    made = [{**{end: r[end] for end in ("from", "to") if end in r}, **r["data"]} for r in found]
    return sorted(({k: v for k, v in row.items() if k != "id"} for row in made), key=str)


def test_files_of_three_formats_that_refer_to_each_other_become_one_graph(folder, spark):
    kinds = ["full-time", "part-time", "guest"]
    with open("people.csv", "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["id", "Full Name", "born", "team_code", "kind", "badge", "score"])
        for k in range(150):
            team = ["core", "web", ""][k % 3]
            table.writerow([k, f'Ana "{k}", jr', f"19{k % 60 + 40}-01-02", team, kinds[k % 3], f"{k:05}", k / 4])
    pq.write_table(
        pa.table({"code": ["core", "web", "ops"], "budget": pa.array([1 << 40, None, 5], pa.int64())}), "teams.parquet"
    )
    Path("tasks").mkdir()
    for part in range(2):
        lines = [
            {"key": f"t{part}{k}", "person_id": (part * 7 + k) % 150, "tags": ["a", "b"][: k % 3], "meta": {"n": k}}
            for k in range(10)
        ]
        Path(f"tasks/{part}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    Path("links.csv").write_text("person,team,since\n1,core,2020-01-01\n1,web,\n2,core,2021-01-01\n2,core,2021-01-01\n")
    done = infer(["people.csv", "teams.parquet", "tasks", "links.csv"], out="draft")
    graph = loaded(done, spark)
    people = rows(graph, "People")
    assert len(people) == 150
    assert {"full_name": 'Ana "7", jr', "badge": "00007", "born": "1947-01-02", "kind": "part-time"}.items() <= next(
        row for row in people if row["people_id"] == 7
    ).items()
    assert "kind: enum(full-time, guest, part-time)" in done.schema
    assert {row["code"]: row["budget"] for row in rows(graph, "Teams")} == {"core": 1 << 40, "web": None, "ops": 5}
    assert len(rows(graph, "PeopleTeam")) == 100
    tasks = rows(graph, "Tasks")
    assert sorted(row["key"] for row in tasks) == sorted(f"t{part}{k}" for part in range(2) for k in range(10))
    assert {"key": "t12", "tags": ["a", "b"], "meta": '{"n":2}'} in tasks
    assert {(row["from"], row["to"]) for row in rows(graph, "TasksPerson")} == {
        (f"t{part}{k}", str(part * 7 + k)) for part in range(2) for k in range(10)
    }
    links = [(row["from"], row["to"], row["since"]) for row in rows(graph, "Links")]
    assert sorted(map(str, links)) == sorted(
        map(
            str,
            [
                ("1", "core", "2020-01-01"),
                ("1", "web", None),
                ("2", "core", "2021-01-01"),
                ("2", "core", "2021-01-01"),
            ],
        )
    )


ODD = [
    'say "hi"',
    "a,b",
    "line\nbreak",
    "tab\t",
    " lead",
    "trail ",
    "\\",
    "\\n",
    '"',
    "é",
    "😀",
    "'",
    "NULL",
    "null",
    "#x",
]
COLUMNS = {
    "id": [str(k) for k in range(400)],
    "odd": ODD,
    "Ünï cödé": [*ODD, ""],
    "a.b`c": ["x", "y z"],
    "i64": ["0", "-9223372036854775808", "9223372036854775807", ""],
    "u64": ["18446744073709551615", "0"],
    "beyond": ["18446744073709551616", "-1"],
    "f64": ["0.1", "-1.5e-300", "1.7976931348623157e+308", "5.0", ".5", "-0", ""],
    "flag": ["true", "FALSE", ""],
    "day": ["0001-01-01", "9999-12-31", "2024-02-29", ""],
    "at": ["2024-01-01T10:00:00.123Z", "2024-01-01 10:00:00+05:30", "0001-01-01T00:00:00Z", "2024-01-01", ""],
    "zeros": ["007", "1", "+1", "1e5", "1,000"],
    "select": ["1", "2"],
    "_metadata": ["m"],
    "empty": [""],
}


@pytest.mark.parametrize("gzipped", [False, True])
def test_every_cell_of_a_difficult_csv_file_arrives_as_it_was(folder, spark, gzipped):
    chosen = random.Random(7)
    wanted = [{n: v[k] if n == "id" else chosen.choice(v) for n, v in COLUMNS.items()} for k in range(400)]
    with open("t.csv", "w", newline="", encoding="utf-8-sig") as file:
        table = csv.DictWriter(file, list(COLUMNS), quoting=csv.QUOTE_ALL if gzipped else csv.QUOTE_MINIMAL)
        table.writeheader()
        table.writerows(wanted)
    name = "t.csv"
    if gzipped:
        name = "odd table.csv.gz"
        Path(name).write_bytes(gzip.compress(Path("t.csv").read_bytes()))
    done = infer([name], out="draft")
    node = done.draft.nodes[0]
    graph = loaded(done, spark)
    found = {row[next(p.name for p in node.properties if p.is_key)]: row for row in rows(graph, node.name)}
    assert len(found) == 400
    names = dict(zip(COLUMNS, (p.name for p in node.properties), strict=True))
    types = {p.name: p.type for p in node.properties}
    assert [types[names[n]].rstrip("?") for n in ("i64", "u64", "f64", "flag", "day", "at", "zeros")] == [
        *("I64", "U64", "F64", "Bool", "Date", "DateTime"),
        "String",
    ]
    for row in wanted:
        stored = found[int(row["id"])]
        for column in ("odd", "Ünï cödé", "a.b`c", "beyond", "day", "zeros", "_metadata", "empty"):
            assert stored[names[column]] == (row[column] or None), column
        assert stored[names["i64"]] == (int(row["i64"]) if row["i64"] else None)
        assert stored[names["u64"]] == int(row["u64"])
        assert stored[names["f64"]] == (float(row["f64"]) if row["f64"] else None)
        assert stored[names["flag"]] == ({"true": True, "FALSE": False}[row["flag"]] if row["flag"] else None)


def test_every_type_of_parquet_and_our_own_records_arrive_together(folder, spark):
    at = dt.datetime(2024, 1, 1, 10, 0, 0, 123_000)
    pq.write_table(
        pa.table(
            {
                "name": pa.array(["x", "y"]).dictionary_encode(),
                "u": pa.array([1 << 63, 0], pa.uint64()),
                "f": pa.array([1.5, 2.25], pa.float32()),
                "d": pa.array([dt.date(2024, 1, 1), None]),
                "ms": pa.array([at, None], pa.timestamp("us", "UTC")),
                "us": pa.array([at.replace(microsecond=123_456), at], pa.timestamp("us")),
                "dec": pa.array([5, None], pa.decimal128(38, 0)),
                "money": pa.array([1, 2], pa.decimal128(30, 2)),
                "raw": pa.array([b"\x00\x01", None]),
                "many": pa.array([[1, 2], []], pa.list_(pa.int64())),
                "holes": pa.array([[1, None], []], pa.list_(pa.int64())),
                "deep": pa.array([{"a": 1}, None]),
                "void": pa.nulls(2),
            }
        ),
        "things.parquet",
    )
    Path("own.jsonl").write_text(
        '{"type":"Person","data":{"age":31,"name":"ana"}}\n{"type":"Person","data":{"age":31,"name":"bo"}}\n'
        '{"edge":"Knows","from":"ana","to":"bo","data":{"since":"2024-01-01"}}\n'
    )
    Path("mixed.jsonl").write_text(
        '{"id":1,"a":1,"b":{},"c":[],"g":18446744073709551615,"h":1,"k":[[]],"l":[1,null],"big":1e30}\n'
        '{"id":2,"a":2.5,"h":"z","l":[],"g":1,"n":null,"when":"2024-01-01"}\n'
    )
    graph = loaded(infer(["things.parquet", "own.jsonl", "mixed.jsonl"], out="draft"), spark)
    thing = rows(graph, "Things")[0]
    assert (thing["name"], thing["u"], thing["f"], thing["d"]) == ("x", 1 << 63, 1.5, "2024-01-01")
    assert (thing["ms"], thing["us"]) == ("2024-01-01T10:00:00.123Z", "2024-01-01 10:00:00.123456")
    assert (thing["dec"], thing["money"], thing["many"], thing["holes"]) == (5, "1.00", [1, 2], "[1,null]")
    assert (thing["deep"], thing["void"]) == ('{"a":1}', None)
    assert rows(graph, "Knows") == [{"from": "ana", "to": "bo", "since": "2024-01-01"}]
    first, second = rows(graph, "Mixed")
    assert (first["a"], first["g"], first["h"], first["l"]) == (1.0, (1 << 64) - 1, "1", "[1,null]")
    assert (second["a"], second["h"], second["when"]) == (2.5, "z", "2024-01-01")
