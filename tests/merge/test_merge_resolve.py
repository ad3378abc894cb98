"""Conflicts decided one by one: files that are made, filled in, checked and refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from merge_scene import content, filled, mutate, new_graph, people, person, rows_of, write

import omnigraph as og

pytestmark = pytest.mark.slow


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    """Five rows that conflict, one that does not."""
    made = new_graph(tmp_path)
    people(made, None, *(person(name, a=1, b="b") for name in ("ana", "bo", "cy", "di")))
    made.branch_create("draft")
    people(made, "draft", person("ana", a=2, b="b"), person("bo", a=2, b="b"), person("ed", a=2), delete=("cy",))
    people(made, None, person("ana", a=3, b="c"), person("cy", a=3), person("ed", a=3), delete=("bo",))
    people(made, "draft", person("di", a=2))
    people(made, None, person("di", a=3))
    mutate(made, 'insert Person { name: "flo" }', "draft")
    return made


@pytest.fixture
def file(graph: og.Graph, tmp_path: Path) -> Path:
    path = tmp_path / "choices.json"
    told = graph.branch_merge("draft", dry_run=True, resolve=path)
    assert isinstance(told, og.MergePreview)
    assert (told.template, len(told.conflicts)) == (str(path), 5)
    return path


def refused(graph: og.Graph, kind: type[Exception], says: str, **more: Any) -> Any:
    before = content(graph)
    with pytest.raises(kind, match=says) as error:
        graph.branch_merge("draft", **more)
    assert content(graph) == before
    return error.value


def test_the_template_holds_every_conflict_with_all_three_sides(graph: og.Graph, file: Path) -> None:
    told = json.loads(file.read_text())
    assert told["source_commit_id"] == graph.head_commit_id_for_branch("draft")
    assert told["target_commit_id"] == graph.head_commit_id_for_branch("main")
    assert told["base_commit_id"] == graph.list_commits()[-2].graph_commit_id
    assert told["granularity"] == "row"
    kinds = {c["row_id"]: c["kind"] for c in told["choices"]}
    update, delete = "divergent_update", "delete_vs_update"
    assert kinds == {"ana": update, "bo": delete, "cy": delete, "di": update, "ed": "divergent_insert"}
    ana = told["choices"][0]
    nulls = {"mail": None, "tier": None, "name": "ana"}
    assert ana["base"] == {"properties": {"a": 1, "b": "b", **nulls}}
    assert ana["ours"] == {"properties": {"a": 3, "b": "c", **nulls}}
    assert ana["theirs"] == {"properties": {"a": 2, "b": "b", **nulls}}
    assert {c["choice"] for c in told["choices"]} == {None}
    assert told["choices"][1]["ours"] is None
    assert told["choices"][4]["base"] is None


def test_each_choice_does_what_it_says(graph: og.Graph, file: Path) -> None:
    row = {"properties": {"name": "ed", "a": 77, "b": "given"}}
    filled(file, {"ana": "theirs", "bo": "base", "cy": "ours", "di": "delete", "ed": row})
    told = graph.branch_merge("draft", dry_run=True, resolve=file)
    assert isinstance(told, og.MergePreview)
    assert (told.would_commit, len(told.resolved), told.conflicts) == (True, 5, ())
    done = graph.branch_merge("draft", resolve=file, actor="act-ana")
    assert isinstance(done, og.MergeResult)
    rows = rows_of(graph, "node:Person")
    assert {n: (r["a"], r["b"]) for n, r in rows.items()} == {
        "ana": (2, "b"),
        "bo": (1, "b"),
        "cy": (3, None),
        "ed": (77, "given"),
        "flo": (None, None),
    }
    commit = graph.get_commit(done.graph_commit_id or "")
    said = commit.metadata["omnigraph"]["merge"]
    assert said["granularity"] == "row"
    assert {c["row_id"]: c["choice"] for c in said["choices"]} == {
        "ana": "theirs",
        "bo": "base",
        "cy": "ours",
        "di": "delete",
        "ed": row,
    }
    assert commit.actor_id == "act-ana"


def test_a_given_row_that_the_target_has_already_is_no_change(graph: og.Graph, file: Path) -> None:
    given = {"properties": {"name": "ed", "a": 3}}
    filled(file, {**dict.fromkeys(("ana", "bo", "cy", "di"), "ours"), "ed": given})
    done = graph.branch_merge("draft", resolve=file)
    assert isinstance(done, og.MergeResult)
    assert done.tables == ({"table_key": "node:Person", "inserts": 1, "updates": 0, "deletes": 0},)


def test_a_conflict_without_a_choice_stays_one(graph: og.Graph, file: Path) -> None:
    filled(file, {"ana": "theirs"})
    error = refused(graph, og.MergeConflicts, "and 1 more", resolve=file)
    assert {c["row_id"] for c in error.merge_conflicts} == {"bo", "cy", "di", "ed"}
    done = graph.branch_merge("draft", resolve=file, strategy="ours")
    assert isinstance(done, og.MergeResult)
    rows = {n: r["a"] for n, r in rows_of(graph, "node:Person").items()}
    assert rows == {"ana": 2, "cy": 3, "di": 3, "ed": 3, "flo": None}
    said = graph.get_commit(done.graph_commit_id or "").metadata["omnigraph"]["merge"]
    assert said["strategy"] == "ours"
    assert {c["row_id"]: c["choice"] for c in said["choices"]}["ana"] == "theirs"


def test_a_file_for_other_heads_is_refused(graph: og.Graph, file: Path) -> None:
    filled(file, dict.fromkeys(("ana", "bo", "cy", "di", "ed"), "ours"))
    mutate(graph, 'insert City { name: "oslo" }')
    late = refused(graph, og.Conflict, "resolution file is for other heads", resolve=file)
    assert "moved" in late.hint
    refused(graph, og.Conflict, "resolution file is for other heads", resolve=file, dry_run=True)


def test_a_file_of_another_granularity_is_refused_with_the_option_that_fits(graph: og.Graph, file: Path) -> None:
    error = refused(graph, og.BadRequest, "made with --granularity row", resolve=file, granularity="property")
    assert "Add --granularity row" in error.hint


def test_a_dry_run_explains_no_more_conflicts_than_it_may_list(graph: og.Graph) -> None:
    told = graph.branch_merge("draft", dry_run=True, limit=2)
    assert isinstance(told, og.MergePreview)
    assert ([d["row_id"] for d in told.disputes], len(told.conflicts)) == (["ana", "bo"], 5)
    assert (told.disputes[1]["ours"], told.disputes[1]["theirs"]["properties"]["a"]) == (None, 2)


def test_a_choice_for_a_row_that_does_not_conflict_is_refused_by_name(graph: og.Graph, file: Path) -> None:
    told = json.loads(file.read_text())
    told["choices"].append({"table_key": "node:Person", "row_id": "flo", "choice": "ours"})
    file.write_text(json.dumps(told))
    refused(graph, og.BadRequest, "node:Person 'flo', which does not conflict", resolve=file)


def edited(file: Path, **members: Any) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), **members}))


@pytest.mark.parametrize(
    ("members", "says"),
    [
        ({"granularity": "property"}, "was made with --granularity property"),
        ({"choices": {}}, "'choices' is not a list"),
        ({"choices": [{"row_id": "ana", "choice": "ours"}]}, "choice 1 needs 'table_key' and 'row_id'"),
        ({"choices": [{"table_key": "node:Person", "row_id": "ana", "choice": "mine"}]}, "unknown choice 'mine'"),
        ({"choices": [{"table_key": "node:Person", "row_id": "ana", "pick": "ours"}]}, "unknown member 'pick'"),
        ({"choices": [{"table_key": "node:Person", "row_id": "ana", "choice": {"a": 1}}]}, "unknown member 'a'"),
        ({"choices": [{"table_key": "node:Person", "row_id": "ana", "choice": {}}]}, "'properties' is not an object"),
        ({"choices": [{"table_key": "node:Person", "row_id": "ana", "choice": "ours"}] * 2}, "is chosen twice"),
        ({"strategy": "ours"}, "unknown member 'strategy'"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_file_that_is_not_understood_is_refused(
    graph: og.Graph, file: Path, members: dict[str, Any], says: str
) -> None:
    edited(file, **members)
    refused(graph, og.BadRequest, says, resolve=file)


def test_no_file_and_no_json_are_told_apart(graph: og.Graph, tmp_path: Path) -> None:
    refused(graph, og.BadRequest, "there is no resolution file", resolve=tmp_path / "none.json")
    (tmp_path / "bad.json").write_text("{")
    refused(graph, og.BadRequest, "is not valid JSON", resolve=tmp_path / "bad.json")
    refused(graph, og.BadRequest, "cannot read", resolve=tmp_path)


@pytest.mark.parametrize(
    ("properties", "says"),
    [
        ({"name": "ed", "a": "old"}, "expects an integer"),
        ({"a": 4}, "non-nullable property 'name'"),
        ({"name": "ed", "colour": 1}, "colour"),
        ({"name": "eve", "a": 4}, "does not match @key"),
        ({"name": "ed", "tier": "lead"}, "invalid enum value 'lead'"),
    ],
    ids=["wrong type", "missing", "unknown", "another key", "enum"],
)
def test_a_given_row_is_checked_as_a_load_would(
    graph: og.Graph, file: Path, properties: dict[str, Any], says: str
) -> None:
    filled(file, {**dict.fromkeys(("ana", "bo", "cy", "di"), "ours"), "ed": {"properties": properties}})
    refused(graph, og.BadRequest, says, resolve=file)


def test_a_given_row_that_breaks_a_rule_is_a_conflict(graph: og.Graph, file: Path) -> None:
    ours = dict.fromkeys(("bo", "cy", "di"), "ours")
    given = {"ana": {"properties": {"name": "ana", "a": 5000}}, "ed": {"properties": {"name": "ed", "b": "N0"}}}
    filled(file, {**ours, **given})
    error = refused(graph, og.MergeConflicts, "value_constraint_violation", resolve=file, strategy="ours")
    assert "No strategy decides these" in error.hint
    assert [(c["row_id"], c["message"]) for c in error.merge_conflicts] == [
        ("ana", "@range violation on Person.a: value 5000 > max 1000"),
        ("ed", "@check violation on Person.b: value 'N0' does not match pattern '^[a-z]*$'"),
    ]


def test_by_property_a_choice_is_about_the_properties_in_dispute(graph: og.Graph, tmp_path: Path) -> None:
    path = tmp_path / "by_property.json"
    graph.branch_merge("draft", dry_run=True, resolve=path, granularity="property")
    told = {c["row_id"]: c for c in json.loads(path.read_text())["choices"]}
    assert told["ana"]["properties"] == ["a"]
    filled(path, {"ana": "base", **dict.fromkeys(("bo", "cy", "di", "ed"), "ours")})
    graph.branch_merge("draft", resolve=path, granularity="property")
    ana = rows_of(graph, "node:Person")["ana"]
    assert (ana["a"], ana["b"]) == (1, "c")


def test_an_edge_may_be_given_with_its_endpoints(tmp_path: Path) -> None:
    graph = new_graph(tmp_path)
    people(graph, None, *(person(name) for name in ("ana", "bo", "cy")))
    write(graph, None, "edge:Knows", [{"id": n, "src": "ana", "dst": "bo"} for n in ("e", "f", "g")])
    graph.branch_create("draft")
    moved = [{"id": n, "src": "cy", "dst": "bo", "w": 1} for n in ("e", "f")]
    write(graph, "draft", "edge:Knows", [*moved, {"id": "g", "src": "ana", "dst": "bo", "w": 1}])
    write(graph, None, "edge:Knows", [{"id": n, "src": "ana", "dst": "bo", "w": 2} for n in ("e", "f", "g")])
    path = tmp_path / "edges.json"
    graph.branch_merge("draft", dry_run=True, resolve=path)
    assert json.loads(path.read_text())["choices"][0]["theirs"]["endpoints"] == {"from": "cy", "to": "bo"}
    bare = {"properties": {"w": 9}}
    filled(path, {"e": bare, "f": "theirs", "g": bare})
    refused(graph, og.BadRequest, "needs 'endpoints'", resolve=path)
    filled(path, {"e": {**bare, "endpoints": {"from": "bo", "to": "cy"}}})
    graph.branch_merge("draft", resolve=path)
    rows = {n: (r["src"], r["dst"], r["w"]) for n, r in rows_of(graph, "edge:Knows").items()}
    assert rows == {"e": ("bo", "cy", 9), "f": ("cy", "bo", 1), "g": ("ana", "bo", 9)}


def test_an_existing_file_is_checked_and_never_replaced(graph: og.Graph, file: Path) -> None:
    before = file.read_bytes()
    told = graph.branch_merge("draft", dry_run=True, resolve=file)
    assert isinstance(told, og.MergePreview)
    assert (told.template, len(told.conflicts)) == (None, 5)
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"strategy": "mine"}, "unknown merge strategy 'mine'"),
        ({"granularity": "cell"}, "unknown granularity 'cell'"),
        ({"limit": -1}, "limit must not be negative"),
    ],
)
def test_unknown_options_are_refused(graph: og.Graph, more: dict[str, Any], says: str) -> None:
    refused(graph, og.BadRequest, says, **more)
