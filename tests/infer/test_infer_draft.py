"""From profiles to names, keys, edges and enums; no file is read here."""

from __future__ import annotations

from dataclasses import replace

import pytest

from omnigraph.catalog.build import compile_source
from omnigraph.catalog.types import ScalarType
from omnigraph.pipeline.infer import names
from omnigraph.pipeline.infer.draft import make_draft
from omnigraph.pipeline.infer.keys import may_refer
from omnigraph.pipeline.infer.profile import ColumnProfile, Reference, TableProfile
from omnigraph.pipeline.infer.writing import pipeline_text, scalar, schema_text


def column(name: str, scalar_: ScalarType = ScalarType.STRING, **facts: object) -> ColumnProfile:
    return replace(ColumnProfile(name, 1, scalar_, 3, 0, is_text_at_source=True), **facts)


def table(title: str, *columns: ColumnProfile, key: str | None = None, rows: int = 3) -> TableProfile:
    placed = tuple(replace(c, position=k + 1) for k, c in enumerate(columns))
    return TableProfile(title, "csv", (f"{title}.csv",), (("header", "true"),), rows, placed, key)


PEOPLE = table("people", column("id", ScalarType.I32, cast="int", low=1, high=3), column("team"), key="id")
TEAMS = table("teams", column("code"), key="code")


@pytest.mark.parametrize(
    ("column_", "wanted"),
    [
        ("name", "name"),
        ("Name", "name"),
        ("NAME", "name"),
        ("firstName", "firstName"),
        ("FirstName", "firstName"),
        ("First Name", "first_name"),
        ("id", "people_id"),
        ("ID", "people_id"),
        ("_id", "people_id"),
        ("2020", "people_2020"),
        ("größe", "grosse"),
        ("naïve-key!", "naive_key"),
        ("名前", "column_7"),
        ("", "column_7"),
        ("_rowid", "rowid"),
        ("a.b", "a_b"),
    ],
)
def test_a_column_gets_a_name_that_a_property_may_have(column_, wanted):
    assert names.property_name(column_, 7, "people") == wanted


@pytest.mark.parametrize(
    ("file", "wanted"),
    [
        ("people", "People"),
        ("order_items", "OrderItems"),
        ("2024-sales", "T2024Sales"),
        ("表", "Table"),
        ("ORG", "Org"),
    ],
)
def test_a_file_gives_its_name_to_the_type(file, wanted):
    assert names.type_name(file) == wanted


def test_names_that_come_out_equal_are_told_apart_and_a_fitting_one_stays():
    draft = make_draft([table("t", column("a b"), column("a_b"), column("A-B"))], [])
    assert [p.name for p in draft.nodes[0].properties] == ["a_b_2", "a_b", "a_b_3"]


def test_a_reference_becomes_an_edge_and_no_property():
    draft = make_draft([PEOPLE, TEAMS], [Reference(0, "team", 1)])
    assert [p.name for p in draft.nodes[0].properties] == ["people_id"]
    edge = draft.edges[0]
    assert (edge.name, edge.src_type, edge.dst_type) == ("PeopleTeam", "People", "Teams")
    assert (edge.source, edge.src, edge.dst, edge.where) == ("people", "id", "team", "`team` is not null")
    assert "a guess" in edge.comments[0]


def test_a_table_without_a_key_that_holds_two_references_is_an_edge():
    links = table("memberships", column("person"), column("team"), column("to", nulls=1))
    draft = make_draft([links, PEOPLE, TEAMS], [Reference(0, "person", 1), Reference(0, "team", 2)])
    edge = draft.edges[0]
    assert (edge.name, edge.src_type, edge.dst_type, edge.where) == ("Memberships", "People", "Teams", "")
    assert [(p.name, p.type) for p in edge.properties] == [("memberships_to", "String?")]
    assert [node.name for node in draft.nodes] == ["People", "Teams"]


def test_a_reference_from_rows_without_a_key_stays_a_property_and_says_why():
    notes = table("notes", column("team"), column("text"))
    draft = make_draft([notes, TEAMS], [Reference(0, "team", 1)])
    assert not draft.edges
    assert "an edge needs a key" in draft.nodes[0].properties[0].comment


def test_two_edges_with_one_name_are_told_apart():
    people = table("people", column("id"), column("team_id"), column("team"), key="id")
    draft = make_draft([people, TEAMS], [Reference(0, "team_id", 1), Reference(0, "team", 1)])
    assert [edge.name for edge in draft.edges] == ["PeopleTeam", "PeopleTeam_2"]


def test_an_end_of_a_date_key_is_cast_so_that_it_becomes_the_id_of_the_day():
    days = table("days", column("day", ScalarType.DATE), column("team"), key="day")
    assert make_draft([days, TEAMS], [Reference(0, "team", 1)]).edges[0].src == "cast(`day` as date)"


WHOLE = {"scalar_": ScalarType.I32, "low": 1, "high": 3}
DENSE = table("teams", column("id", ScalarType.I32, low=1, high=3), key="id")
SPARSE = table("teams", column("id", ScalarType.I32, low=1_000, high=90_000), key="id")


@pytest.mark.parametrize(
    ("name", "target", "wanted"),
    [
        ("age", DENSE, False),
        ("age", SPARSE, True),
        ("team", DENSE, True),
        ("home_team", DENSE, True),
        ("owner_id", DENSE, True),
        ("team", TEAMS, False),
    ],
)
def test_whole_numbers_refer_only_if_their_name_or_their_spread_says_so(name, target, wanted):
    given = column(name, **WHOLE)
    assert may_refer(table("people", given), given, target) is wanted


def test_a_key_does_not_refer_to_another_key_that_counts_upwards_too():
    given = column("id", **WHOLE)
    assert not may_refer(table("people", given, key="id"), given, DENSE)
    named = column("team_id", **WHOLE)
    assert may_refer(table("budgets", named, key="team_id"), named, DENSE)
    assert not may_refer(table("team", named, key="team_id"), named, DENSE)


def test_the_whole_draft_compiles_and_tells_its_evidence():
    draft = make_draft([PEOPLE, TEAMS], [Reference(0, "team", 1)])
    text = schema_text(draft)
    catalog = compile_source(text)
    assert [node.name for node in catalog.nodes] == ["People", "Teams"]
    assert "// column 'id'; unique and complete in 3 rows" in text
    assert 'people_id: "cast(`id` as int)"' in pipeline_text(draft, "graph")


@pytest.mark.parametrize(
    "text", ["on", "n", "1", "a: b", "- x", "`a`", "", "a#b", "\u2028", "😀", "\x00", '"', "\\", "é"]
)
def test_any_text_survives_the_yaml_it_is_written_in(text):
    import yaml

    assert yaml.safe_load(scalar(text)) == text
