"""A pipeline run is one commit: every format, every mode, rules before rows, and a report whatever happens."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.pipeline.job.quality import QualityFailed
from omnigraph.pipeline.job.run import run_job
from omnigraph.pipeline.job.validate import Overrides

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_csv_transforms_mappings_and_rules_become_one_commit(graph, job, spark, stored):
    Path("raw").mkdir()
    Path("raw/a.csv").write_text("handle,age,team\nANA,31,core\nbo,,core\n,1,x\nana,31,core\n")
    Path("raw/b.csv").write_text('handle,age,team\n"cy, jr",7,web\n')
    file = job(
        """
        sources:
          people: {format: csv, path: raw/*.csv, options: {header: true}}
        transforms:
          members: |
            select distinct lower(handle) as name, cast(age as int) as age, team from people where handle is not null
        nodes:
          - {type: Person, from: members, map: {name: name, age: age}}
          - {type: Team, from: "select distinct team from members where team is not null", map: {code: team}}
        edges:
          - type: MemberOf
            from: members
            src: name
            dst: team
            where: team = 'core'
            map: {since: date'2024-02-29'}
        quality:
          - {name: enough, on: members, check: count(*) >= 3}
          - {name: old, on: members, check: max(age) > 40, severity: warn}
        load: {message: "the import"}
        report: out/run.html
        """
    )
    before = len(graph.list_commits())
    done = run_job(file, graph, spark=spark, actor="act-ana")
    assert stored("Person") == [
        {"age": 31, "born": None, "name": "ana", "score": None},
        {"age": 7, "born": None, "name": "cy, jr", "score": None},
        {"age": None, "born": None, "name": "bo", "score": None},
    ]
    assert stored("Team") == [{"code": "core"}, {"code": "web"}]
    assert stored("MemberOf") == [
        {"from": "ana", "to": "core", "since": "2024-02-29"},
        {"from": "bo", "to": "core", "since": "2024-02-29"},
    ]
    commits = graph.list_commits()[: len(graph.list_commits()) - before]
    loads = [commit for commit in commits if commit.kind == "load"]
    assert [(c.message, c.actor_id, c.graph_commit_id) for c in loads] == [("the import", "act-ana", done.load.commit)]
    assert {(c.type, c.rows) for c in done.counts} == {("Person", 3), ("Team", 2), ("MemberOf", 2)}
    assert [(rule.passed, rule.observed) for rule in done.rules] == [(True, 3), (False, 31)]
    assert done.warnings == ("quality rule 'old' does not hold on members: max(age) > 40 (found 31)",)
    assert "committed" in Path("out/run.html").read_text()


def test_parquet_orc_text_json_and_ndjson_load_together(folder, graph, job, spark, stored):
    spark.createDataFrame([("ana", 31, date(1990, 1, 2))], "name string, age int, born date").write.parquet(
        str(folder / "people")
    )
    spark.createDataFrame([("core",)], "code string").write.orc(str(folder / "teams.orc"))
    Path("notes.txt").write_text("first\nsecond\n")
    Path("links.json").write_text('{"who": "ana", "where": {"team": "core"}}\n')
    Path("more.jsonl").write_text(
        '{"type":"Person","data":{"name":"bo"}}\n{"edge":"MemberOf","from":"bo","to":"core"}\n'
    )
    file = job(
        """
        sources:
          people: {format: parquet, path: people}
          teams: {format: orc, path: teams.orc}
          notes: {format: text, path: notes.txt}
          links: {format: json, path: links.json}
          more: {format: ndjson, path: more.jsonl}
        nodes:
          - {type: Person, from: people, map: {name: name, age: age, born: born}}
          - {type: Team, from: teams, map: {code: code}}
          - {type: Note, from: notes, map: {text: value}}
        edges:
          - {type: MemberOf, from: links, src: who, dst: where.team}
        """
    )
    done = run_job(file, graph, spark=spark)
    assert [row["name"] for row in stored("Person")] == ["ana", "bo"]
    assert [row["born"] for row in stored("Person")] == ["1990-01-02", None]
    assert stored("Note") == [{"text": "first"}, {"text": "second"}]
    assert {(row["from"], row["to"]) for row in stored("MemberOf")} == {("ana", "core"), ("bo", "core")}
    assert done.load.total_entities == 7


def test_a_table_of_a_database_is_a_source(graph, job, spark, stored, tmp_path):
    spark.sparkContext._jvm.java.lang.System.setProperty("derby.stream.error.file", str(tmp_path / "derby.log"))
    driver = "org.apache.derby.iapi.jdbc.AutoloadedDriver"
    url = "jdbc:derby:memory:pipeline_people;create=true"
    made = spark.sql("select 'ana' as name, 31 as age union all select 'bo', null")
    made.write.format("jdbc").options(url=url, dbtable="people", driver=driver).save()
    file = job(
        f"""
        sources:
          people: {{format: jdbc, options: {{url: "{url}", dbtable: people, driver: {driver}}}}}
        nodes: [{{type: Person, from: people, map: {{name: name, age: age}}}}]
        """
    )
    run_job(file, graph, spark=spark)
    assert [(row["name"], row["age"]) for row in stored("Person")] == [("ana", 31), ("bo", None)]


def test_composite_keys_and_explicit_ids(graph, job, spark, stored):
    Path("seats.csv").write_text("name,floor,room\nana,3,west\nbo,1,east\n")
    file = job(
        """
        sources: {seats: {format: csv, path: seats.csv, options: {header: true, inferSchema: true}}}
        nodes:
          - {type: Person, from: seats, map: {name: name}}
          - {type: Desk, from: seats, map: {floor: floor, room: room}}
          - {type: Note, from: seats, map: {id: "concat('note-', name)", text: name}}
        edges: [{type: SitsAt, from: seats, src: name, dst: [floor, room]}]
        """
    )
    run_job(file, graph, spark=spark)
    assert stored("SitsAt") == [{"from": "ana", "to": '["3","west"]'}, {"from": "bo", "to": '["1","east"]'}]
    exported = [json.loads(line) for line in b"".join(graph.export(["Note"])).splitlines()]
    assert [row["data"]["id"] for row in exported] == ["note-ana", "note-bo"]


PEOPLE = """
sources: {people: {format: csv, path: people.csv, options: {header: true, inferSchema: true}}}
nodes: [{type: Person, from: people, map: {name: name, age: age}}]
"""


def test_a_rule_that_is_not_true_stops_the_job_before_anything_is_staged(graph, job, spark):
    Path("people.csv").write_text("name,age\nana,31\n")
    file = job(PEOPLE + "quality: [{name: enough, on: people, check: count(*) >= 2}]\nreport: run.json\n")
    before = {path: path.stat().st_mtime_ns for path in Path("library").rglob("*") if path.is_file()}
    with pytest.raises(QualityFailed) as raised:
        run_job(file, graph, Overrides(branch="trial", base="main"), spark=spark)
    assert str(raised.value) == "quality rule 'enough' does not hold on people: count(*) >= 2 (found 1)"
    assert {path: path.stat().st_mtime_ns for path in Path("library").rglob("*") if path.is_file()} == before
    assert graph.branch_list() == ["main"]
    told = json.loads(Path("run.json").read_text())
    assert (told["outcome"], told["code"]) == ("refused", "quality_failed")
    assert told["quality"][0]["passed"] is False


def test_a_rule_without_an_answer_does_not_hold(graph, job, spark):
    Path("people.csv").write_text("name,age\nana,31\n")
    with pytest.raises(QualityFailed, match="'none'"):
        run_job(
            job(PEOPLE + "quality: [{name: none, on: 'select * from people where false', check: max(age) < 9}]"), graph
        )


def test_a_bad_row_of_a_source_is_told_with_its_file_and_row(graph, job, spark):
    Path("people.csv").write_text("name,age\nana,31\n\nbo,3000000000\ncy,1\n")
    with pytest.raises(og.InvalidData) as raised:
        run_job(job(PEOPLE + "report: run.html"), graph, spark=spark)
    (found,) = raised.value.violations
    assert (found["file"], found["line"], found["type"], found["property"]) == ("people.csv", 3, "Person", "age")
    assert found["reason"] == "out_of_range"
    assert "exceeds I32 range" in Path("run.html").read_text()
    assert graph.snapshot().tables["node:Person"].row_count == 0


def test_a_bad_row_of_a_view_is_told_with_the_view(graph, job, spark):
    file = job(
        """
        transforms: {made: "select 'x' as name, cast(3000000000 as bigint) as age"}
        nodes: [{type: Person, from: made, map: {name: name, age: age}}]
        """
    )
    with pytest.raises(og.InvalidData) as raised:
        run_job(file, graph, spark=spark)
    assert raised.value.violations[0]["file"] == "made"


def test_bad_rows_may_be_set_aside(graph, job, spark, stored):
    Path("people.csv").write_text("name,age\nana,31\nbo,3000000000\n,5\n")
    done = run_job(job(PEOPLE + "load: {on_error: quarantine, rejects: out/bad.jsonl}"), graph, spark=spark)
    assert (done.load.rejected, done.load.rejects_file) == (2, "out/bad.jsonl")
    bad = [json.loads(line) for line in Path("out/bad.jsonl").read_text().splitlines()]
    assert [(row["file"], row["line"], row["reason"]) for row in bad] == [
        ("people.csv", 3, "out_of_range"),
        ("people.csv", 4, "missing_required"),
    ]
    assert [row["name"] for row in stored("Person")] == ["ana"]


def test_the_caller_wins_over_the_file(graph, job, spark, stored):
    Path("people.csv").write_text("name,age\nana,31\n")
    file = job(PEOPLE + "load: {message: from the file, index: false}")
    chosen = Overrides("trial", "main", "append", "from the caller", "mine.html")
    done = run_job(file, graph, chosen, spark=spark)
    assert (done.load.branch, done.load.branch_created, done.load.mode) == ("trial", True, "append")
    assert graph.get_commit(done.load.commit).message == "from the caller"
    assert done.load.index_commit is None
    assert Path("mine.html").exists()
    assert [row["name"] for row in stored("Person", "trial")] == ["ana"]
    with pytest.raises(og.KeyConflict, match="already has id 'ana'"):
        run_job(file, graph, chosen, spark=spark)


def test_a_view_that_several_read_is_computed_once(graph, job, spark, stored):
    file = job(
        """
        transforms: {made: "select uuid() as name from range(20)"}
        nodes:
          - {type: Person, from: made, map: {name: name}}
          - {type: Team, from: made, map: {code: name}}
        edges: [{type: MemberOf, from: made, src: name, dst: name}]
        quality: [{name: some, on: made, check: count(*) = 20}]
        """
    )
    run_job(file, graph, spark=spark)
    people = {row["name"] for row in stored("Person")}
    assert people == {row["code"] for row in stored("Team")} == {row["from"] for row in stored("MemberOf")}
    assert len(people) == 20


def test_a_report_that_cannot_be_written_is_a_warning_not_a_failure(graph, job, spark):
    Path("people.csv").write_text("name,age\nana,31\n")
    Path("file").write_text("")
    done = run_job(job(PEOPLE + "report: file/run.html"), graph, spark=spark)
    assert "the report could not be written to 'file/run.html'" in done.warnings[0]


def test_progress_is_told_by_stage_and_by_task(graph, job, spark):
    Path("people.csv").write_text("name,age\nana,31\n")
    stages: list[tuple[str, int]] = []
    tasks: list[tuple[int, int]] = []
    run_job(
        job(PEOPLE),
        graph,
        spark=spark,
        tell_stage=lambda name, rows: stages.append((name, rows)),
        tell_tasks=lambda done, total: tasks.append((done, total)),
    )
    names = list(dict.fromkeys(name for name, _ in stages))
    assert names[:3] == ["start Spark", "read sources", "number rows"]
    assert {"read", "check", "write"} <= set(names)
    assert tasks == sorted(tasks)
    assert 3 < tasks[-1][0] <= tasks[-1][1]
    assert spark.sparkContext.getLocalProperty("spark.jobGroup.id") is None


def test_a_source_that_changes_names_the_worker_error_in_one_line(graph, job, spark: Any):
    Path("people.csv").write_text("name,age\nana,31\n")
    file = job(
        """
        transforms: {made: "select raise_error('on purpose') as name"}
        nodes: [{type: Person, from: made, map: {name: "cast(name as string)"}}]
        """
    )
    with pytest.raises(og.OmniError) as raised:
        run_job(file, graph, spark=spark)
    assert "\n" not in str(raised.value)
    assert graph.snapshot().tables["node:Person"].row_count == 0
