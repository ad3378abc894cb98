"""A query on Spark gives the rows that were worked out by hand, as the one in memory does."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import omnigraph as og
from omnigraph.engine.read import query as reading
from omnigraph.plan.check import compile_query
from omnigraph.plan.typed import ReadQuery
from omnigraph.settings import Settings
from read import case_search
from read.agree import disagreement, misfit
from read.case_scenes import Rows
from read.cases import Case, all_cases
from read.graphs import CATALOG, SCHEMA, graphs
from read.queries import AskedQuery, queries
from read.row_lines import write_lines

pytestmark = [pytest.mark.spark, pytest.mark.slow]
NOW_MS = 1_700_000_000_000
CASES = [case for case in (*all_cases(), *case_search.CASES) if case.scene.loadable]
# Each sixth, so that every family of cases is there; all of them in the long ring.
RING = [pytest.param(case, id=str(case), marks=() if n % 6 == 0 else pytest.mark.full) for n, case in enumerate(CASES)]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory, spark: Any) -> dict[str, og.Graph]:
    folder: Path = tmp_path_factory.mktemp("scenes")
    made = {}
    for scene in {case.scene.name: case.scene for case in CASES}.values():
        graph = og.Graph.init(str(folder / scene.name), scene.schema)
        graph.load(write_lines(folder / f"{scene.name}.jsonl", scene.rows), mode="append", engine="embedded")
        made[scene.name] = graph
    return made


@pytest.mark.parametrize("case", RING)
def test_a_query_on_spark_gives_the_expected_rows(case: Case, places: dict[str, og.Graph]) -> None:
    found = places[case.scene.name].query(case.source, case.params, engine="spark").to_json()["rows"]

    assert misfit(case.query, case.expected, found) is None


def check_random(tables: Rows, asked: list[AskedQuery]) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "now_us", lambda: NOW_MS * 1000)
        graph = og.Graph.init(f"{folder}/graph", SCHEMA)
        file = write_lines(Path(folder) / "rows.jsonl", tables)
        if file.stat().st_size:
            graph.load(file, mode="append", engine="embedded", index=False)
        for one in asked:
            checked = compile_query(CATALOG, one.source)
            assert isinstance(checked, ReadQuery)
            found = graph.query(one.source, one.params, engine="spark").to_json()["rows"]
            wrong = disagreement(checked, tables, found, one.params, NOW_MS)
            assert wrong is None, f"{wrong}\n{one.source}\n{one.params}"


QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]


@settings(max_examples=3, deadline=None, suppress_health_check=QUIET, phases=[Phase.generate])
@given(graphs(), st.lists(queries(), min_size=3, max_size=5))
def test_random_queries_on_spark_give_what_the_naive_evaluator_gives(
    spark: Any, tables: Rows, asked: list[AskedQuery]
) -> None:
    check_random(tables, asked)


@pytest.mark.full
@pytest.mark.timeout(7200)
@settings(max_examples=40, deadline=None, suppress_health_check=QUIET, phases=[Phase.generate])
@given(graphs(), st.lists(queries(), min_size=5, max_size=12))
def test_random_queries_on_spark_give_what_the_naive_evaluator_gives_at_length(
    spark: Any, tables: Rows, asked: list[AskedQuery]
) -> None:
    check_random(tables, asked)


def test_an_answer_on_spark_is_a_frame_of_one_snapshot(places: dict[str, og.Graph]) -> None:
    graph = places["spec"]
    source = "query q() { match { $p: Person } return { $p.name as name, $p.age as age } order { name } }"
    frame = graph.spark.query(source)

    assert [field.simpleString() for field in frame.schema] == ["name:string", "age:int"]
    assert [tuple(row) for row in frame.collect()] == [("ana", 31), ("bo", None)]


def test_what_spark_does_not_know_is_refused_by_name(places: dict[str, og.Graph]) -> None:
    with pytest.raises(og.BadRequest, match="unknown engine 'sparkle'"):
        places["spec"].query("query q() { match { $p: Person } return { $p.name } }", engine="sparkle")


PEOPLE = "query q() { match { $p: Person $q: Person } return { $p.name } }"


def test_a_query_on_spark_keeps_the_limits_of_a_read(places: dict[str, og.Graph]) -> None:
    def limited(**limits: int) -> og.Graph:
        return og.Graph.open(places["walks"].uri, "r", settings=Settings(**limits))  # type: ignore[arg-type]

    for asked, limit in (
        (lambda: limited(limits_result_rows=35).query(PEOPLE, engine="spark"), ("limits.result_rows", 35)),
        (lambda: limited(limits_query_timeout_ms=1).query(PEOPLE, engine="spark"), ("limits.query_timeout_ms", 1)),
        (lambda: limited().query(PEOPLE, engine="spark", timeout_ms=2), ("limits.query_timeout_ms", 2)),
    ):
        with pytest.raises(og.LimitExceeded) as told:
            asked()
        assert (told.value.limit, told.value.value) == limit
    assert limited(limits_result_rows=36).query(PEOPLE, engine="spark", timeout_ms=120_000).row_count == 36


def running_tasks(spark: Any) -> set[str]:
    """The threads of the JVM that work on a task now; each task has a name of its own."""
    threads = spark._jvm.java.lang.Thread.getAllStackTraces().keySet().toArray()
    return {name for name in (thread.getName() for thread in threads) if " launch worker for task " in name}


@pytest.mark.timeout(180)
def test_a_query_on_spark_that_would_take_hours_is_stopped_and_so_are_its_tasks(
    places: dict[str, og.Graph], spark: Any
) -> None:
    everybody = " ".join(f"$p{n}: Person" for n in range(12))
    endless = f"query q() {{ match {{ {everybody} $p0.age < $p1.age }} return {{ max($p11.name) as m }} }}"
    for timeout_ms in (4_000, 16_000, 64_000):
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(places["walks"].query, endless, engine="spark", timeout_ms=timeout_ms)
            seen: Counter[str] = Counter()
            while not asked.done():
                seen.update(running_tasks(spark))
                time.sleep(0.1)
        with pytest.raises(og.LimitExceeded, match=f"longer than {timeout_ms} ms"):
            asked.result()
        # The one that would take hours, not one of those that read its few rows.
        if max(seen.values(), default=0) > 10:
            break
    assert max(seen.values()) > 10, "the long task did not begin in time"
    for _ in range(200):
        if not running_tasks(spark):
            break
        time.sleep(0.05)
    assert running_tasks(spark) == set(), "a task goes on though nobody waits for it"
    assert places["walks"].query(PEOPLE, engine="spark").row_count == 36


def test_a_query_on_spark_says_what_the_one_in_memory_says(places: dict[str, og.Graph]) -> None:
    zero = "query q() { match { $d: Doc } return { $d } order { nearest($d.vec, [0.0, 0.0]) } limit 1 }"
    told = []
    for engine in ("embedded", "spark"):
        with pytest.raises(og.BadRequest) as refused:
            places["docs"].query(zero, engine=engine)
        told.append((str(refused.value), refused.value.hint))
    assert told[0] == told[1]


def test_rows_that_an_index_still_names_after_a_compaction_are_not_found_on_spark(spark, tmp_path):
    graph = og.Graph.init(str(tmp_path / "graph"), "node Doc { name: String @key  body: String? @index }")
    rows = pa.table({"name": [f"d{n}" for n in range(20)], "body": [f"bears run {n}" for n in range(20)]})
    graph.load_frames({"Doc": rows}, mode="append")
    graph.mutate('query m() { delete Doc where name = "d3" }')
    graph.write({"node:Doc": og.Compact()})
    for source in (
        'query q() { match { $d: Doc search($d.body, "bears") } return { $d.name } order { $d.name } }',
        'query q() { match { $d: Doc } return { $d.name, bm25($d.body, "bears") as s } order { s } limit 50 }',
        'query q() { match { $d: Doc search($d.body, "none") } return { $d.name } order { $d.name } }',
    ):
        assert graph.query(source, engine="spark").rows == graph.query(source).rows
