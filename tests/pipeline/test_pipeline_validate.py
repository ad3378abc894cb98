"""`validate` resolves everything by Spark's own analysis, tells all that is wrong at once, and writes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import omnigraph as og
from omnigraph.pipeline.job.problems import PipelineInvalid
from omnigraph.pipeline.job.run import validate_job
from omnigraph.pipeline.job.validate import Overrides

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(autouse=True)
def _people(folder):
    Path("people.csv").write_text("name,age,team,on\nana,31,core,2024-01-01\n")


SOURCES = "sources: {people: {format: csv, path: people.csv, options: {header: true}}}\n"


def problems(graph, spark, file, overrides=None) -> list[tuple[int, str, str]]:
    with pytest.raises(PipelineInvalid) as raised:
        validate_job(file, graph, overrides, spark=spark)
    return [(v["line"], v["type"], v["message"]) for v in raised.value.violations]


def test_a_valid_pipeline_is_described_and_nothing_is_written(graph, job, spark):
    before = sorted(path for path in Path("library").rglob("*"))
    file = job(
        SOURCES,
        """
        transforms:
          members: select name, cast(age as int) age, team from people
        nodes:
          - {type: Person, from: members, map: {name: name, age: age + 1, score: 1.5}}
          - {type: Note, from: people, map: {id: name, text: "concat(name, '!')"}, where: name <> 'x'}
        edges:
          - {type: memberof, from: people, src: name, dst: team, map: {since: "`on`"}}
          - {type: SitsAt, from: members, src: name, dst: [age, team]}
        quality: [{name: some, on: people, check: count(*) > 0}]
        """,
    )
    found = validate_job(file, og.Graph.open("library", "r"), spark=spark).to_json("library")
    assert found == {
        "valid": True,
        "file": "pipeline.yaml",
        "uri": "library",
        "branch": "main",
        "mode": "merge",
        "sources": [{"name": "people", "format": "csv"}],
        "views": ["members"],
        "nodes": [
            {"type": "Person", "from": "members", "properties": ["name", "age", "score"]},
            {"type": "Note", "from": "people", "properties": ["id", "text"]},
        ],
        "edges": [
            {"type": "MemberOf", "from": "people", "properties": ["since"]},
            {"type": "SitsAt", "from": "members", "properties": []},
        ],
        "quality": [{"name": "some", "severity": "error"}],
    }
    assert sorted(path for path in Path("library").rglob("*")) == before


def test_all_that_does_not_fit_is_told_at_once(graph, job, spark):
    file = job(
        """\
        sources:
          people: {format: csv, path: people.csv, options: {header: true}}
          gone: {format: csv, path: gone/*.csv}
          odd: {format: nosuchformat, path: people.csv}
        transforms:
          members: select nme from people
          after: select * from members
          broken: selec 1
          stray: select * from peple
        nodes:
          - {type: Persn, from: people, map: {name: name}}
          - {type: Person, from: people, map: {agee: age, name: nam}}
          - {type: Person, from: people, map: {age: age}}
          - {type: Team, from: after, map: {code: x}}
          - {type: Team, from: peopl, map: {code: x}}
          - {type: Person, from: people, map: {name: name, id: name}, where: age}
        edges:
          - {type: MemberOf, from: people, src: name, dst: [team, name]}
        quality:
          - {name: a, on: people, check: sum(agee) > 1}
          - {name: b, on: people, check: count(*)}
        """
    )
    assert problems(graph, spark, file) == [
        (5, "sources.gone", f"no file at file:{Path.cwd()}/gone/*.csv"),
        (6, "sources.odd", "Spark knows no format 'nosuchformat'; name its jar in spark.conf"),
        (8, "transforms.members", "unknown column 'nme'; did you mean 'name'?"),
        (10, "transforms.broken", "Syntax error at or near 'selec'."),
        (11, "transforms.stray", "unknown view 'peple'; did you mean 'people'?"),
        (13, "nodes[0].type", "the graph has no node type 'Persn'; did you mean 'Person'?"),
        (14, "nodes[1].map.agee", "Person has no property 'agee'; did you mean 'age'?"),
        (14, "nodes[1].map.name", "unknown column 'nam'; did you mean 'name'?"),
        (15, "nodes[2].map", "Person.name is String and must be mapped"),
        (
            15,
            "nodes[2].map.age",
            "Person.age is I32?, but 'age' is string; if the change is meant, write cast(age as int)",
        ),
        (17, "nodes[4].from", "unknown view 'peopl'; did you mean 'people'?"),
        (18, "nodes[5].map.id", "Person has a key, which makes its ids; map the key instead"),
        (18, "nodes[5].where", "expects a condition, but 'age' is string"),
        (20, "edges[0].dst[0]", "the key of Team has 1 members (code), not 2"),
        (22, "quality[0].check", "unknown column 'agee'; did you mean 'age'?"),
        (23, "quality[1].check", "expects a condition over all rows, but 'count(*)' is bigint"),
    ]


@pytest.mark.parametrize(
    ("property_", "expression", "given"),
    [
        ("age", "cast(age as double)", "double"),
        ("age", "cast(age as decimal(9,2))", "decimal(9,2)"),
        ("born", "timestamp'2024-01-01 10:00:00'", "timestamp"),
        ("score", "age", "string"),
        ("name", "cast(age as int)", "int"),
        ("age", "true", "boolean"),
    ],
)
def test_a_cast_that_could_lose_something_is_refused_and_spelled_out(graph, job, spark, property_, expression, given):
    mapped = {"name": "name", property_: expression}
    text = ", ".join(f'{name}: "{value}"' for name, value in mapped.items())
    file = job(SOURCES + f"nodes: [{{type: Person, from: people, map: {{{text}}}}}]")
    ((_, path, message),) = problems(graph, spark, file)
    assert path == f"nodes[0].map.{property_}"
    assert f"but '{expression}' is {given}; if the change is meant, write cast(" in message


def test_types_that_the_load_can_judge_pass(graph, job, spark):
    fits = {"age": "cast(age as bigint)", "born": "'2024-02-29'", "score": "cast(1 as decimal(9,2))", "name": "name"}
    text = ", ".join(f'{name}: "{value}"' for name, value in fits.items())
    file = job(SOURCES + f"nodes: [{{type: Person, from: people, map: {{{text}}}}}]")
    assert len(validate_job(file, graph, spark=spark).mappings) == 1


def test_parts_that_do_not_go_together_are_told_at_the_mapping(graph, job, spark):
    file = job(SOURCES, "nodes: [{type: Person, from: people, map: {name: name, age: 'cast(count(*) as int)'}}]")
    ((_, path, message),) = problems(graph, spark, file)
    assert path == "nodes[0]"
    assert "GROUP BY" in message


NODES = "nodes: [{type: Person, from: people, map: {name: name}}]\n"


def test_a_branch_that_is_not_there_needs_a_start(graph, job, spark):
    file = job(SOURCES + NODES)
    ((_, path, message),) = problems(graph, spark, file, Overrides(branch="draft"))
    assert (path, message) == ("target.branch", "branch 'draft' does not exist; say where it starts: from: main")
    assert validate_job(file, graph, Overrides(branch="draft", base="main"), spark=spark).branch == "draft"
    ((_, path, message),) = problems(graph, spark, file, Overrides(branch="draft", base="nowhere"))
    assert (path, message) == ("target.from", "branch 'nowhere' does not exist")


def test_a_mode_is_needed_from_the_file_or_the_caller(graph, job, spark):
    file = job(SOURCES + NODES, head="version: 1\ntarget: {graph: library}\n")
    assert problems(graph, spark, file) == [(2, "target.mode", "'mode' is missing: append, merge or overwrite")]
    assert validate_job(file, graph, Overrides(mode="append"), spark=spark).mode == "append"


def test_a_rejects_file_that_exists_is_told_before_the_work(graph, job, spark):
    Path("old.jsonl").write_text("")
    file = job(SOURCES + NODES + "load: {on_error: quarantine, rejects: old.jsonl}")
    ((line, path, message),) = problems(graph, spark, file)
    assert (line, path) == (5, "load.rejects")
    assert "rejects file 'old.jsonl' exists" in message


def test_an_ndjson_source_is_loaded_as_it_is_and_must_exist(graph, job, spark):
    file = job(
        SOURCES.rstrip("}\n") + "}}, more: {format: ndjson, path: more/*.jsonl}}\n" + NODES.replace("people", "more")
    )
    assert problems(graph, spark, file) == [
        (3, "sources.more", "no file at more/*.jsonl"),
        (4, "nodes[0].from", "source 'more' is ndjson, which is loaded as it is; read it as json to map its rows"),
    ]


def test_neither_views_nor_the_session_of_a_pipeline_stay(graph, job, spark):
    validate_job(job(SOURCES + "transforms: {members: select 1 as x}\n" + NODES), graph, spark=spark)
    assert not spark.catalog.tableExists("people")
    assert not spark.catalog.tableExists("members")
    assert SparkSession.getActiveSession() is spark
    problems(graph, spark, job(SOURCES + NODES.replace("people", "gone")))
    assert SparkSession.getActiveSession() is spark
