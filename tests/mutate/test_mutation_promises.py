"""One query is one commit: what the examples of the documentation promise, and what is written when nothing may be."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from mutate_scene import edges, people, rows, run

import omnigraph as og
from omnigraph.engine.write.matching import Where
from omnigraph.plan.check import compile_query
from omnigraph.plan.operands import Values
from omnigraph.plan.typed import DeleteRows, MutationQuery
from omnigraph.settings import Settings
from omnigraph.storage.tables import newest_number

EXAMPLES = """
node Person { name: String @key  age: I32?  tier: enum(free, paid)? }
node Team   { code: String @key  size: I32? }
edge Follows:  Person -> Person { weight: F64? }
edge MemberOf: Person -> Team @card(0..1)
"""
FILL = """query fill() {
  insert Person { name: "ana", age: 31 }  insert Person { name: "bo" }  insert Team { code: "core" }
  insert Follows { from: "ana", to: "bo", weight: 0.5 }  insert MemberOf { from: "ana", to: "core" }
}"""
HIRE = """query hire($n: String, $t: String) {
  insert Person { name: $n, age: null }
  insert MemberOf { from: $n, to: $t }
}"""


@pytest.fixture
def example(tmp_path: Path) -> og.Graph:
    made = og.Graph.init(str(tmp_path / "example"), EXAMPLES)
    made.mutate(FILL)
    return made


def versions(graph: og.Graph) -> dict[str, tuple[int, int]]:
    """What the manifest shows of every table, and how far the table itself got."""
    entries = graph.snapshot().tables.items()
    return {k: (e.table_version, newest_number(graph.context.ref(e.location, e.table_branch))) for k, e in entries}


def test_a_second_edge_beyond_the_maximum_is_refused_in_the_words_of_the_documentation(example: og.Graph) -> None:
    before = versions(example)
    with pytest.raises(og.InvalidData) as refused:
        run(example, 'insert MemberOf { from: "ana", to: "core" }')
    assert str(refused.value) == "@card violation on edge MemberOf: source 'ana' has 2 edges (max 1)"
    assert versions(example) == before


def test_deleting_ana_takes_her_two_edges_in_one_commit(example: og.Graph) -> None:
    count = len(example.list_commits())
    result = run(example, 'delete Person where name = "ana"')
    assert (result.affected_nodes, result.affected_edges) == (1, 2)
    assert len(example.list_commits()) == count + 1


def test_an_update_that_matches_nobody_is_not_even_checked_for_its_range(example: og.Graph) -> None:
    result = run(example, 'update Person set { age: -1 } where name = "zoe"')
    assert (result.affected_nodes, result.commit) == (0, None)


def test_an_edge_is_updated_by_its_ends_and_its_ends_never_move(example: og.Graph) -> None:
    result = run(example, 'update Follows set { weight: 0.9 } where from = "ana" and to = "bo"')
    assert result.affected_edges == 1
    for end in ("to", "from", "id"):
        with pytest.raises(og.OmniError, match="type error: T16: "):
            run(example, f'update Follows set {{ {end}: "core" }} where from = "ana"')
    with pytest.raises(og.OmniError, match="type error: T16: "):
        run(example, 'update Person set { id: "zoe" } where name = "ana"')


def test_a_node_and_an_edge_to_it_are_hired_together(example: og.Graph) -> None:
    result = example.mutate_as("act-ana", HIRE, {"n": "cy", "t": "core"}, message="welcome", metadata={"x": [1]})
    assert result.to_json() == {
        "branch": "main",
        "query_name": "hire",
        "affected_nodes": 1,
        "affected_edges": 1,
        "actor_id": "act-ana",
        "operation_id": result.operation_id,
        "commit": example.head_commit_id_for_branch(),
    }
    assert ("cy", "core") in edges(example, "MemberOf")


def test_a_failure_in_the_last_statement_writes_nothing_of_the_first(example: og.Graph) -> None:
    before, head = versions(example), example.head_commit_id_for_branch()
    body = """
      insert Person { name: "cy" }  update Person set { age: 5 } where name = "bo"
      insert Follows { from: "cy", to: "nobody" }
    """
    with pytest.raises(og.InvalidData, match="dst 'nobody' not found in Person"):
        run(example, body)
    assert (versions(example), example.head_commit_id_for_branch()) == (before, head)
    assert run(example, 'insert Person { name: "cy" }').commit is not None


def test_many_statements_move_each_touched_table_by_exactly_one_version(example: og.Graph) -> None:
    before, graph_version = versions(example), example.snapshot().version
    body = """
      insert Person { name: "cy" }  insert Person { name: "di" }  insert Person { name: "cy", age: 9 }
      update Person set { age: 5 } where name = "bo"  insert Follows { from: "cy", to: "di" }
      update Follows set { weight: 2 } where from = "ana"
    """
    run(example, body)
    after = versions(example)
    moved = {key: tuple(b - a for a, b in zip(before[key], after[key], strict=True)) for key in before}
    assert moved == {"node:Person": (1, 1), "edge:Follows": (1, 1), "node:Team": (0, 0), "edge:MemberOf": (0, 0)}
    assert example.snapshot().version == graph_version + 1


@pytest.mark.parametrize(
    "body",
    [
        'insert Person { name: "x" } delete Person where name = "ana"',
        'delete Follows where from = "ana" update Person set { age: 1 } where name = "ana"',
        'insert Follows { from: "ana", to: "bo" } delete Team where code = "core"',
    ],
)
def test_a_mix_of_writing_and_deleting_is_refused_before_anything_is_read(example: og.Graph, body: str) -> None:
    shutil.rmtree(example.uri.removeprefix("file://"))
    with pytest.raises(og.BadRequest, match="D2") as refused:
        run(example, body)
    assert "split" in f"{refused.value} {refused.value.hint}".lower()


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ("insert Person { age: 1 }", "name"),
        ("insert Note { text: null }", "text"),
        ('update Note set { text: null } where text = "a"', "text"),
    ],
)
def test_a_required_property_can_be_neither_left_out_nor_cleared(graph: og.Graph, body: str, name: str) -> None:
    run(graph, 'insert Note { text: "a" }')
    with pytest.raises(og.OmniError, match=name):
        run(graph, body)
    assert [row["text"] for row in rows(graph, "node:Note")] == ["a"]


def test_no_member_of_a_composite_key_can_be_updated(tmp_path: Path) -> None:
    graph = og.Graph.init(str(tmp_path / "g"), "node Team { code: I32 region: String size: I32? @key(code, region) }")
    run(graph, 'insert Team { code: 7, region: "eu" }')
    assert [row["id"] for row in rows(graph, "node:Team")] == ['["7","eu"]']
    for name, value in (("code", "8"), ("region", '"us"')):
        with pytest.raises(og.OmniError, match=f"cannot update @key property '{name}'"):
            run(graph, f"update Team set {{ {name}: {value} }} where code = 7")
    assert run(graph, 'update Team set { size: 3 } where id = "[\\"7\\",\\"eu\\"]"').affected_nodes == 1


def test_a_loop_goes_once_with_its_node(graph: og.Graph) -> None:
    run(graph, 'insert Follows { from: "bo", to: "bo" }')
    result = run(graph, 'delete Person where name = "bo"')
    assert (result.affected_nodes, result.affected_edges) == (1, 2)
    assert edges(graph, "Follows") == []


def test_inserting_the_same_row_again_changes_nothing_a_reader_sees(graph: og.Graph) -> None:
    before = people(graph)
    result = run(graph, 'insert Person { name: "bo" }')
    assert (result.affected_nodes, people(graph)) == (1, before)


def test_a_mutation_that_would_change_nothing_still_demands_its_head(graph: og.Graph) -> None:
    with pytest.raises(og.PreconditionFailed) as refused:
        run(graph, 'delete Person where name = "zoe"', if_commit="01HZZZZZZZZZZZZZZZZZZZZZZZ")
    assert refused.value.actual == graph.head_commit_id_for_branch()


def test_an_actor_of_the_system_cannot_be_posed_as(graph: og.Graph) -> None:
    head = graph.head_commit_id_for_branch()
    with pytest.raises(og.BadRequest, match="cannot be an actor"):
        graph.mutate_as("omnigraph:recovery", 'query q() { insert Person { name: "x" } }')
    with pytest.raises(og.BadRequest, match="omnigraph"):
        run(graph, 'insert Person { name: "x" }', metadata={"omnigraph": 1})
    assert graph.head_commit_id_for_branch() == head


def test_there_is_no_ceiling_on_the_rows_of_one_statement(tmp_path: Path) -> None:
    """Twenty thousand matches with next to no memory, in batches."""
    graph = og.Graph.init(str(tmp_path / "g"), EXAMPLES, settings=Settings.resolve(limits_memory_bytes=1))
    lines = "".join(f'{{"type":"Person","data":{{"name":"p{n}","age":{n % 100}}}}}\n' for n in range(20_000))
    (tmp_path / "in.jsonl").write_text(lines, encoding="ascii")
    graph.load(tmp_path / "in.jsonl", mode="append")
    count = len(graph.list_commits())
    assert run(graph, 'update Person set { tier: "paid" } where age >= 0').affected_nodes == 20_000
    assert run(graph, 'delete Person where tier = "paid" and age < 50').affected_nodes == 10_000
    assert len(graph.list_commits()) == count + 2
    assert graph.snapshot().tables["node:Person"].row_count == 10_000


@pytest.mark.parametrize(
    ("table", "column"), [("Person", "id"), ("Follows", "id"), ("Follows", "src"), ("Follows", "dst")]
)
def test_ids_and_ends_are_answered_from_their_index(example: og.Graph, table: str, column: str) -> None:
    example.ensure_indices()
    spelt = {"src": "from", "dst": "to"}.get(column, column)
    query = compile_query(example.catalog, f'query q() {{ delete {table} where {spelt} = "ana" }}')
    assert isinstance(query, MutationQuery)
    statement = query.changes[0]
    assert isinstance(statement, DeleteRows)
    where: Any = Where(statement.where, Values({}, 0)).filter_text()
    dataset = example.view().table(statement.table.table_key).dataset
    assert f"{column}_btree_idx" in dataset.scanner(["id"], where).explain_plan()
