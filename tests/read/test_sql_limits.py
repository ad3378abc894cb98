"""The limits of SQL: time, memory and rows; a statement that passes one gives nothing."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest
from sql_scenes import answers, made

import omnigraph as og

pytestmark = pytest.mark.timeout(120)
ENDLESS = "SELECT count(*) FROM range(10000000000) a, range(10000000000) b"


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return made(tmp_path_factory.mktemp("sql"))


def reopened(graph: og.Graph, **settings: object) -> og.Graph:
    return og.Graph.open(graph.uri, "r", settings=og.Settings.resolve(**settings))


@pytest.mark.parametrize(
    "sql",
    [
        ENDLESS,
        "SELECT * FROM range(10000000000000)",
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT count(*) FROM t",
        "SELECT count(*) FROM node_Person a, range(100000000000) b WHERE a.name < b.range::VARCHAR",
    ],
)
def test_a_statement_that_takes_too_long_is_stopped(graph, sql):
    with pytest.raises(og.LimitExceeded) as told:
        graph.sql(sql, timeout_ms=300)
    assert (told.value.limit, told.value.value) == ("limits.query_timeout_ms", 300)
    assert answers(graph, "SELECT count(*) FROM node_Person", timeout_ms=20_000) == [(5,)]


def test_the_timeout_may_come_from_the_settings(graph):
    with pytest.raises(og.LimitExceeded, match="longer than 200 ms"):
        reopened(graph, limits_query_timeout_ms=200).sql(ENDLESS)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT len(list(i)) FROM range(1000000000) t(i)",
        "SELECT len(string_agg(i::VARCHAR, ',')) FROM range(1000000000) t(i)",
    ],
)
def test_a_statement_that_needs_too_much_memory_is_stopped(graph, sql):
    small = reopened(graph, limits_query_memory_bytes=64 << 20)
    with pytest.raises(og.LimitExceeded) as told:
        small.sql(sql)
    assert (told.value.limit, told.value.value) == ("limits.query_memory_bytes", 64 << 20)
    assert answers(small, "SELECT count(*) FROM node_Person") == [(5,)]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT repeat('x', 2000000000)",
        "SELECT len(repeat(name, 2000000000)) FROM node_Person",
        "SELECT lpad('x', 2000000000, 'y')",
        "SELECT rpad(name, 2000000000, 'y') FROM node_Person",
        "SELECT len(range(4000000000))",
        "SELECT len(generate_series(1, 4000000000))",
        "SELECT len(range(TIMESTAMP '1000-01-01', TIMESTAMP '9000-01-01', INTERVAL 1 MICROSECOND))",
        "SELECT len(list_resize([1], 2000000000))",
        "SELECT len(printf('%2000000000d', 1))",
        "SELECT len(format('{:2000000000}', 1))",
        "SELECT len(printf(name || '%2000000000d', 1)) FROM node_Person",
    ],
)
def test_no_function_makes_a_huge_value_of_a_small_number(graph, sql):
    with pytest.raises(og.BadRequest):
        graph.sql(sql)


def test_a_result_of_too_many_rows_is_no_result(graph):
    strict = reopened(graph, limits_result_rows=4)
    with pytest.raises(og.LimitExceeded) as told:
        strict.sql("SELECT * FROM node_Person")
    assert (told.value.limit, told.value.value) == ("limits.result_rows", 4)
    assert strict.sql("SELECT * FROM node_Person LIMIT 4").row_count == 4


def test_a_large_result_lies_in_a_file_until_nobody_holds_it(graph, tmp_path):
    spill = tmp_path / "spill"
    careful = reopened(graph, limits_spill_dir=str(spill), limits_memory_bytes=8 << 10)
    result = careful.sql("SELECT range AS i, 'x' || range AS t FROM range(100000)")
    assert list(spill.rglob("*.arrow"))
    assert (result.row_count, sum(batch.num_rows for batch in result.to_batches())) == (100_000, 100_000)
    assert next(iter(result)) == {"i": 0, "t": "x0"}
    assert len(result.to_arrow()) == 100_000
    del result
    assert not list(spill.rglob("*.arrow"))


def test_ctrl_c_interrupts_the_statement(graph):
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        graph.sql(ENDLESS, timeout_ms=60_000)
    assert time.monotonic() - began < 60
    assert answers(graph, "SELECT count(*) FROM node_Person") == [(5,)]


def test_a_negative_timeout_is_refused(graph):
    with pytest.raises(og.BadRequest, match="timeout"):
        graph.sql("SELECT 1", timeout_ms=-1)


def test_a_table_that_cannot_be_read_is_not_the_fault_of_the_statement(tmp_path):
    graph = made(tmp_path)
    for file in Path(graph.uri.removeprefix("file://")).glob("nodes/*/data/*"):
        file.unlink()
    fresh = og.Graph.open(graph.uri, "r")
    with pytest.raises(og.Unavailable):
        fresh.sql("SELECT max(age), max(name) FROM node_Person")
