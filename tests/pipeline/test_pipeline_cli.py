"""`omnigraph pipeline …` as a user meets it: exit codes, what is printed where, flags over file."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from omnigraph.cli.main import main


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Outcome]:
    def run(*arguments: str, terminal: bool = False) -> Outcome:
        out, err = (_Terminal(), _Terminal()) if terminal else (io.StringIO(), io.StringIO())
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", out)
            patch.setattr(sys, "stderr", err)
            patch.setenv("COLUMNS", "100")
            code = main(list(arguments))
        return Outcome(code, out.getvalue(), err.getvalue())

    return run


PEOPLE = """
sources: {people: {format: csv, path: people.csv, options: {header: true, inferSchema: true}}}
nodes: [{type: Person, from: people, map: {name: name, age: age}}]
"""


@pytest.fixture
def people(graph, job) -> str:
    Path("people.csv").write_text("name,age\nana,31\nbo,44\n")
    return str(job(PEOPLE))


def test_the_embedded_engine_is_refused(cli, people):
    done = cli("pipeline", "run", people, "--engine", "embedded")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: a pipeline runs on spark\n")


def test_a_spark_setting_must_be_a_pair(cli, people):
    done = cli("pipeline", "run", people, "--spark-conf", "spark.x")
    assert done.code == 2
    assert "--spark-conf 'spark.x' is not K=V" in done.err


def test_mistakes_of_the_file_are_listed_line_by_line(cli, job):
    file = job("sources: {a: {format: csv, pth: x}}\nnodes: [{type: P, from: a}]\n")
    done = cli("pipeline", "validate", file)
    assert done.code == 1
    assert done.err.splitlines() == [
        "error: pipeline.yaml has 3 problems",
        "  pipeline.yaml:3  sources.a.pth  unknown_key  unknown key 'pth'; did you mean 'path'?",
        "  pipeline.yaml:3  sources.a.path  missing_key  'path' is missing",
        "  pipeline.yaml:4  nodes[0].map  missing_key  'map' is missing",
        "hint: Nothing was written. Correct the file, then run omnigraph pipeline validate.",
    ]
    body = json.loads(cli("pipeline", "validate", file, "--json").out)
    assert (body["code"], body["total"], body["violations"][0]["line"]) == ("bad_request", 3, 3)


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("{mode: merge}", "omnigraph pipeline run needs a graph"),
        ("{graph: 'http://x/y', mode: merge}", "works on storage only, and 'http://x/y' is a server URL"),
        ("{graph: nowhere, mode: merge}", "nowhere"),
    ],
)
def test_a_pipeline_needs_a_graph_in_storage(cli, people, job, target, told):
    done = cli("pipeline", "run", job(PEOPLE, head=f"version: 1\ntarget: {target}\n"))
    assert done.code in (1, 2)
    assert told in done.err
    assert "Traceback" not in done.err


@pytest.mark.spark
@pytest.mark.slow
def test_a_run_prints_what_was_loaded_and_json_the_whole_report(cli, people, spark, graph):
    done = cli("pipeline", "run", people, "-m", "first", "--as", "act-ana")
    assert (done.code, done.err) == (0, "omnigraph pipeline run → library\n")
    assert done.out.splitlines() == [
        "loaded library on branch main with merge: 2 nodes across 1 node types, 0 edges across 0 edge types",
        "node Person: 2",
    ]
    assert ("first", "act-ana") in [(c.message, c.actor_id) for c in graph.list_commits()]
    told = json.loads(
        cli("pipeline", "run", people, "--mode", "overwrite", "--json", "--quiet", "--report", "r.html").out
    )
    assert (told["uri"], told["mode"], told["outcome"], told["total_entities"]) == (
        "library",
        "overwrite",
        "committed",
        2,
    )
    assert Path("r.html").exists()


@pytest.mark.spark
@pytest.mark.slow
def test_a_terminal_sees_bars_and_quiet_means_quiet(cli, people, spark):
    done = cli("pipeline", "run", people, terminal=True)
    assert done.code == 0
    for word in ("Person", "█", "check rows", "seconds"):
        assert word in done.out
    assert "tasks" in done.err
    assert cli("pipeline", "run", people, "--quiet").err == ""


@pytest.mark.spark
@pytest.mark.slow
def test_exit_codes_tell_refused_rules_bad_rows_and_conflicts_apart(cli, people, job, spark):
    assert cli("pipeline", "run", people, "--mode", "append").code == 0
    assert cli("pipeline", "run", people, "--mode", "append").code == 3
    failing = job(PEOPLE + "quality: [{name: many, on: people, check: count(*) > 5}]\n")
    done = cli("pipeline", "run", failing)
    assert (done.code, done.out) == (1, "")
    assert "error: quality rule 'many' does not hold on people: count(*) > 5 (found 2)" in done.err
    Path("people.csv").write_text("name,age\nana,3000000000\n")
    done = cli("pipeline", "run", job(PEOPLE))
    assert done.code == 1
    assert "error: people.csv:2: " in done.err
