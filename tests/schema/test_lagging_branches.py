"""A branch made before an addition to the schema: read as if it had it, given it when it is first written to."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pyarrow as pa
import pytest
from past_scene import FIRST, doors, everything, fill, head, made

import omnigraph as og
from omnigraph.storage.tables import open_table

pytestmark = pytest.mark.slow

WIDER = (
    FIRST.replace("nick: String?", "nick: String?  email: String? @index  score: F64?").replace(
        "since: I32? }", "since: I32?  note: String? }"
    )
    + "node Club { name: String @key  motto: String? }\nedge In: Person -> Club { since: I32? }\n"
)
P, T, CLUB = "node:Person", "node:Town", "node:Club"
COLUMNS = ["name", "age", "email", "score"]


@pytest.fixture(params=[True, False], ids=["indexed", "unindexed"])
def graph(tmp_path: Path, request: pytest.FixtureRequest) -> og.Graph:
    found = made(tmp_path, indexed=request.param)
    found.branch_create("side")
    found.schema_apply(WIDER)
    return found


def set_email(graph: og.Graph, name: str, email: str, **more: object) -> None:
    graph.mutate(f'query m() {{ update Person set {{ email: "{email}" }} where name = "{name}" }}', **more)  # type: ignore[arg-type]


def emails(graph: og.Graph, branch: str) -> list[str | None]:
    return [row["email"] for row in doors(graph, "Person", COLUMNS, branch=branch)]


def kinds(graph: og.Graph, branch: str, count: int) -> list[tuple[str | None, str | None, str | None]]:
    return [(c.kind, c.message, c.actor_id) for c in graph.list_commits(branch)[:count]]


def stored_columns(graph: og.Graph, table_key: str, branch: str) -> list[str]:
    entry = graph.snapshot(branch).tables[table_key]
    return open_table(graph.context.ref(entry.location, entry.table_branch), entry.table_version).schema.names


def test_a_lagging_branch_is_read_by_the_schema_in_force_and_not_touched(graph: og.Graph) -> None:
    before = head(graph, "side")
    set_email(graph, "ana", "a@x")
    assert emails(graph, "side") == [None, None, None]
    assert doors(graph, "Club", ["name", "motto"], branch="side") == []
    graph.sync_branch("side")
    assert graph.query("query q() { match { $p: Person  $p in $c } return { $p.name } }").rows == []
    assert head(graph, "side") == before
    assert "email" not in stored_columns(graph, P, "side")


def test_a_lagging_branch_is_no_different_from_main_that_only_gained_columns(graph: og.Graph) -> None:
    assert everything(graph, branch="side") == everything(graph)
    assert graph.diff("side", "main").changes == []
    assert graph.diff("main", "side").changes == []


def test_the_first_write_of_a_lagging_table_catches_up_in_a_commit_of_its_own(graph: og.Graph) -> None:
    set_email(graph, "bob", "b@x", branch="side", actor="eve")
    assert kinds(graph, "side", 2) == [("mutation", None, "eve"), ("schema_apply", "schema catch-up", "eve")]
    assert emails(graph, "side") == [None, "b@x", None]
    assert emails(graph, "main") == [None, None, None]
    # Tables that were not written wait for their own first write.
    assert CLUB not in graph.snapshot("side").tables
    assert stored_columns(graph, P, "side") == graph.catalog.arrow_schema(P).names
    set_email(graph, "cyd", "c@x", branch="side")
    assert [kind for kind, *_ in kinds(graph, "side", 3)] == ["mutation", "mutation", "schema_apply"]


def test_a_table_that_does_not_lag_is_written_without_catching_up(graph: og.Graph, tmp_path: Path) -> None:
    fill(graph, [{"type": "Town", "data": {"name": "rome"}}], tmp_path, branch="side", index=False)
    assert [kind for kind, *_ in kinds(graph, "side", 1)] == ["load"]
    assert not [c for c in graph.list_commits("side") if c.message == "schema catch-up"]


def test_one_catch_up_brings_every_table_of_a_load(graph: og.Graph, tmp_path: Path) -> None:
    lines = [
        {"type": "Person", "data": {"name": "dan", "email": "d@x"}},
        {"type": "Club", "data": {"name": "chess", "motto": "mate"}},
        {"edge": "In", "from": "dan", "to": "chess"},
        {"edge": "Knows", "from": "dan", "to": "ana", "data": {"note": "new"}},
    ]
    fill(graph, lines, tmp_path, branch="side")
    caught = [c for c in graph.list_commits("side") if c.message == "schema catch-up"]
    assert [c.kind for c in caught] == ["schema_apply"]
    assert emails(graph, "side") == [None, None, None, "d@x"]
    asked = "query q() { match { $p: Person  $p in $c } return { $p.name, $c.motto } }"
    assert graph.query(asked, branch="side").rows == [{"p.name": "dan", "c.motto": "mate"}]
    assert graph.query(asked).rows == []


@pytest.mark.parametrize("mode", ["append", "merge", "overwrite"])
def test_every_mode_of_loading_reaches_a_lagging_branch(graph: og.Graph, tmp_path: Path, mode: str) -> None:
    row = {"name": "zoe", "email": "z@x", "score": 2.5}
    # The ends of the edge must stay.
    kept = [{"name": name} for name in ("ana", "bob")] if mode == "overwrite" else []
    fill(graph, [{"type": "Person", "data": data} for data in (*kept, row)], tmp_path, branch="side", mode=mode)
    found = doors(graph, "Person", ["name", "email", "score"], branch="side")
    assert row in found
    assert len(found) == (3 if mode == "overwrite" else 4)


def test_a_write_through_tables_catches_up_too(graph: og.Graph) -> None:
    rows = pa.table({"id": ["chess"], "name": ["chess"]})
    graph.write({CLUB: og.Append(rows), P: og.Delete(("ana",))}, branch="side")
    assert doors(graph, "Club", ["name", "motto"], branch="side") == [{"name": "chess", "motto": None}]
    assert len(emails(graph, "side")) == 2
    assert len(emails(graph, "main")) == 3


def test_a_type_whose_rows_came_to_main_starts_empty_on_the_branch(graph: og.Graph, tmp_path: Path) -> None:
    fill(graph, [{"type": "Club", "data": {"name": n}} for n in ("chess", "golf")], tmp_path)
    graph.mutate('query m() { insert Club { name: "rugby" } }', branch="side")
    assert [r["name"] for r in doors(graph, "Club", ["name"], branch="side")] == ["rugby"]
    assert [r["name"] for r in doors(graph, "Club", ["name"])] == ["chess", "golf"]
    told = [(c.id, c.op) for c in graph.diff("main", "side").changes]
    assert told == [("chess", "delete"), ("golf", "delete"), ("rugby", "insert")]


def test_a_lagging_branch_merges_back_without_undoing_what_main_put_into_the_new_column(graph: og.Graph) -> None:
    set_email(graph, "ana", "a@x")
    graph.mutate('query m() { update Person set { age: 50 } where name = "bob" }', branch="side")
    graph.mutate('query m() { insert Club { name: "chess" } }', branch="side")
    graph.branch_merge("side")
    rows = doors(graph, "Person", COLUMNS)
    assert [(r["age"], r["email"]) for r in rows] == [(31, "a@x"), (50, None), (None, None)]
    assert doors(graph, "Club", ["name"]) == [{"name": "chess"}]


def test_a_branch_that_never_caught_up_merges_back(graph: og.Graph, tmp_path: Path) -> None:
    graph.branch_delete("side")
    graph.branch_create("late")
    graph.mutate('query m() { update Person set { age: 50 } where name = "bob" }', branch="late")
    graph.schema_apply(WIDER.replace("score: F64?", "score: F64?  extra: Bool?"))
    graph.mutate('query m() { update Person set { extra: true } where name = "ana" }')
    graph.branch_merge("late")
    rows = doors(graph, "Person", ["name", "age", "extra"])
    assert [(r["age"], r["extra"]) for r in rows] == [(31, True), (50, None), (None, None)]
    assert not [c for c in graph.list_commits("late") if c.message == "schema catch-up"]


def test_main_merged_into_a_lagging_branch_brings_columns_and_types(graph: og.Graph, tmp_path: Path) -> None:
    set_email(graph, "ana", "a@x")
    fill(graph, [{"type": "Club", "data": {"name": "chess"}}], tmp_path)
    graph.branch_merge("main", "side")
    assert everything(graph, branch="side") == everything(graph)
    assert graph.diff("main", "side").changes == []
    graph.mutate('query m() { insert Club { name: "golf" } }', branch="side")
    assert [r["name"] for r in doors(graph, "Club", ["name"], branch="side")] == ["chess", "golf"]


def test_main_merged_into_a_lagging_branch_that_was_written_keeps_both(graph: og.Graph) -> None:
    graph.mutate('query m() { update Person set { age: 50 } where name = "bob" }', branch="side")
    set_email(graph, "ana", "a@x")
    graph.mutate('query m() { insert Club { name: "chess" } }')
    graph.branch_merge("main", "side")
    rows = doors(graph, "Person", COLUMNS, branch="side")
    assert [(r["age"], r["email"]) for r in rows] == [(31, "a@x"), (50, None), (None, None)]
    graph.branch_merge("side")
    assert everything(graph, branch="side") == everything(graph)


def test_the_same_row_changed_on_both_sides_is_a_conflict_whichever_column_it_was(graph: og.Graph) -> None:
    set_email(graph, "ana", "a@x")
    graph.mutate('query m() { update Person set { age: 50 } where name = "ana" }', branch="side")
    with pytest.raises(og.MergeConflicts):
        graph.branch_merge("side")
    graph.branch_merge("side", granularity="property")
    assert doors(graph, "Person", COLUMNS)[0] == {"name": "ana", "age": 50, "email": "a@x", "score": None}


def test_a_dry_run_on_a_lagging_branch_writes_nothing(graph: og.Graph) -> None:
    set_email(graph, "ana", "a@x")
    before = head(graph, "side")
    told = graph.branch_merge("main", "side", dry_run=True)
    assert [(t["table_key"], t["updates"]) for t in told.tables if t["updates"]] == [(P, 1)]
    assert head(graph, "side") == before


def test_two_lagging_branches_merge_with_each_other(graph: og.Graph) -> None:
    graph.branch_create_from("side", "other")
    set_email(graph, "ana", "a@x", branch="side")
    graph.mutate('query m() { insert Club { name: "chess" } }', branch="side")
    graph.mutate('query m() { insert Club { name: "golf" } }', branch="other")
    graph.branch_merge("side", "other")
    assert emails(graph, "other") == ["a@x", None, None]
    assert [r["name"] for r in doors(graph, "Club", ["name"], branch="other")] == ["chess", "golf"]
    graph.branch_merge("other")
    assert everything(graph) == everything(graph, branch="other")


def test_a_commit_from_before_the_addition_is_reverted_on_a_lagging_branch(graph: og.Graph) -> None:
    graph.branch_delete("side")
    graph.branch_create("late")
    graph.mutate('query m() { update Person set { age: 50 } where name = "bob" }', branch="late")
    changed = head(graph, "late")
    graph.schema_apply(WIDER.replace("score: F64?", "score: F64?  extra: Bool?"))
    graph.mutate('query m() { update Person set { extra: true } where name = "ana" }', branch="late")
    graph.commit_revert(changed, branch="late")
    rows = doors(graph, "Person", ["name", "age", "extra"], branch="late")
    assert [(r["age"], r["extra"]) for r in rows] == [(31, True), (42, None), (None, None)]


def test_a_branch_is_reset_to_a_commit_from_before_it_caught_up(graph: og.Graph) -> None:
    before, rows = head(graph, "side"), everything(graph, branch="side")
    set_email(graph, "bob", "b@x", branch="side")
    graph.mutate('query m() { insert Club { name: "chess" } }', branch="side")
    assert everything(graph, branch="side") != rows
    graph.branch_reset("side", before)
    assert everything(graph, branch="side") == rows
    assert graph.branch_reset("side", before).graph_commit_id is None


def test_a_write_that_names_the_head_it_saw_is_not_refused_because_the_branch_caught_up(graph: og.Graph) -> None:
    seen = head(graph, "side")
    set_email(graph, "bob", "b@x", branch="side", if_commit=seen)
    assert emails(graph, "side") == [None, "b@x", None]
    with pytest.raises(og.PreconditionFailed):
        set_email(graph, "bob", "c@x", branch="side", if_commit=seen)


def test_the_feed_of_a_branch_tells_its_catch_up_as_a_boundary(graph: og.Graph) -> None:
    start = graph.changes_poll(branch="side").cursor
    set_email(graph, "bob", "b@x", branch="side")
    blocks = graph.changes_poll(branch="side", cursor=start).blocks
    assert [(b.boundary, [(c.id, c.op) for c in b.changes]) for b in blocks] == [
        ("schema", []),
        (None, [("bob", "update")]),
    ]
    assert [past.op for past in graph.history("Person", "bob", branch="side")] == ["update", "insert"]


def test_indexes_of_a_lagging_branch_are_built_and_answer(graph: og.Graph, tmp_path: Path) -> None:
    set_email(graph, "bob", "b@x", branch="side")
    graph.ensure_indices("side")
    asked = 'query q() { match { $x: Person { email: "b@x" } } return { $x.name } }'
    assert graph.query(asked, branch="side").rows == [{"x.name": "bob"}]
    assert graph.query(asked).rows == []
    graph.optimize("side")
    assert graph.query(asked, branch="side").rows == [{"x.name": "bob"}]


def test_a_lagging_table_of_the_branch_is_optimized_and_indexed(graph: og.Graph) -> None:
    graph.branch_delete("side")
    graph.branch_create("late")
    graph.mutate('query m() { update Person set { age: 50 } where name = "bob" }', branch="late")
    graph.schema_apply(WIDER.replace("score: F64?", "score: F64?  extra: I64? @index"))
    rows = everything(graph, branch="late")
    graph.optimize("late")
    graph.ensure_indices("late")
    assert everything(graph, branch="late") == rows


def test_upkeep_and_status_do_not_mind_a_lagging_branch(graph: og.Graph) -> None:
    rows = everything(graph, branch="side")
    graph.optimize("side")
    graph.cleanup(keep=1, confirm=True)
    assert {b.branch for b in graph.status().branches} == {"main", "side"}
    assert everything(graph, branch="side") == rows
    set_email(graph, "bob", "b@x", branch="side")
    assert emails(graph, "side") == [None, "b@x", None]


def test_two_writers_that_meet_at_a_lagging_branch_both_get_through(graph: og.Graph) -> None:
    handles = [og.Graph.open(graph.uri) for _ in range(3)]
    starts = Barrier(len(handles))

    def insert(number: int) -> None:
        starts.wait()
        text = f'query m() {{ insert Person {{ name: "n{number}", email: "e" }}  insert Club {{ name: "c{number}" }} }}'
        handles[number].mutate(text, branch="side", retries=20)

    with ThreadPoolExecutor() as pool:
        list(pool.map(insert, range(len(handles))))
    assert [r["name"] for r in doors(graph, "Club", ["name"], branch="side")] == ["c0", "c1", "c2"]
    assert emails(graph, "side").count("e") == 3
    assert len([c for c in graph.list_commits("side") if c.message == "schema catch-up"]) == 1
