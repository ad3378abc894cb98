"""`omnigraph sql`, and the formats that `sql` and `query` share."""

from __future__ import annotations

import csv
import io
import os
import resource
import signal
import subprocess
import sys
import time

import orjson
import pyarrow as pa
import pytest

pytestmark = pytest.mark.slow

PEOPLE = "SELECT name, age FROM node_Person ORDER BY name"


def sql(cli, text, *more):
    return cli("sql", text, "--store", "library", *more)


def test_a_table_says_where_its_rows_come_from(cli, graph):
    assert sql(cli, PEOPLE).lines == [
        "3 rows from branch main via sql",
        "name     | age",
        "ann      | null",
        "bob      | null",
        "cyd      | null",
    ]
    assert sql(cli, "SELECT 1 WHERE false").lines == ["0 rows from branch main via sql", "(no rows)"]


def test_on_a_terminal_it_is_drawn(cli, graph):
    drawn = cli("sql", PEOPLE, "-s", "library", terminal=True).out
    assert "│ ann " in drawn
    assert drawn.startswith("3 rows from branch main via sql\n")


def test_an_older_commit_can_be_read(cli, graph):
    before = graph.list_commits()[1].graph_commit_id
    for option in (("--at", "main~1"), ("--snapshot", before)):
        lines = sql(cli, PEOPLE, "--format", "kv", *option).lines
        assert lines[:3] == [f"2 rows from snapshot {before} via sql", "row 1", "  name: ann"]
    assert sql(cli, "SELECT count(*) AS n FROM node_Person", "--as-of", "2100-01-01", "--json").json["rows"] == [
        {"n": 3}
    ]
    assert sql(cli, PEOPLE, "--at", "main~1", "--branch", "main").code == 2


def test_json_is_the_http_body(cli, graph):
    body = sql(cli, "SELECT 9007199254740993 AS big, 'nan'::DOUBLE AS odd, NULL AS nothing", "--json").json
    assert body == {
        "query_name": "sql",
        "target": {"branch": "main"},
        "graph_commit_id": graph.head_commit_id_for_branch(),
        "row_count": 1,
        "columns": ["big", "odd", "nothing"],
        "rows": [{"big": "9007199254740993", "odd": "NaN", "nothing": None}],
    }


def test_csv_tells_null_from_empty_and_quotes(cli, graph):
    done = sql(cli, "SELECT NULL AS a, '' AS b, 'x,\"y' AS c, [1, 2] AS d, true AS e", "--format", "csv")
    assert done.out == 'a,b,c,d,e\n,"","x,""y","[1,2]",true\n'


def test_jsonl_starts_with_its_metadata(cli, graph):
    head, *rows = [orjson.loads(line) for line in sql(cli, PEOPLE, "--format", "jsonl").lines]
    assert head == {"kind": "metadata", "query_name": "sql", "target": {"branch": "main"}, "row_count": 3}
    assert rows == [{"name": name, "age": None} for name in ("ann", "bob", "cyd")]


def test_arrow_is_a_stream_of_typed_columns(cli, graph):
    table = pa.ipc.open_stream(sql(cli, PEOPLE, "--format", "arrow").payload).read_all()
    assert (table.schema.field("age").type, table.column("name").to_pylist()) == (pa.int32(), ["ann", "bob", "cyd"])
    assert (
        pa.ipc.open_stream(sql(cli, "SELECT 1 AS a WHERE false", "--format", "arrow").payload).read_all().num_rows == 0
    )
    assert cli("sql", PEOPLE, "-s", "library", "--format", "arrow", terminal=True).code == 2


def test_many_rows_are_all_there_in_every_streamed_format(cli, graph, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_MEMORY_BYTES", "64 KiB")
    many = "SELECT range AS n, 'row ' || range AS t FROM range(50000)"
    rows = list(csv.DictReader(io.StringIO(sql(cli, many, "--format", "csv").out)))
    assert (len(rows), rows[-1]) == (50_000, {"n": "49999", "t": "row 49999"})
    head, *rows = sql(cli, many, "--format", "jsonl").lines
    assert (orjson.loads(head)["row_count"], len(rows)) == (50_000, 50_000)
    assert pa.ipc.open_stream(sql(cli, many, "--format", "arrow").payload).read_all().num_rows == 50_000


def test_control_characters_do_not_reach_the_terminal(cli, graph):
    hostile = "SELECT chr(27) || '[31mred' AS \"a\x1b[31m\""
    for how in ("table", "kv"):
        assert "\x1b" not in sql(cli, hostile, "--format", how).out


def test_a_mistake_names_its_place_and_exits_with_1(cli, graph):
    done = sql(cli, "SELECT *\nFROM node_Persn", "--json")
    assert (done.code, done.json["line"], done.json["column"]) == (1, 2, 6)
    assert done.err.splitlines() == [
        "error: sql: 2:6: there is no view 'node_Persn'",
        "hint: Did you mean 'node_Person'?",
    ]


@pytest.mark.parametrize("text", ["DELETE FROM node_Person", "SELECT 1; SELECT 2", "SELECT * FROM 'schema.pg'", ""])
def test_anything_but_one_select_over_the_views_is_refused(cli, graph, text):
    done = sql(cli, text)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: sql: ")


def test_limits_exit_with_7_and_print_no_rows(cli, graph, monkeypatch):
    endless = "SELECT count(*) FROM range(10000000000) a, range(10000000000) b"
    slow = sql(cli, endless, "--timeout", "300ms", "--json")
    assert (slow.code, slow.json["code"], slow.json["limit"]) == (7, "limit_exceeded", "limits.query_timeout_ms")
    monkeypatch.setenv("OMNIGRAPH_RESULT_ROWS", "2")
    many = sql(cli, PEOPLE, "--format", "csv")
    assert (many.code, many.out) == (7, "")
    assert sql(cli, PEOPLE, "--timeout", "soon").code == 1


def test_explain_runs_nothing(cli, graph):
    endless = "SELECT count(*) FROM range(10000000000) a, range(10000000000) b, node_Person"
    done = sql(cli, endless, "--explain")
    assert done.code == 0
    assert "node_Person" not in done.err
    assert "rows from" not in done.out
    assert "plan" in sql(cli, endless, "--explain", "--json").json
    assert sql(cli, endless, "--explain", "--analyze").code == 2


def test_analyze_prints_the_plan_after_the_result(cli, graph):
    lines = sql(cli, PEOPLE, "--analyze").lines
    assert lines[0] == "3 rows from branch main via sql"
    assert any("Total Time" in line for line in lines[5:])
    apart = sql(cli, PEOPLE, "--analyze", "--format", "csv")
    assert len(apart.lines) == 4
    assert "Total Time" in apart.err
    assert "Total Time" in sql(cli, PEOPLE, "--analyze", "--json").json["plan"]


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "omnigraph.cli.main", "sql", *words, "-s", "library"]


@pytest.mark.parametrize("how", ["csv", "jsonl", "arrow"])
def test_a_reader_that_has_seen_enough_is_no_failure(graph, how):
    with subprocess.Popen(
        command("SELECT range AS n FROM range(3000000)", "--format", how),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(100)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 0


def test_ctrl_c_ends_an_endless_statement_with_130(graph):
    endless = "SELECT count(*) FROM range(10000000000) a, range(10000000000) b"
    with subprocess.Popen(command(endless), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        until = time.monotonic() + 60
        while time.monotonic() < until and not _is_computing(process.pid):
            time.sleep(0.1)
        os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, b"", b"interrupted\n")


@pytest.mark.parametrize(
    "bomb",
    [
        "SELECT max(len(list_transform(range(100000), lambda x: repeat('x', 1000000 + i::INT)))) FROM range(9) t(i)",
        "SELECT max(len(replace(repeat('a', 1000000 + i::INT), 'a', repeat('b', 1000)))) FROM range(9) t(i)",
    ],
)
def test_values_that_grow_beyond_the_memory_limit_end_the_statement(graph, bomb):
    done = subprocess.run(
        command(bomb),
        capture_output=True,
        timeout=100,
        env={**os.environ, "OMNIGRAPH_QUERY_MEMORY_BYTES": "128 MiB"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (9 << 30, 9 << 30)),
    )
    assert (done.returncode, done.stdout) == (7, b"")
    assert [line.partition(b":")[0] for line in done.stderr.splitlines()] == [b"error", b"hint"]


def _is_computing(pid: int) -> bool:
    """Whether the thread of the statement runs; nothing else makes a thread of that name."""
    tasks = f"/proc/{pid}/task"
    return len(os.listdir(tasks)) > 2 and _cpu_seconds(pid) > 2.5


def _cpu_seconds(pid: int) -> float:
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
