"""What a person does with schema apply: defaults, hard drops, tags, names that come back, branches, stored queries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from migrations import BASE
from populated import LINES, load_lines, rows_of

import omnigraph as og
from omnigraph.engine.view import View


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    made = og.Graph.init(str(tmp_path / "graph"), BASE)
    load_lines(made, tmp_path, LINES)
    return made


def head(graph: og.Graph) -> str:
    return graph.list_commits()[0].graph_commit_id


def without(source: str, *parts: str) -> str:
    for part in parts:
        assert part in source
        source = source.replace(part, "")
    return source


NICK = "  nick: String? @index\n"
SHELF = ("node Shelf { label: String @key }\n", "edge Holds: Shelf -> Book\n")
DEFAULTS: dict[str, tuple[str, Any]] = {
    "String": ('"a \\"b\\" é"', 'a "b" é'),
    "Bool": ("false", False),
    "I32": ("-2147483648", -2147483648),
    "I64": ("-9007199254740993", -9007199254740993),
    "U32": ("4294967295", 4294967295),
    "U64": ("18446744073709551615", 18446744073709551615),
    "F32": ("0.1", 0.1),
    "F64": ("-0.5", -0.5),
    "Date": ('"1969-12-31"', "1969-12-31"),
    "DateTime": ('"2020-02-29T10:00:00.125Z"', "2020-02-29T10:00:00.125Z"),
    "enum(one, two)": ("two", "two"),
}


@pytest.mark.slow
def test_a_default_of_every_type_is_filled_into_rows_that_are_there(graph: og.Graph, tmp_path: Path) -> None:
    fields = [f"p{number}: {kind} @default({text})" for number, (kind, (text, _)) in enumerate(DEFAULTS.items())]
    graph.schema_apply(BASE.replace("age: I32?", "age: I32?\n" + "\n".join(fields)))
    for row in rows_of(graph)["node:Person"]:
        got = [row[f"p{number}"] for number in range(len(DEFAULTS))]
        assert got == [pytest.approx(value) if kind == "F32" else value for kind, (_, value) in DEFAULTS.items()]
    line = {"type": "Person", "data": {"handle": "new", "name": "New", "tier": "gold"}}
    with pytest.raises(og.InvalidData, match="p0"):
        load_lines(graph, tmp_path, [line])


@pytest.mark.slow
@pytest.mark.parametrize(("gone", "key"), [((NICK,), "node:Person"), (SHELF, "node:Shelf")])
def test_a_hard_drop_takes_the_past_with_it_and_a_soft_one_does_not(
    graph: og.Graph, gone: tuple[str, ...], key: str
) -> None:
    past = graph.snapshot()
    entry = past.tables[key]
    wanted = without(BASE, *gone)
    graph.schema_apply(wanted)
    assert _stored(graph, entry)
    graph.schema_apply(BASE)
    again = graph.snapshot().tables[key]
    graph.schema_apply(wanted, allow_data_loss=True)
    assert not _stored(graph, again)
    if key in graph.snapshot().tables:
        with pytest.raises(og.Reclaimed):
            rows_of(graph, snapshot=past)


def _stored(graph: og.Graph, entry: Any) -> bool:
    """Whether anything of this version of a table is still on disk."""
    folder = Path(graph.uri, entry.location)
    versions = [18446744073709551615 - entry.table_version, entry.table_version]
    return any(list(folder.glob(f"_versions/{number}.manifest")) for number in versions)


@pytest.mark.slow
@pytest.mark.parametrize("gone", [(NICK,), SHELF])
def test_a_tag_keeps_what_it_names_from_a_hard_drop(graph: og.Graph, gone: tuple[str, ...]) -> None:
    graph.tag_create("kept")
    before, newest = rows_of(graph), head(graph)
    with pytest.raises(og.Conflict, match="kept"):
        graph.schema_apply(without(BASE, *gone), allow_data_loss=True)
    assert (rows_of(graph), head(graph), graph.schema().source) == (before, newest, BASE)
    graph.tag_delete("kept")
    assert graph.schema_apply(without(BASE, *gone), allow_data_loss=True).applied


@pytest.mark.slow
def test_a_type_renamed_and_back_again_keeps_its_rows(graph: og.Graph, tmp_path: Path) -> None:
    before, start = rows_of(graph), head(graph)
    rack = BASE.replace("node Shelf", 'node Rack @rename_from("Shelf")').replace("Holds: Shelf", "Holds: Rack")
    back = BASE.replace("node Shelf", 'node Shelf @rename_from("Rack")')
    for _ in range(2):
        graph.schema_apply(rack)
        assert rows_of(graph)["node:Rack"] == before["node:Shelf"]
        graph.schema_apply(back)
        assert rows_of(graph) == before
    load_lines(graph, tmp_path, [{"type": "Shelf", "data": {"label": "low"}}])
    assert [row["label"] for row in rows_of(graph)["node:Shelf"]] == ["low", "top"]
    assert rows_of(graph, snapshot=start) == before
    assert rows_of(og.Graph.open(graph.uri)) == rows_of(graph)


@pytest.mark.slow
def test_a_name_that_comes_back_never_shows_what_was_there(graph: og.Graph, tmp_path: Path) -> None:
    before, start = rows_of(graph), graph.snapshot()
    graph.schema_apply(without(BASE, NICK, *SHELF))
    graph.schema_apply(BASE)
    now = rows_of(graph)
    assert [row["nick"] for row in now["node:Person"]] == [None, None, None]
    assert (now["node:Shelf"], now["edge:Holds"]) == ([], [])
    assert graph.snapshot().tables["node:Shelf"].location != start.tables["node:Shelf"].location
    then = rows_of(graph, snapshot=start)
    assert [row["nick"] for row in then["node:Person"]] == [None, None, None]
    assert (then["node:Shelf"], then["edge:Holds"]) == ([], [])
    assert then["node:Book"] == before["node:Book"]
    load_lines(graph, tmp_path, [line for line in LINES if line.get("type") == "Shelf" or line.get("edge") == "Holds"])
    assert rows_of(graph)["node:Shelf"] == before["node:Shelf"]
    assert rows_of(graph)["edge:Holds"] == before["edge:Holds"]


@pytest.mark.slow
def test_what_only_adds_is_applied_beside_branches_and_nothing_else_is(graph: og.Graph) -> None:
    graph.branch_create("draft")
    before = rows_of(graph)
    with pytest.raises(og.Conflict, match="requires a graph with only main; found non-main branches: draft"):
        graph.schema_apply(without(BASE, NICK))
    assert rows_of(graph) == before
    more = BASE.replace("age: I32?", "age: I32?  joined: Date?")
    assert graph.schema_plan(more).additive
    assert graph.schema_apply(more).applied
    rows = rows_of(graph, branch="draft")["node:Person"]
    assert [row["joined"] for row in rows] == [None, None, None]
    graph.mutate('query q() { update Person set { joined: date("2020-01-01") } where handle = "ana" }', branch="draft")
    joined = {row["handle"]: row["joined"] for row in rows_of(graph, branch="draft")["node:Person"]}
    assert joined == {"ana": "2020-01-01", "bo": None, "cy": None}
    graph.branch_merge("draft")
    assert {row["handle"]: row["joined"] for row in rows_of(graph)["node:Person"]} == joined


@pytest.mark.slow
def test_queries_and_sql_know_the_new_names_at_once_and_the_old_ones_no_more(graph: og.Graph) -> None:
    names = "query q() { match { $p: Person } return { $p.nick as n } order { n asc } }"
    expected = graph.query(names).rows
    graph.schema_apply(BASE.replace("nick: String?", 'alias: String? @rename_from("nick")'))
    assert graph.query(names.replace("nick", "alias")).rows == expected
    with pytest.raises(og.TypeCheckError):
        graph.query(names)
    assert graph.sql("select count(alias) as n from node_Person").rows == [{"n": 1}]
    graph.mutate('query q() { update Person set { alias: "b" } where handle = "bo" }')
    assert graph.sql("select alias from node_Person where alias = 'b'").rows == [{"alias": "b"}]


@pytest.mark.slow
def test_walks_along_edges_follow_new_names_on_a_handle_that_knew_the_old_ones(graph: og.Graph) -> None:
    returned = "$p.handle as h, $w.year as y, $b.title as t"
    walked = f"query q() {{ match {{ $p: Person  $p $w:wrote $b }} return {{ {returned} }} order {{ h asc }} }}"
    other, start = og.Graph.open(graph.uri), head(graph)
    expected = [{"h": "ana", "y": 1999, "t": "One"}, {"h": "bo", "y": None, "t": "Two"}]
    for handle in (graph, other, graph, other):
        assert handle.query(walked).rows == expected
    penned = BASE.replace("edge Wrote: Person -> Book", 'edge Penned: Human -> Book @rename_from("Wrote")')
    graph.schema_apply(penned.replace("node Person", 'node Human @rename_from("Person")'))
    renamed = walked.replace("Person", "Human").replace("wrote", "penned")
    for handle in (graph, other):
        assert handle.query(renamed).rows == expected
        assert handle.query(renamed, snapshot=start).rows == expected
        with pytest.raises(og.TypeCheckError):
            handle.query(walked)
    again = graph.schema().source + "edge Wrote: Human -> Book { year: I32? }\n"
    other.schema_apply(again)
    other.mutate('query q() { insert Wrote { from: "cy", to: "b1", year: 1 } }')
    for handle in (graph, other):
        fresh = walked.replace("Person", "Human")
        assert handle.query(fresh).rows == [{"h": "cy", "y": 1, "t": "One"}]
        assert handle.query(fresh, snapshot=start).rows == []
        assert handle.query(renamed).rows == expected


@pytest.mark.slow
def test_stored_queries_that_would_break_refuse_the_apply(graph: og.Graph) -> None:
    queries = {"q.gq": "query q() {\n  match { $p: Person }\n  return { $p.nick }\n}\n"}
    newest = head(graph)
    with pytest.raises(og.BreaksQueries, match=r"q\.gq:3:"):
        graph.schema_apply(without(BASE, NICK), queries=queries)
    assert head(graph) == newest
    assert graph.schema_apply(BASE.replace("age: I32?", "age: I32? @index"), queries=queries).applied


@pytest.mark.slow
def test_a_read_only_handle_plans_and_does_not_apply(graph: og.Graph) -> None:
    reader = og.Graph.open(graph.uri, "r")
    wanted = BASE.replace("age: I32?", "age: I32?  joined: Date?")
    assert [step.kind for step in reader.schema_plan(wanted).steps] == ["add_property"]
    assert reader.schema_preview(without(BASE, NICK)).rows == (1,)
    with pytest.raises(og.BadRequest, match="read-only"):
        reader.schema_apply(wanted)


@pytest.mark.slow
def test_a_preview_counts_the_rows_of_the_schema_it_plans_with(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here somebody else renames a type while the preview is being made."""
    other, seen = og.Graph.open(graph.uri), og.Graph.view
    rack = BASE.replace("node Shelf", 'node Rack @rename_from("Shelf")').replace("Holds: Shelf", "Holds: Rack")

    def view(self: og.Graph, branch: str | None = None) -> View:
        found = seen(self, branch)
        if self is graph:
            other.schema_apply(rack)
        return found

    monkeypatch.setattr(og.Graph, "view", view)
    told = graph.schema_preview(without(BASE, *SHELF))
    counted = {step.to_json()["name"]: rows for step, rows in zip(told.plan.steps, told.rows, strict=True)}
    assert counted == {"Rack": 1, "Holds": 1}


EVERY = """\
node A {
  k: String @key  blob: Blob?  list: [String]?  at: DateTime?  half: F32?  kind: enum(a, b)?  face: Vector(2)?
  big: U64?  yes: Bool?  day: Date?  sure: Blob
}
node B { k: String @key }
edge E: A -> B
"""
EVERY_ROW = {
    "blob": "base64:AAAA", "list": ["q"], "at": "2020-01-01T00:00:00Z", "half": 1, "kind": "a", "face": [1, 2],
    "big": 3, "yes": True, "day": "2020-01-01", "sure": "base64:AA==",
}  # fmt: skip


@pytest.mark.slow
def test_rows_with_a_value_are_counted_whatever_its_type(tmp_path: Path) -> None:
    graph = og.Graph.init(str(tmp_path / "every"), EVERY)
    rows = [{"k": "1", **EVERY_ROW}, {"k": "2", "list": [], "sure": "base64:"}, {"k": "3", "sure": "base64:AAAA"}]
    lines = [{"type": "A", "data": row} for row in rows]
    ends = [{"type": "B", "data": {"k": "b"}}, {"edge": "E", "from": "1", "to": "b", "data": {"id": "e"}}]
    load_lines(graph, tmp_path, [*lines, *ends])
    graph.schema_apply(EVERY.replace("k: String @key  blob", "k: String @key  later: I32?  blob"))
    told = graph.schema_preview('node C @rename_from("A") { k: String @key }')
    named = [step.to_json() for step in told.plan.steps if step.kind.startswith("drop")]
    counted = dict(zip([s.get("property_name") or s["name"] for s in named], told.rows[1:], strict=True))
    once = dict.fromkeys(EVERY_ROW, 1) | {"B": 1, "E": 1}
    assert counted == once | {"list": 2, "sure": 3, "later": 0}
    assert told.rows[0] == 0, "a rename touches no row"
