"""`analyze` on Spark: the same answer, and what each step gave, with the time it took when it was run by itself."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.cli.main import main
from omnigraph.settings import Settings

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SCHEMA = """
node Person { name: String @key  age: I32?  bio: String? @index }
node Team { code: String @key }
edge Follows: Person -> Person { weight: F64? }
edge MemberOf: Person -> Team
"""
LINES = """
{"type":"Person","data":{"name":"ana","age":31,"bio":"red fox"}}
{"type":"Person","data":{"name":"bo","bio":"blue bird"}}
{"type":"Person","data":{"name":"cy","age":20,"bio":"a fox at night"}}
{"type":"Team","data":{"code":"core"}}
{"type":"Team","data":{"code":"web"}}
{"edge":"Follows","from":"ana","to":"bo","data":{"weight":0.5}}
{"edge":"Follows","from":"bo","to":"cy","data":{"weight":0.9}}
{"edge":"Follows","from":"cy","to":"ana"}
{"edge":"MemberOf","from":"ana","to":"core"}
"""
WALK = "query q() { match { $p: Person $p follows{1,2} $q } return { $p.name as p, $q.name as q } order { p, q } }"
SAME = [
    WALK,
    "query q() { match { $p: Person  $p $w:follows $q  $w.weight > 0.6 } return { $p.name, $q.name } }",
    "query q() { match { $p: Person $t: Team  $p.age > 18 } return { count($p) as n, max($t.code) as m } }",
    'query q() { match { $p: Person  search($p.bio, "fox") } return { $p.name } order { $p.name } limit 1 }',
]
STEP = re.compile(r"( *)(\w.*?)  \[~\d+ rows, was (\d+) in \d+\.\d\d ms\]")


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory, spark: Any) -> og.Graph:
    folder: Path = tmp_path_factory.mktemp("analyzed")
    graph = og.Graph.init(str(folder / "graph"), SCHEMA)
    (folder / "in.jsonl").write_text(LINES.strip() + "\n")
    graph.load(str(folder / "in.jsonl"), mode="append", engine="embedded")
    return graph


def steps(plan: str | None) -> list[tuple[str, ...]]:
    assert plan is not None
    return [found.groups() for line in plan.splitlines() if (found := STEP.fullmatch(line))]


@pytest.mark.parametrize("source", SAME)
def test_every_step_tells_the_rows_it_gives_in_memory_and_the_answer_is_the_same(graph: og.Graph, source: str) -> None:
    here, there = (graph.query(source, analyze=True, engine=engine) for engine in ("embedded", "spark"))

    assert sorted(map(str, there.rows)) == sorted(map(str, here.rows))
    assert steps(there.plan) == steps(here.plan) != []
    assert graph.query(source, engine="spark").plan is None


def test_a_negation_tells_what_its_inside_gave(graph: og.Graph) -> None:
    source = "query q() { match { $p: Person  not { $p memberOf $t } } return { $p.name as p } order { p } }"
    found = graph.query(source, analyze=True, engine="spark")

    assert found.rows == [{"p": "bo"}, {"p": "cy"}]
    told = {words.split(" ")[0]: int(rows) for _, words, rows in steps(found.plan)}
    assert told["Scan"] == told["Rows"] == 3
    assert len(steps(found.plan)) == len(graph.explain(source).splitlines()) - 2


def test_the_plan_says_what_its_times_are(graph: og.Graph) -> None:
    lines = (graph.query(WALK, analyze=True, engine="spark").plan or "").splitlines()
    assert re.fullmatch(r"6 rows in \d+\.\d\d ms", lines[-3])
    assert lines[-2].startswith("Times on Spark: each step was run by itself")
    own = [float(ms) for line in lines[:-3] for ms in re.findall(r"was \d+ in ([\d.]+) ms", line)]
    assert 0 < sum(own) <= float(lines[-3].split(" ")[3])


def test_limits_hold_for_an_analyzed_query_too(graph: og.Graph) -> None:
    limited = og.Graph.open(graph.uri, "r", settings=Settings(limits_result_rows=5))
    with pytest.raises(og.LimitExceeded, match="5"):
        limited.query(WALK, analyze=True, engine="spark")
    with pytest.raises(og.LimitExceeded, match="longer than 1 ms"):
        graph.query(WALK, analyze=True, engine="spark", timeout_ms=1)


def test_the_command_prints_the_plan_after_the_rows(graph: og.Graph, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["query", "-s", graph.uri, "-e", WALK, "--engine", "spark", "--analyze"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "6 rows from branch main via q"
    assert any("Scan $p: Person  [~3 rows, was 3 in " in line for line in lines[7:])
    assert "may take less time" in lines[-1]
