"""What lint says about a query file."""

from __future__ import annotations

from gq_sources import CATALOG

from omnigraph.catalog.build import compile_source
from omnigraph.catalog.catalog import Catalog
from omnigraph.plan.lint import Finding, LintReport, SchemaSource, lint

SMALL = compile_source(
    """
    node Person { name: String @key  age: I32?  bio: String? @index  vec: Vector(3)? @embed("bio")  nick: String? }
    node Team { code: String @key }
    edge Follows: Person -> Person { weight: F64?  since: Date? }
    edge MemberOf: Person -> Team
    edge Sponsors: Team -> Team
    """
)


def linted(source: str, catalog: Catalog = SMALL) -> LintReport:
    return lint(catalog, source, schema_source=SchemaSource("file", "schema.pg"), query_path="people.gq")


def test_a_good_file_is_reported_query_by_query() -> None:
    report = linted(
        """query people($n: String) { match { $p: Person { name: $n } } return { $p.name, $p.age, $p.vec } }
        query rename($n: String) { delete Team where code = $n }"""
    )
    assert report.to_json() == {
        "status": "ok",
        "schema_source": {"kind": "file", "path": "schema.pg"},
        "query_path": "people.gq",
        "queries_processed": 2,
        "errors": 0,
        "warnings": 0,
        "infos": 0,
        "results": [
            {
                "name": "people",
                "kind": "read",
                "status": "ok",
                "operation": {
                    "result": [
                        {"name": "p.name", "kind": "String", "nullable": False},
                        {"name": "p.age", "kind": "I32", "nullable": True},
                        {"name": "p.vec", "kind": "Vector", "vector_dim": 3, "nullable": True},
                    ],
                    "reads": [{"kind": "node", "type_name": "Person"}],
                    "writes": [],
                },
            },
            {
                "name": "rename",
                "kind": "mutation",
                "status": "ok",
                "operation": {
                    "result": [],
                    "reads": [
                        {"kind": "node", "type_name": "Team"},
                        {"kind": "edge", "type_name": "MemberOf"},
                        {"kind": "edge", "type_name": "Sponsors"},
                    ],
                    "writes": [
                        {"kind": "node", "type_name": "Team"},
                        {"kind": "edge", "type_name": "MemberOf"},
                        {"kind": "edge", "type_name": "Sponsors"},
                    ],
                },
            },
        ],
        "findings": [],
    }


def test_the_schema_of_a_graph_is_named_by_its_uri() -> None:
    assert SchemaSource("graph", "./library").to_json() == {"kind": "graph", "uri": "./library"}


def test_a_list_column_says_what_it_holds() -> None:
    (result,) = linted("query q() { match { $p: Person } return { $p.tags } }", CATALOG).results
    assert result.operation is not None
    assert result.operation.to_json()["result"] == [
        {"name": "p.tags", "kind": "List", "item_kind": "String", "nullable": True}
    ]


def test_a_file_that_does_not_parse_is_one_finding() -> None:
    report = linted("query q( {}")
    assert (report.status, report.queries_processed, report.errors) == ("error", 0, 1)
    assert report.results == ()
    assert report.findings == (
        Finding("error", "Q000", "parse error: people.gq:1:10: unexpected '{', expected ')' or a variable"),
    )


def test_rule_d2_is_a_parse_failure() -> None:
    report = linted('query q($n: String) { insert Team { code: $n } delete Team where code = "x" }')
    assert [finding.code for finding in report.findings] == ["Q000"]
    assert "rule D2" in report.findings[0].message


def test_a_query_that_fails_does_not_hide_the_others() -> None:
    report = linted(
        """query bad() { match { $p: Persn } return { $p } }
        query good() { match { $p: Person } return { $p } }"""
    )
    assert (report.status, report.queries_processed, report.errors) == ("error", 2, 1)
    assert [result.to_json().get("error") for result in report.results] == [
        "type error: T1: people.gq:1:27: unknown node type 'Persn'",
        None,
    ]
    assert report.findings == ()
    assert report.results[0].hint == "Did you mean 'Person'?"


def test_reads_include_both_ends_of_every_edge_also_in_not() -> None:
    (result,) = linted("query q() { match { $p: Person $p follows $_ not { $p memberOf $_ } } return { $p } }").results
    assert result.operation is not None
    assert [(t.kind, t.type_name) for t in result.operation.reads] == [
        ("node", "Person"),
        ("node", "Team"),
        ("edge", "Follows"),
        ("edge", "MemberOf"),
    ]


def test_mutations_say_what_they_read_and_write() -> None:
    (result,) = linted(
        """query q($n: String) { insert Person { name: $n } insert MemberOf { from: $n, to: "core" }
        update Follows set { weight: 1, since: null } where from = $n }"""
    ).results
    assert result.operation is not None
    assert [t.type_name for t in result.operation.writes] == ["Person", "Follows", "MemberOf"]
    assert [t.type_name for t in result.operation.reads] == ["Person", "Team", "Follows"]


def test_a_mutation_without_parameters_is_hard_coded() -> None:
    report = linted('query q() { insert Team { code: "core" } }  query r() { match { $t: Team } return { $t } }')
    assert report.status == "ok"
    assert report.findings == (
        Finding("warning", "L202", "hard-coded mutation: it declares no parameters", query_names=("q",)),
    )
    assert report.results[0].warnings == ("L202: hard-coded mutation: it declares no parameters",)
    assert report.results[0].to_json()["warnings"] == list(report.results[0].warnings)
    assert report.results[1].warnings == ()
    assert "warnings" not in report.results[1].to_json()


def test_a_nullable_property_that_no_update_assigns_is_pointed_out() -> None:
    report = linted(
        """query a($n: String) { update Person set { age: 3 } where name = $n }
        query b($n: String) { update Person set { bio: "x" } where name = $n }
        query c($n: String) { insert Person { name: $n, nick: $n } }"""
    )
    (finding,) = report.findings
    assert finding.to_json() == {
        "severity": "warning",
        "code": "L201",
        "message": "nullable property 'Person.nick' is assigned by no update of this file",
        "type_name": "Person",
        "property": "nick",
        "query_names": ["a", "b"],
    }
    assert (report.status, report.warnings) == ("ok", 1)
    assert [bool(result.warnings) for result in report.results] == [True, True, False]


def test_updates_of_edges_are_looked_at_too() -> None:
    report = linted("query a($n: String) { update Follows set { weight: 1 } where from = $n }")
    assert [(f.code, f.type_name, f.property) for f in report.findings] == [("L201", "Follows", "since")]


def test_an_update_that_fails_still_assigns() -> None:
    report = linted(
        """query a($n: String) { update Person set { age: "x", bio: "x", nick: $n } where name = $n }
        query b($n: String) { update Person set { age: 1 } where name = $n }"""
    )
    assert report.errors == 1
    assert report.findings == ()


def test_an_empty_file_is_fine() -> None:
    report = linted("// nothing yet")
    assert (report.status, report.queries_processed, report.findings) == ("ok", 0, ())
