"""Each rule across rows, on a town of a few people; the same whether rows are looked up, scanned or spilled."""

from __future__ import annotations

import pyarrow as pa
import pytest
from write_scene import change, edges, findings, notes, people, problems, teams, town

from omnigraph.graph import Graph
from omnigraph.settings import Settings

pytestmark = pytest.mark.slow

P, T, N, F, M, L = "node:Person", "node:Team", "node:Note", "edge:Follows", "edge:MemberOf", "edge:Leads"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> str:
    return town(tmp_path_factory.mktemp("town")).uri


@pytest.fixture
def graph(place: str, way: Settings) -> Graph:
    return Graph.open(place, settings=way)


def test_a_strict_insert_of_a_stored_id_is_a_key_conflict(graph: Graph) -> None:
    told = problems(graph, change(graph.view(), P, people({"di": None, "ana": None}), strict_insert=True))
    assert told == ["2 key_conflict: Person already has id 'ana'"]


def test_every_row_of_a_repeated_id_is_a_violation(graph: Graph) -> None:
    rows = notes(("n1", None, None), ("n2", None, None), ("n1", None, None))
    told = problems(graph, change(graph.view(), N, rows, strict_insert=True))
    message = "duplicate_id: id 'n1' occurs 2 times in the input"
    assert told == [f"1 {message}", f"3 {message}"]


def test_a_repeated_key_is_a_unique_violation_of_the_key(graph: Graph) -> None:
    rows = pa.concat_tables([people({"di": "d@x"}), people({"di": "e@x"})])
    message = "unique_violation: @unique violation on Person.name: value 'di' held by 'di' and 'di'"
    emptied = [change(graph.view(), key, replaces_all=True) for key in (F, M, L)]
    for how in ("strict_insert", "replaces_all"):
        told = problems(graph, change(graph.view(), P, rows, **{how: True}), *emptied)
        assert told == [f"1 {message}", f"2 {message}"]


def test_in_a_merge_the_last_record_of_an_id_wins_and_the_others_are_not_checked(graph: Graph) -> None:
    first, last = people({"di": "a@x"}, age=999), people({"di": "d@x"})
    assert problems(graph, change(graph.view(), P, pa.concat_tables([first, last])), merge=True) == []
    told = problems(graph, change(graph.view(), P, pa.concat_tables([last, first])), merge=True)
    assert told == ["2 range_violation: @range violation on Person.age: value 999 > max 150"]


def test_a_unique_value_of_a_surviving_row_is_taken(graph: Graph) -> None:
    told = problems(graph, change(graph.view(), P, people({"di": "b@x"})))
    assert told == ["1 unique_violation: @unique violation on Person.email: value 'b@x' held by 'bo' and 'di'"]


def test_a_unique_value_freed_by_the_same_write_may_be_reused(graph: Graph) -> None:
    assert problems(graph, change(graph.view(), P, people({"di": "b@x", "bo": None}))) == []
    assert problems(graph, change(graph.view(), P, people({"ana": "b@x", "bo": "a@x"}))) == []
    deleting = change(graph.view(), P, people({"di": "a@x"}), delete=["ana"])
    others = [change(graph.view(), F, delete=["f1"]), change(graph.view(), L, delete=["l1"])]
    assert problems(graph, deleting, *others) == []


def test_every_new_holder_of_a_unique_value_is_named_with_the_first_holder(graph: Graph) -> None:
    told = problems(graph, change(graph.view(), P, people({"d": "q", "e": "q", "f": "q"})))
    form = "unique_violation: @unique violation on Person.email: value 'q' held by"
    assert told == [f"1 {form} 'd' and 'e'", f"2 {form} 'd' and 'e'", f"3 {form} 'd' and 'f'"]
    told = problems(graph, change(graph.view(), P, people({"d": "a@x", "e": "a@x"})))
    form = "unique_violation: @unique violation on Person.email: value 'a@x' held by"
    assert told == [f"1 {form} 'ana' and 'd'", f"2 {form} 'ana' and 'e'"]


def test_a_composite_unique_names_all_its_columns_and_a_null_in_it_exempts_the_row(graph: Graph) -> None:
    rows = notes(("n1", "s", "en"), ("n2", "s", "en"), ("n3", "s", None), ("n4", "s", None), ("n5", "s", "de"))
    told = problems(graph, change(graph.view(), N, rows))
    message = "unique_violation: @unique violation on Note.(slug, lang): value (s, en) held by 'n1' and 'n2'"
    assert told == [f"1 {message}", f"2 {message}"]


def test_an_edge_needs_both_its_nodes_stored_or_in_the_same_write(graph: Graph) -> None:
    new = edges(x=("ana", "nobody"), y=("ghost", "bo"), z=("cy", "di"))
    told = problems(graph, change(graph.view(), F, new), change(graph.view(), P, people({"di": None}), first=10))
    assert told == [
        "1 dst_not_found: dst 'nobody' not found in Person",
        "2 src_not_found: src 'ghost' not found in Person",
    ]


def test_an_edge_to_a_node_deleted_in_the_same_write_is_refused(graph: Graph) -> None:
    view = graph.view()
    told = problems(graph, change(view, F, edges(x=("ana", "cy"))), change(view, P, delete=["cy"]))
    assert told == ["1 dst_not_found: dst 'cy' not found in Person"]


def test_a_deleted_node_may_not_leave_stored_edges_behind(graph: Graph) -> None:
    told = problems(graph, change(graph.view(), P, delete=["bo"]))
    assert told == [
        "- dst_not_found: dst 'bo' not found in Person (stored edge 'f1')",
        "- src_not_found: src 'bo' not found in Person (stored edge 'm1')",
    ]
    cascade = [change(graph.view(), F, delete=["f1"]), change(graph.view(), M, delete=["m1"])]
    assert problems(graph, change(graph.view(), P, delete=["bo"]), *cascade) == []


def test_replacing_all_nodes_may_not_leave_stored_edges_behind(graph: Graph) -> None:
    told = problems(graph, change(graph.view(), T, teams("web"), replaces_all=True))
    assert told == [
        "- dst_not_found: dst 'core' not found in Team (stored edge 'l1')",
        "- dst_not_found: dst 'core' not found in Team (stored edge 'm1')",
    ]
    assert problems(graph, change(graph.view(), T, teams("core"), replaces_all=True)) == []
    moved = change(graph.view(), M, edges(m1=("bo", "web")))
    left = problems(graph, change(graph.view(), T, teams("web"), replaces_all=True), moved)
    assert left == ["- dst_not_found: dst 'core' not found in Team (stored edge 'l1')"]


def test_a_source_may_not_have_more_edges_than_its_maximum(graph: Graph) -> None:
    told = problems(graph, change(graph.view(), M, edges(x=("cy", "web"), y=("bo", "web")), strict_insert=True))
    assert told == ["2 card_violation: @card violation on edge MemberOf: source 'bo' has 2 edges (max 1)"]
    assert problems(graph, change(graph.view(), M, edges(m1=("bo", "web")))) == []
    told = problems(graph, change(graph.view(), M, edges(m1=("cy", "web"), m2=("cy", "core"))))
    assert told == ["1 card_violation: @card violation on edge MemberOf: source 'cy' has 2 edges (max 1)"]


def test_a_touched_source_keeps_its_minimum_unless_it_goes_too(graph: Graph) -> None:
    few = "@card violation on edge Leads: source 'ana' has 0 edges (min 1)"
    assert problems(graph, change(graph.view(), L, delete=["l1"])) == [f"- card_violation: {few}"]
    assert problems(graph, change(graph.view(), L, edges(l1=("bo", "core")))) == [f"- card_violation: {few}"]
    assert problems(graph, change(graph.view(), L, edges(l2=("bo", "core")), replaces_all=True)) == [
        f"- card_violation: {few}"
    ]
    gone = [change(graph.view(), P, delete=["ana"]), change(graph.view(), F, delete=["f1"])]
    assert problems(graph, change(graph.view(), L, delete=["l1"]), *gone) == []


def test_a_source_whose_edges_are_not_touched_is_not_asked_for_its_minimum(graph: Graph) -> None:
    assert problems(graph, change(graph.view(), P, people({"di": None}))) == []
    assert problems(graph, change(graph.view(), L, edges(x=("bo", "core")), strict_insert=True)) == []


def test_only_the_first_failing_stage_is_told(graph: Graph) -> None:
    view = graph.view()
    taken, dangling = change(view, P, people({"di": "a@x"})), change(view, F, edges(x=("no", "one")), first=9)
    assert [p.split()[1] for p in problems(graph, taken, dangling)] == ["unique_violation:"]


def test_all_violations_are_counted_and_the_first_listed_by_position(graph: Graph) -> None:
    rows = people({f"p{i}": None for i in range(50)}, age=200)
    told, _ = findings(graph, change(graph.view(), P, rows, first=100), listed=3)
    assert [line.split()[0] for line in told] == ["100", "101", "102"]


def test_what_was_read_is_reported_so_that_the_commit_can_rely_on_it(graph: Graph) -> None:
    view = graph.view()
    _, read = findings(graph, change(view, F, edges(x=("ana", "bo")), strict_insert=True))
    assert {P, F} <= read
    _, read = findings(graph, change(view, P, delete=["cy"]))
    assert {F, M, L} <= read
