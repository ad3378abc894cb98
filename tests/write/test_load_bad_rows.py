"""What a load says about bad rows, and what quarantine does with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from write_scene import ON_SPARK, OnSpark, follows, lines_file, person, stored, team, town

from omnigraph.base.errors import BadRequest, Conflict, ExpectedVersionMismatch, InvalidData, KeyConflict
from omnigraph.engine.write import load as load_module
from omnigraph.graph import Graph
from omnigraph.settings import Settings

pytestmark = pytest.mark.slow

P, F = "node:Person", "edge:Follows"


@pytest.fixture(params=["in memory", "spilled", ON_SPARK])
def graph(request: pytest.FixtureRequest, tmp_path: Path) -> Graph:
    if request.param == "on spark":
        request.getfixturevalue("spark")
        return OnSpark.open(town(tmp_path).uri)
    return town(tmp_path, Settings.resolve(limits_memory_bytes=1 if request.param == "spilled" else None))


def rejected(path: str) -> list[tuple[int, str]]:
    """Line and reason of each rejected row, in the order of the file."""
    with open(path, encoding="utf-8") as file:
        return [(row["line"], row["reason"]) for row in map(json.loads, file)]


def test_the_first_failing_stage_of_the_whole_input_is_told_in_line_order(graph: Graph, tmp_path: Path) -> None:
    lines = [person("x", age="old"), person("y", email="a@x"), '{"type":', person("z", age=1, age2=2), person("w")]
    with pytest.raises(InvalidData) as error:
        graph.load(lines_file(tmp_path, "in.jsonl", *lines), mode="append")
    assert [(v["line"], v["reason"]) for v in error.value.violations] == [(3, "invalid_json"), (4, "unknown_field")]
    assert error.value.total == 2
    assert error.value.violations[0]["file"].endswith("in.jsonl")
    assert graph.list_commits()[0].kind == "load"
    assert len(stored(graph, P)) == 3


def test_many_bad_rows_are_all_counted_and_few_are_listed(graph: Graph, tmp_path: Path) -> None:
    lines = [person(f"p{n}", age=n) for n in range(100, 2500)]
    with pytest.raises(InvalidData) as error:
        graph.load(lines_file(tmp_path, "in.jsonl", *lines), mode="append", max_errors=4)
    assert error.value.total == 2500 - 151
    assert [v["line"] for v in error.value.violations] == [52, 53, 54, 55]
    assert error.value.violations[0]["message"] == "@range violation on Person.age: value 151 > max 150"


def test_ids_that_are_wrong_in_themselves_and_ids_that_are_taken_are_one_stage(graph: Graph, tmp_path: Path) -> None:
    lines = [person("di"), person("ana"), person("ed", id="eduard"), person("cy")]
    with pytest.raises(InvalidData) as error:
        graph.load(lines_file(tmp_path, "in.jsonl", *lines), mode="append")
    assert [(v["line"], v["reason"]) for v in error.value.violations] == [
        (2, "key_conflict"),
        (3, "key_mismatch"),
        (4, "key_conflict"),
    ]


def test_several_files_are_ordered_as_given(graph: Graph, tmp_path: Path) -> None:
    first = lines_file(tmp_path, "z.jsonl", person("di", email="a@x"))
    second = lines_file(tmp_path, "a.jsonl", person("ed", email="b@x"))
    with pytest.raises(InvalidData) as error:
        graph.load([first, second], mode="merge")
    assert [Path(v["file"]).name for v in error.value.violations] == ["z.jsonl", "a.jsonl"]


def test_quarantine_loads_the_good_rows_and_tells_about_every_other(graph: Graph, tmp_path: Path) -> None:
    lines = [
        person("di", email="a@x"),  # 1 taken by ana
        person("ed", age=999),  # 2 out of range
        '{"type":"Person"',  # 3 no JSON
        person("flo"),  # 4
        follows("di", "bo"),  # 5 its source was rejected
        follows("flo", "ana", id="good"),  # 6
        person("gil", age="old"),  # 7 wrong type
        follows("flo", "gil"),  # 8 its target was rejected
        person("hal", email="h@x"),  # 9 both hold one address
        person("ida", email="h@x"),  # 10
    ]
    path = lines_file(tmp_path, "in.jsonl", *lines)
    done = graph.load(path, mode="merge", on_error="quarantine")
    assert done.rejects_file == f"{path}.rejects.jsonl"
    assert rejected(done.rejects_file) == [
        (1, "unique_violation"),
        (2, "range_violation"),
        (3, "invalid_json"),
        (5, "endpoint_rejected"),
        (7, "wrong_type"),
        (8, "endpoint_rejected"),
        (9, "unique_violation"),
        (10, "unique_violation"),
    ]
    assert (done.rejected, done.total_entities) == (8, 2)
    assert [row for row in stored(graph, P) if row not in {("ana",), ("bo",), ("cy",)}] == [("flo",)]
    assert ("good", "flo", "ana") in stored(graph, F, "id", "src", "dst")


def test_a_rejected_row_is_kept_as_it_was_written(graph: Graph, tmp_path: Path) -> None:
    written = '{"type":"Person",  "data":{"name":"ed","age":999}}'
    path = lines_file(tmp_path, "in.jsonl", person("di"), written, follows("ed", "bo"))
    done = graph.load(path, mode="append", on_error="quarantine", rejects=str(tmp_path / "bad.jsonl"))
    with open(str(done.rejects_file), encoding="utf-8") as file:
        first, second = map(json.loads, file)
    assert first == {
        "file": path,
        "line": 2,
        "type": "Person",
        "property": "age",
        "reason": "range_violation",
        "message": "@range violation on Person.age: value 999 > max 150",
        "raw": written,
    }
    assert (second["reason"], second["property"]) == ("endpoint_rejected", "src")
    assert "line 2" in second["message"]


def test_all_rows_of_a_duplicate_are_rejected_together(graph: Graph, tmp_path: Path) -> None:
    lines = [person("di", age=1), person("ed"), person("di", age=2), follows("ana", "bo", id="e"), team("t1")]
    path = lines_file(tmp_path, "in.jsonl", *lines, follows("bo", "ana", id="e"))
    done = graph.load(path, mode="append", on_error="quarantine")
    assert rejected(str(done.rejects_file)) == [
        (1, "unique_violation"),
        (3, "unique_violation"),
        (4, "duplicate_id"),
        (6, "duplicate_id"),
    ]
    assert done.total_entities == 2


def test_a_stored_id_is_rejected_in_append(graph: Graph, tmp_path: Path) -> None:
    done = graph.load(
        lines_file(tmp_path, "in.jsonl", person("ana", age=9), person("di")), mode="append", on_error="quarantine"
    )
    assert rejected(str(done.rejects_file)) == [(1, "key_conflict")]
    assert ("ana", None) in stored(graph, P, "id", "age")


def test_an_edge_to_a_rejected_node_that_is_stored_loads(graph: Graph, tmp_path: Path) -> None:
    lines = [person("ana", age=999), follows("bo", "ana", id="ok")]
    done = graph.load(lines_file(tmp_path, "in.jsonl", *lines), mode="merge", on_error="quarantine")
    assert rejected(str(done.rejects_file)) == [(1, "range_violation")]
    assert ("ok",) in stored(graph, F)


def test_a_value_is_not_freed_by_a_row_that_is_left_out(graph: Graph, tmp_path: Path) -> None:
    """ana would give up her address for one that bo holds; she stays, so di may not take it."""
    lines = [person("ana", email="b@x"), person("di", email="a@x"), person("ed", email="e@x")]
    done = graph.load(lines_file(tmp_path, "in.jsonl", *lines), mode="merge", on_error="quarantine")
    assert rejected(str(done.rejects_file)) == [(1, "unique_violation"), (2, "unique_violation")]
    assert stored(graph, P, "id", "email") == [("ana", "a@x"), ("bo", "b@x"), ("cy", None), ("ed", "e@x")]


def test_an_endpoint_nobody_supplied_still_fails_the_load(graph: Graph, tmp_path: Path) -> None:
    path = lines_file(tmp_path, "in.jsonl", person("di", age=999), follows("di", "ana"), follows("ana", "nobody"))
    with pytest.raises(InvalidData) as error:
        graph.load(path, mode="merge", on_error="quarantine")
    assert [(v["line"], v["reason"]) for v in error.value.violations] == [(3, "dst_not_found")]
    assert list(tmp_path.glob("*rejects*")) == []


def test_a_dropped_duplicate_does_not_come_back_when_its_winner_is_rejected(graph: Graph, tmp_path: Path) -> None:
    path = lines_file(tmp_path, "in.jsonl", person("di", age=1), person("di", age=999))
    done = graph.load(path, mode="merge", on_error="quarantine")
    assert (done.duplicates_merged, done.rejected, done.total_entities) == (1, 1, 0)
    assert ("di",) not in stored(graph, P)


def test_when_all_rows_of_a_type_are_bad_an_overwrite_leaves_the_type_alone(graph: Graph, tmp_path: Path) -> None:
    path = lines_file(tmp_path, "in.jsonl", follows("ana", "bo", weight="much"), team("core"), team("web"))
    graph.load(path, mode="overwrite", on_error="quarantine")
    assert stored(graph, F) == [("f1",)]


def test_without_bad_rows_there_is_no_rejects_file(graph: Graph, tmp_path: Path) -> None:
    done = graph.load(lines_file(tmp_path, "in.jsonl", person("di")), mode="append", on_error="quarantine")
    assert done.rejects_file is None
    assert "rejects_file" not in done.to_json()
    assert list(tmp_path.glob("*rejects*")) == []


def test_a_rejects_file_never_replaces_another(graph: Graph, tmp_path: Path) -> None:
    path = lines_file(tmp_path, "in.jsonl", person("di", age=999))
    kept = tmp_path / "in.jsonl.rejects.jsonl"
    kept.write_text("precious")
    with pytest.raises(BadRequest, match="exists already"):
        graph.load(path, mode="append", on_error="quarantine")
    assert kept.read_text() == "precious"


def test_a_rejects_file_that_appears_meanwhile_is_kept_and_ours_is_named(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, other = lines_file(tmp_path, "in.jsonl", person("di", age=999)), tmp_path / "in.jsonl.rejects.jsonl"
    commit = load_module.commit_with_retries

    def slow(*args: Any, **options: Any) -> Any:
        other.write_text("precious")
        return commit(*args, **options)

    monkeypatch.setattr(load_module, "commit_with_retries", slow)
    done = graph.load(path, mode="append", on_error="quarantine")
    assert other.read_text() == "precious"
    assert rejected(str(done.rejects_file)) == [(1, "range_violation")]
    assert "appeared meanwhile" in done.warnings[0]


def test_a_load_that_fails_to_commit_leaves_no_rejects_file(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = lines_file(tmp_path, "in.jsonl", person("di", age=999), person("ed"))

    def loses(_ctx: Any, open_view: Any, prepare: Any, **_: Any) -> None:
        prepare(load_module.Attempt(graph.context, open_view()))
        raise ExpectedVersionMismatch(table_key=P, expected=1, actual=2)

    monkeypatch.setattr(load_module, "commit_with_retries", loses)
    with pytest.raises(Conflict):
        graph.load(path, mode="append", on_error="quarantine")
    assert [p.name for p in tmp_path.iterdir() if "rejects" in p.name] == []


def test_a_rejects_folder_that_is_not_there_is_a_plain_error(graph: Graph, tmp_path: Path) -> None:
    path = lines_file(tmp_path, "in.jsonl", person("di", age=999))
    with pytest.raises(Exception, match="cannot be written"):
        graph.load(path, mode="append", on_error="quarantine", rejects=str(tmp_path / "no" / "where.jsonl"))


def test_a_taken_id_is_a_conflict_that_names_it(graph: Graph, tmp_path: Path) -> None:
    with pytest.raises(KeyConflict) as error:
        graph.load(lines_file(tmp_path, "in.jsonl", person("ana"), person("bo"), person("di")), mode="append")
    assert (error.value.table_key, error.value.ids, error.value.count) == (P, ("ana", "bo"), 2)
