"""The rules of a load that lie between the stages: which is told, what takes part, what is left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from write_scene import SCHEMA, follows, lines_file, person, stored, team, town

from omnigraph.base.errors import BadRequest, InvalidData
from omnigraph.graph import Graph
from omnigraph.storage.tables import open_newest

pytestmark = pytest.mark.slow

P, F, N = "node:Person", "edge:Follows", "node:Note"


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return town(tmp_path)


def note(id_: str, **data: Any) -> dict[str, Any]:
    return {"type": "Note", "data": {"id": id_, "text": "…", **data}}


def member(src: str, dst: str) -> dict[str, Any]:
    return {"edge": "MemberOf", "from": src, "to": dst}


# One broken line for each stage from 2 to 8.
BROKEN: list[tuple[str, str | dict[str, Any]]] = [
    ("invalid_json", '{"type":'),
    ("wrong_type", person("w", age="old")),
    ("key_mismatch", person("k", id="other")),
    ("range_violation", person("r", age=151)),
    ("unique_violation", person("u", email="a@x")),
    ("dst_not_found", follows("ana", "nobody")),
    ("card_violation", member("bo", "web")),
]


@pytest.mark.parametrize("first", range(len(BROKEN)), ids=[reason for reason, _ in BROKEN])
def test_the_first_stage_with_a_violation_stops_the_load(graph: Graph, tmp_path: Path, first: int) -> None:
    head = graph.head_commit_id_for_branch()
    lines = [line for _, line in reversed(BROKEN[first:])]
    with pytest.raises(InvalidData) as error:
        graph.load(lines_file(tmp_path, "in.jsonl", person("good"), *lines), mode="merge")
    assert [(v["reason"], v["line"]) for v in error.value.violations] == [(BROKEN[first][0], len(lines) + 1)]
    assert error.value.total == 1
    assert graph.head_commit_id_for_branch() == head


def test_a_bad_target_is_told_before_any_line_is_read(graph: Graph, tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="does not allow internal system ref"):
        graph.load(lines_file(tmp_path, "in.jsonl", "no JSON"), mode="append", branch="__schema_apply_lock__")


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_repeated_id_is_a_violation_where_rows_are_not_merged(tmp_path: Path, mode: Any) -> None:
    graph = Graph.init(str(tmp_path / "g"), SCHEMA)
    keyed = lines_file(tmp_path, "k.jsonl", person("di", age=1), person("di", age=2))
    with pytest.raises(InvalidData) as error:
        graph.load(keyed, mode=mode)
    assert [(v["line"], v["reason"]) for v in error.value.violations] == [
        (1, "unique_violation"),
        (2, "unique_violation"),
    ]
    assert "@unique violation on Person.name: value 'di' held by 'di' and 'di'" in str(error.value)
    loose = lines_file(tmp_path, "n.jsonl", note("n1"), person("a"), note("n1"))
    with pytest.raises(InvalidData) as error:
        graph.load(loose, mode=mode)
    assert [(v["line"], v["reason"]) for v in error.value.violations] == [(1, "duplicate_id"), (3, "duplicate_id")]


def test_in_a_merge_the_last_note_without_a_key_wins_too(graph: Graph, tmp_path: Path) -> None:
    lines = [note("n1", slug="first"), note("n1", slug="second"), note("n2"), note("n1", slug="last")]
    done = graph.load(lines_file(tmp_path, "in.jsonl", *lines), mode="merge")
    assert (done.duplicates_merged, stored(graph, N, "id", "slug")) == (2, [("n1", "last"), ("n2", None)])


def test_a_dropped_duplicate_is_not_checked_for_its_values(graph: Graph, tmp_path: Path) -> None:
    lines = [person("di", age=999, email="a@x"), person("di", age=3)]
    done = graph.load(lines_file(tmp_path, "in.jsonl", *lines), mode="merge")
    assert (done.duplicates_merged, ("di", 3) in stored(graph, P, "id", "age")) == (1, True)


def test_a_record_that_could_not_be_read_supersedes_nobody(graph: Graph, tmp_path: Path) -> None:
    lines = [person("di", age=7), person("di", age="old"), person("di", agee=1)]
    done = graph.load(lines_file(tmp_path, "in.jsonl", *lines), mode="merge", on_error="quarantine")
    assert (done.duplicates_merged, done.rejected) == (0, 2)
    assert ("di", 7) in stored(graph, P, "id", "age")


def test_a_line_that_is_no_json_has_no_id_so_an_edge_to_it_fails_the_load(graph: Graph, tmp_path: Path) -> None:
    path = lines_file(tmp_path, "in.jsonl", '{"type":"Person","data":{"name":"di"}', follows("di", "ana"))
    with pytest.raises(InvalidData) as error:
        graph.load(path, mode="merge", on_error="quarantine")
    assert [(v["line"], v["reason"]) for v in error.value.violations] == [(2, "src_not_found")]


def test_the_id_is_known_of_a_record_with_an_unknown_field_and_of_one_without_a_required_one(
    graph: Graph, tmp_path: Path
) -> None:
    lines = [person("di", agee=1), follows("di", "ana"), {"type": "Person", "data": {"age": 1}}, team("t")]
    done = graph.load(lines_file(tmp_path, "in.jsonl", *lines), mode="merge", on_error="quarantine")
    told = [json.loads(line) for line in Path(str(done.rejects_file)).read_text(encoding="utf-8").splitlines()]
    assert [(t["line"], t["reason"]) for t in told] == [
        (1, "unknown_field"),
        (2, "endpoint_rejected"),
        (3, "missing_required"),
    ]


def test_an_edge_to_a_rejected_node_of_another_file_says_which_file(graph: Graph, tmp_path: Path) -> None:
    nodes = lines_file(tmp_path, "nodes.jsonl", team("t"), person("di", age=999))
    edges = lines_file(tmp_path, "edges.jsonl", follows("di", "ana"), person("ed", age=999), follows("ana", "ed"))
    done = graph.load([nodes, edges], mode="merge", on_error="quarantine")
    told = [json.loads(line) for line in Path(str(done.rejects_file)).read_text(encoding="utf-8").splitlines()]
    messages = [(Path(t["file"]).name, t["line"], t["message"]) for t in told if t["reason"] == "endpoint_rejected"]
    assert messages == [
        ("edges.jsonl", 1, f"src 'di' is Person of line 2 of {nodes}, which was rejected"),
        ("edges.jsonl", 3, "dst 'ed' is Person of line 2, which was rejected"),
    ]


def test_too_many_edges_fail_a_load_that_sets_bad_rows_aside(graph: Graph, tmp_path: Path) -> None:
    path = lines_file(tmp_path, "in.jsonl", person("di", age=999), member("bo", "web"))
    head = graph.head_commit_id_for_branch()
    with pytest.raises(InvalidData, match=r"@card violation on edge MemberOf: source 'bo' has 2 edges \(max 1\)"):
        graph.load(path, mode="append", on_error="quarantine")
    assert (graph.head_commit_id_for_branch(), list(tmp_path.glob("*rejects*"))) == (head, [])


def test_an_edge_beyond_the_maximum_is_no_violation_if_its_source_row_was_rejected(
    graph: Graph, tmp_path: Path
) -> None:
    """bo's second edge names a node that was rejected; without it his one stored edge is left."""
    lines = [team("gone") | {"extra": 1}, member("bo", "gone")]
    done = graph.load(lines_file(tmp_path, "in.jsonl", *lines), mode="append", on_error="quarantine")
    assert (done.rejected, len(stored(graph, "edge:MemberOf"))) == (2, 1)


def test_a_folder_gives_its_name_to_the_rejects_file(graph: Graph, tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    lines_file(folder, "a.jsonl", person("di"))
    bad = lines_file(folder, "b.jsonl", person("ed"), person("flo", age=999))
    done = graph.load(f"{folder}/", mode="append", on_error="quarantine")
    assert done.rejects_file == f"{folder}.rejects.jsonl"
    told = json.loads(Path(done.rejects_file).read_text(encoding="utf-8"))
    assert (told["file"], told["line"]) == (bad, 2)


def test_violations_are_listed_by_file_then_line_then_property(graph: Graph, tmp_path: Path) -> None:
    first = lines_file(tmp_path, "z.jsonl", person("a", email=1, age="x"), person("b", age=1.5))
    second = lines_file(tmp_path, "a.jsonl", person("c", age=True))
    with pytest.raises(InvalidData) as error:
        graph.load([first, second], mode="append")
    told = [(Path(v["file"]).name, v["line"], v["property"]) for v in error.value.violations]
    assert told == [("z.jsonl", 1, "age"), ("z.jsonl", 1, "email"), ("z.jsonl", 2, "age"), ("a.jsonl", 1, "age")]
    assert error.value.total == 4


def test_a_vector_to_be_embedded_is_never_computed_by_a_load(tmp_path: Path) -> None:
    graph = Graph.init(str(tmp_path / "g"), "node Doc { title: String @key  v: Vector(3)? @embed(title) }")
    given = {"type": "Doc", "data": {"title": "b", "v": [1, 2, 3]}}
    graph.load(lines_file(tmp_path, "in.jsonl", {"type": "Doc", "data": {"title": "a"}}, given), mode="append")
    assert stored(graph, "node:Doc", "title", "v") == [("a", None), ("b", [1.0, 2.0, 3.0])]
    strict = Graph.init(str(tmp_path / "s"), "node Doc { title: String @key  v: Vector(3) @embed(title) }")
    with pytest.raises(InvalidData, match="non-nullable property 'v' has null or missing value"):
        strict.load(lines_file(tmp_path, "2.jsonl", {"type": "Doc", "data": {"title": "a"}}), mode="append")


def test_edges_are_named_in_any_case_and_nodes_exactly(graph: Graph, tmp_path: Path) -> None:
    spelt = {"edge": "FOLLOWS", "from": "ana", "to": "cy", "data": {"id": "f2"}}
    graph.load(lines_file(tmp_path, "in.jsonl", spelt), mode="append")
    assert ("f2",) in stored(graph, F)
    with pytest.raises(InvalidData, match="unknown node type 'person'; did you mean 'Person'"):
        graph.load(lines_file(tmp_path, "2.jsonl", {"type": "person", "data": {"name": "x"}}), mode="append")


def test_a_load_never_indexes_what_a_mutation_left_unindexed_unless_asked(graph: Graph, tmp_path: Path) -> None:
    graph.mutate('query q() { insert Person { name: "di" } }')
    assert graph.view().table(P).index_states() == {}
    graph.load(lines_file(tmp_path, "in.jsonl", person("ed")), mode="append", index=False)
    assert graph.view().table(P).index_states() == {}
    graph.load(lines_file(tmp_path, "2.jsonl", person("flo")), mode="append")
    assert set(graph.view().table(P).index_states()) == {"id_btree_idx", "email_btree_idx"}


def test_the_manifest_is_never_indexed(graph: Graph, tmp_path: Path) -> None:
    graph.load(lines_file(tmp_path, "in.jsonl", person("di")), mode="append")
    graph.ensure_indices()
    assert open_newest(graph.context.manifest.ref()).index_states() == {}
