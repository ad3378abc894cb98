"""`omnigraph analytics run`."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet
import pytest

import omnigraph as og

VALUES = [
    {"id": "a", "type": "Person", "value": 2},
    {"id": "b", "type": "Person", "value": 0},
    {"id": "c", "type": "Person", "value": 0},
]
KNOWS = """
query q() {
  insert Person { name: "a" } insert Person { name: "b" } insert Person { name: "c" }
  insert Knows { from: "a", to: "b" } insert Knows { from: "a", to: "c" }
}
"""


@pytest.fixture
def store(tmp_path: Path) -> str:
    graph = og.Graph.init(str(tmp_path / "g"), "node Person { name: String @key }\nedge Knows: Person -> Person")
    graph.mutate(KNOWS)
    return graph.uri


def test_values_are_printed_like_the_answer_to_a_query(cli, store):
    asked = ("analytics", "run", "degree", "--edge", "Knows", "--store", store)
    assert cli(*asked, "--json").json["rows"] == VALUES
    assert cli(*asked, "--format", "csv").out == "id,type,value\na,Person,2\nb,Person,0\nc,Person,0\n"
    assert cli(*asked).out.splitlines()[0] == "3 rows from branch main via degree"
    assert [r["value"] for r in cli(*asked, "--direction", "in", "--json").json["rows"]] == [0, 1, 1]


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl", "arrow"])
def test_values_are_written_to_a_file_by_its_ending(cli, store, tmp_path, ending):
    path = tmp_path / f"out.{ending}"
    done = cli("analytics", "run", "degree", "--edge", "Knows", "--store", store, "--out", str(path))
    assert (done.code, done.out) == (0, "")
    assert "3 values written to" in done.err
    match ending:
        case "parquet":
            rows = pyarrow.parquet.read_table(path).to_pylist()
        case "csv":
            rows = pyarrow.csv.read_csv(path).to_pylist()
        case "arrow":
            rows = pyarrow.ipc.open_file(path).read_all().to_pylist()
        case _:
            rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert rows == VALUES


def test_what_is_wrong_is_told_before_anything_is_read(cli, store):
    done = cli("analytics", "run", "degree", "--edge", "Knows", "--store", store, "--out", "values.txt")
    assert done.code == 2
    assert "End it in .parquet, .csv, .jsonl or .arrow." in done.err
    done = cli("analytics", "run", "degree", "--edge", "Know", "--store", store)
    assert done.code == 1
    assert "there is no edge type 'Know'" in done.err
    assert "Knows" in done.err
