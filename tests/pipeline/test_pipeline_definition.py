"""A pipeline file is read strictly: what is not understood is told with its line, its path and a guess."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.pipeline.job.definition import Expression, read_definition
from omnigraph.pipeline.job.problems import PipelineInvalid

WHOLE = """version: 1
target: {graph: s3://lake/library, branch: import-2024, from: main, mode: merge}
sources:
  people:  {format: csv, path: raw/people/*.csv, options: {header: true, sep: ;}}
  orders:  {format: parquet, path: [s3://lake/orders/, more/orders]}
  extra:   {format: ndjson, path: extra.jsonl}
transforms:
  members: |
    select distinct lower(handle) as name, cast(age as int) as age, team from people
nodes:
  - {type: Person, from: members, map: {name: name, age: age, score: 1.5}}
edges:
  - {type: MemberOf, from: members, src: name, dst: [team, 7], where: "team is not null"}
quality:
  - {name: enough_people, on: members, check: "count(*) >= 1000"}
  - {name: no_future_age, on: members, check: "count_if(age > 130) = 0", severity: warn}
load: {on_error: quarantine, rejects: out/rejects.jsonl, max_errors: 50, index: no, message: "import 2024"}
report: out/report.html
"""


def problems(folder: Path, text: str) -> list[tuple[int, str, str]]:
    (folder / "p.yaml").write_text(text)
    with pytest.raises(PipelineInvalid) as raised:
        read_definition("p.yaml")
    assert raised.value.total == len(raised.value.violations)
    assert {v["file"] for v in raised.value.violations} == {"p.yaml"}
    return [(v["line"], v["type"], v["message"]) for v in raised.value.violations]


def test_every_part_of_the_file_is_kept_with_its_place(folder):
    Path("jobs").mkdir()
    Path("jobs/p.yaml").write_text(WHOLE)
    found = read_definition("jobs/p.yaml")
    assert (found.target.graph, found.target.branch, found.target.base) == ("s3://lake/library", "import-2024", "main")
    assert found.target.mode == "merge"
    assert [(s.name, s.format, s.paths) for s in found.sources][:2] == [
        ("people", "csv", ("raw/people/*.csv",)),
        ("orders", "parquet", ("s3://lake/orders/", "more/orders")),
    ]
    assert found.sources[0].options == {"header": "true", "sep": ";"}
    person, member = found.mappings
    assert [(name, e.text) for name, e in person.columns] == [("name", "name"), ("age", "age"), ("score", "1.5")]
    assert [e.text for e in member.dst] == ["team", "7"]
    assert (member.dst[0].spot.line, member.dst[1].spot.path) == (13, "edges[0].dst[1]")
    assert isinstance(member.where, Expression)
    assert [(r.name, r.on.text, r.severity) for r in found.rules] == [
        ("enough_people", "members", "error"),
        ("no_future_age", "members", "warn"),
    ]
    assert (found.load.index, found.load.max_errors, found.load.message) == (False, 50, "import 2024")


def test_paths_start_where_the_file_lies(folder):
    Path("jobs").mkdir()
    Path("jobs/p.yaml").write_text(WHOLE)
    found = read_definition("jobs/p.yaml")
    assert found.beside("raw/a.csv") == "jobs/raw/a.csv"
    assert found.beside("s3://lake/a.csv") == "s3://lake/a.csv"
    assert found.beside("/tmp/a.csv") == "/tmp/a.csv"
    assert found.graph(["library"]) == "s3://lake/library"


def test_all_mistakes_are_told_at_once_in_the_order_of_the_file(folder):
    text = """version: 2
target: {graph: g, brnch: x, mode: merg}
sources:
  people: {format: csv, option: {header: true}}
  2people: {format: csv, path: a.csv}
transforms:
  People: select 1
nodes:
  - {type: Person, from: members, map: {name: null}, wher: "a"}
  - {from: members, map: [a]}
edges:
  - {type: MemberOf, from: members, src: a}
quality:
  - {name: a, on: members, check: "count(*) > 1", severity: fatal}
load: {index: 1, rejects: x, max_errors: 0}
"""
    assert problems(folder, text) == [
        (1, "version", "version must be 1"),
        (2, "target.brnch", "unknown key 'brnch'; did you mean 'branch'?"),
        (2, "target.mode", "expects one of append, merge, overwrite, not 'merg'"),
        (4, "sources.people.option", "unknown key 'option'; did you mean 'options'?"),
        (4, "sources.people.path", "'path' is missing"),
        (5, "sources.2people", "'2people' cannot be a name in SQL; use letters, digits and _"),
        (7, "transforms.People", "'People' is the name of a source already"),
        (9, "nodes[0].wher", "unknown key 'wher'; did you mean 'where'?"),
        (9, "nodes[0].map.name", "expects a column or an SQL expression, not nothing (null)"),
        (10, "nodes[1].type", "'type' is missing"),
        (10, "nodes[1].map", "expects a mapping, not a list"),
        (12, "edges[0].dst", "'dst' is missing"),
        (14, "quality[0].severity", "expects one of error, warn, not 'fatal'"),
        (15, "load.index", "expects true or false, not a whole number (1)"),
        (15, "load.max_errors", "expects a whole number of at least 1, not a whole number (0)"),
        (15, "load.rejects", "a rejects file is only written with on_error: quarantine"),
    ]


HEAD = "version: 1\ntarget: {graph: g, mode: merge}\n"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", (1, "file", "the file is empty; it needs version, target and what to load")),
        ("[a, b]", (1, "", "expects a mapping, not a list")),
        ("version: 1\n  target: {", (2, "file", "is not YAML: mapping values are not allowed here")),
        ("version: 1\nnodes: []", (1, "target", "'target' is missing")),
        (HEAD, (1, "", "there is nothing to load: add nodes, edges or an ndjson source")),
        (
            HEAD + "sources:\n  a: {format: csv, path: x}\n  a: {format: csv, path: y}",
            (5, "sources.a", "'a' is given twice"),
        ),
        (
            HEAD + "sources: {a: {format: csv, path: 2024-01-01}}",
            (3, "sources.a.path", "expects a text, not timestamp"),
        ),
        (HEAD + "sources: {a: {format: ndjson, path: x, options: {a: 1}}}", (3, "sources.a.options", "has no options")),
        (
            HEAD + "sources: {a: {format: jdbc, options: {password: {env: NOT_SET_HERE}}}}",
            (3, "sources.a.options.password", "environment variable NOT_SET_HERE is not set"),
        ),
        (
            HEAD + "quality:\n - {name: a, on: m, check: x}\n - {name: a, on: m, check: x}",
            (5, "quality[1].name", "two rules are named 'a'"),
        ),
        (HEAD + "report: [a]", (3, "report", "expects a text, not a list")),
        (
            HEAD + "load: {message: yes}",
            (3, "load.message", 'expects a text, not true or false (yes); quote it: "yes"'),
        ),
        (
            HEAD + "edges: [{type: E, from: v, src: [], dst: b}]",
            (3, "edges[0].src", "expects a column or a list of columns"),
        ),
    ],
)
def test_a_mistake_is_told_with_its_line_and_path(folder, text, wanted):
    line, path, message = problems(folder, text)[0]
    assert (line, path) == wanted[:2]
    assert wanted[2] in message


def test_one_mistake_is_told_in_one_line(folder):
    Path("p.yaml").write_text(HEAD + "nodes: [{type: Person, from: m, map: {}, were: x}]")
    with pytest.raises(PipelineInvalid) as raised:
        read_definition("p.yaml")
    assert str(raised.value) == "p.yaml:3: nodes[0].were: unknown key 'were'; did you mean 'where'?"
    assert raised.value.hint.startswith("Nothing was written.")


def test_a_secret_comes_from_the_environment_and_is_not_printed(folder, monkeypatch):
    monkeypatch.setenv("THE_PASSWORD", "swordfish")
    text = HEAD + "sources: {a: {format: jdbc, options: {url: u, password: {env: THE_PASSWORD}}}}\n"
    Path("p.yaml").write_text(text + "nodes: [{type: P, from: a, map: {name: a}}]")
    found = read_definition("p.yaml")
    assert found.sources[0].options["password"] == "swordfish"
    assert "swordfish" not in repr(found)


@pytest.mark.parametrize("name", ["absent.yaml", "."])
def test_a_file_that_cannot_be_read_is_named(folder, name):
    with pytest.raises((og.NotFound, og.BadRequest), match=f"pipeline file '{name}'"):
        read_definition(name)
