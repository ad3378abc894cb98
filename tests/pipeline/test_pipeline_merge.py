"""`merge_into`: a run whose rules hold goes on to the branch it names; any other stays where it was loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.pipeline.job.problems import PipelineInvalid
from omnigraph.pipeline.job.run import run_job, validate_job

pytestmark = [pytest.mark.spark, pytest.mark.slow]
HEAD = "version: 1\ntarget: {graph: library, branch: lake, from: main, mode: merge, merge_into: main}\n"
PEOPLE = """
sources:
  people: {format: csv, path: people.csv, options: {header: true}}
nodes:
  - {type: Person, from: people, map: {name: name, age: cast(age as int)}}
load: {message: "the import"}
quality:
"""


def people(rows: str) -> None:
    Path("people.csv").write_text(f"name,age\n{rows}\n")


def ages(stored: Any, branch: str = "main") -> dict[str, int | None]:
    return {row["name"]: row["age"] for row in stored("Person", branch)}


def test_a_run_is_merged_iff_its_rules_hold_and_nothing_conflicts(graph, job, spark, stored):
    rule = "  - {name: young, on: people, check: max(age) < 100, severity: warn}\n"
    file = job(PEOPLE, rule, head=HEAD)
    people("ana,31")
    done = run_job(file, graph, spark=spark, actor="act-ana")
    assert (done.merge.outcome, done.merge_error, ages(stored)) == ("fast_forward", None, {"ana": 31})
    merge = next(c for c in graph.list_commits() if c.kind == "merge")
    assert (merge.actor_id, merge.message) == ("act-ana", "the import")
    assert done.to_json()["merge"]["outcome"] == "fast_forward"

    people("ana,131")
    warned = run_job(file, graph, spark=spark)
    assert (warned.merge, warned.merge_error) == (None, None)
    assert "lake was not merged into main: not every quality rule holds" in warned.warnings
    assert (ages(stored), ages(stored, "lake")) == ({"ana": 31}, {"ana": 131})

    graph.mutate('query q() { update Person set { age: 32 } where name = "ana" }')
    people("ana,33")
    refused = run_job(file, graph, spark=spark)
    assert isinstance(refused.merge_error, og.MergeConflicts)
    assert refused.outcome == "committed"
    assert (ages(stored), ages(stored, "lake")) == ({"ana": 32}, {"ana": 33})
    assert refused.to_json()["merge_error"]["merge_conflicts"][0]["row_id"] == "ana"


def test_a_target_that_cannot_be_merged_into_is_refused_before_anything_is_read(graph, job, spark):
    for into, says in (("lake", "'lake' is the branch that is loaded"), ("nowhere", "branch 'nowhere' does not exist")):
        file = job(
            PEOPLE, "  - {name: any, on: people, check: true}\n", head=HEAD.replace("into: main", f"into: {into}")
        )
        people("ana,31")
        with pytest.raises(PipelineInvalid) as error:
            validate_job(file, graph, spark=spark)
        assert says in str(error.value)
