"""`omnigraph schema plan` and the dry run of `omnigraph schema apply`: what would change, and nothing does."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

AGED = ("age: I32?", "age: I32?\n  joined: Date?")
RETYPED = ("  age: I32?", "\t age: I64?")


def files() -> dict[str, int]:
    found = [Path(folder, name) for folder, _, names in os.walk("library") for name in names]
    return {str(path): path.stat().st_mtime_ns for path in found}


@pytest.fixture
def wanted():
    def write(*changes: tuple[str, str] | str) -> str:
        """A schema in `new.pg`: a whole text, or that of the graph with replacements."""
        source = Path("schema.pg").read_text()
        for change in changes:
            source = change if isinstance(change, str) else source.replace(*change)
        Path("new.pg").write_text(source)
        return "new.pg"

    return write


def test_a_plan_prints_its_steps_and_writes_nothing(cli, graph, wanted):
    wanted(AGED, ("Book", "Tome"), ("node Tome", 'node Tome @rename_from("Book")'))
    before = files()
    done = cli("schema", "plan", "--schema", "new.pg", "-s", "library")
    assert (done.code, done.err) == (0, "")
    assert done.lines == [
        "supported: yes",
        "- add property 'Person.joined' (Date?)",
        "- rename node type 'Book' to 'Tome'",
    ]
    assert files() == before


def test_an_unchanged_schema_has_nothing_to_plan(cli, graph):
    done = cli("schema", "plan", "--schema", "schema.pg", "-s", "library")
    assert done.lines == ["supported: yes", "no schema changes"]
    assert cli("schema", "plan", "--schema", "schema.pg", "-s", "library", "--json").json == {
        "supported": True,
        "steps": [],
    }


def test_a_plan_that_cannot_be_applied_ends_with_0_and_shows_where(cli, graph, wanted):
    done = cli("schema", "plan", "--schema", wanted(RETYPED), "-s", "library")
    assert done.code == 0
    assert done.lines == [
        "supported: no",
        "- unsupported change on node:Person.age [OG-MF-106, destructive]: changing property type from I32? to I64?",
        "    new.pg:3:3",
        "    3 |   age: I64?",
        "      |   ^",
    ]


def test_json_gives_the_plan_as_the_server_would(cli, graph, wanted):
    body = cli("schema", "plan", "--schema", wanted(RETYPED), "-s", "library", "--json").json
    assert body == {
        "supported": False,
        "steps": [
            {
                "kind": "unsupported_change",
                "entity": "node:Person.age",
                "reason": "changing property type from I32? to I64?",
                "code": "OG-MF-106",
            }
        ],
    }


@pytest.mark.parametrize(("option", "mode"), [((), "soft"), (("--allow-data-loss",), "hard")])
def test_drops_say_how_and_what_is_lost(cli, graph, wanted, option, mode):
    wanted("node Person { name: String @key }\nnode Book { title: String }\n")
    done = cli("schema", "plan", "--schema", "new.pg", "-s", "library", *option)
    assert done.lines[1:] == [
        f"- drop property 'Person.age' ({mode}) [OG-DS-104, destructive]",
        f"- drop edge type 'Wrote' ({mode})",
    ]


def test_a_dry_run_counts_the_rows_of_each_step_and_writes_nothing(cli, graph, wanted):
    people = "{ name: String @key  points: F64 @default(0.5)  tier: enum(a, b)? @index }"
    wanted(f"node Person {people}\nnode Book {{ title: String }}\nedge Wrote: Person -> Book {{ year: I32? }}\n")
    graph.mutate('query q() { update Person set { age: 3 } where name = "ann" }')
    before = files()
    done = cli("schema", "apply", "--schema", "new.pg", "-s", "library", "--dry-run")
    assert (done.code, done.err) == (0, "")
    assert done.lines == [
        "supported: yes",
        "applied: no (dry run)",
        "- add property 'Person.points' (F64, 0.5 in existing rows)    3 rows",
        "- add property 'Person.tier' (enum(a, b)?)                    0 rows",
        "- add constraint @index(tier) to 'Person'                     0 rows",
        "- drop property 'Person.age' (soft) [OG-DS-104, destructive]  1 row",
    ]
    assert files() == before
    body = cli("schema", "apply", "--schema", "new.pg", "-s", "library", "--dry-run", "--json").json
    assert list(body) == ["supported", "applied", "step_count", "manifest_version", "steps"]
    assert (body["applied"], body["step_count"]) == (False, 4)
    assert [step["rows"] for step in body["steps"]] == [3, 0, 0, 1]


def test_a_dry_run_of_what_cannot_be_applied_ends_with_1(cli, graph, wanted):
    done = cli("schema", "apply", "--schema", wanted(RETYPED), "-s", "library", "--dry-run")
    assert done.code == 1
    assert done.lines[0] == "supported: no"


@pytest.mark.parametrize("verb", [("plan",), ("apply",), ("apply", "--dry-run")])
@pytest.mark.parametrize(
    ("source", "said", "marked"),
    [
        ("node Person {\n  name: Strin\n}\n", "new.pg:2:9: ", "  |         ^"),
        ('node Person { }\nnode Man @rename_from("Woman") {}', "new.pg:2:10: @rename_from", "  |          ^"),
        ("edge Wrote: Nobody -> Nobody", "references unknown source type 'Nobody'", "  |             ^"),
    ],
)
def test_a_mistake_in_the_file_is_shown_where_it_stands(cli, graph, wanted, verb, source, said, marked):
    done = cli("schema", *verb, "--schema", wanted(source), "-s", "library", "-q")
    assert (done.code, done.out) == (1, "")
    assert said in done.err
    assert f"  {marked}" in done.err.splitlines()


def test_a_file_that_is_not_there_is_named(cli, graph):
    done = cli("schema", "plan", "--schema", "none.pg", "-s", "library")
    assert done.code == 1
    assert "schema file 'none.pg' not found" in done.err


@pytest.mark.parametrize("verb", ["plan", "apply"])
def test_the_schema_option_is_needed(cli, graph, verb):
    assert cli("schema", verb, "-s", "library").code == 2


@pytest.mark.parametrize("verb", ["plan", "apply"])
def test_help_has_examples(cli, verb):
    done = cli("schema", verb, "--help")
    assert done.code == 0
    assert f"omnigraph schema {verb} --schema new.pg --store ./library" in done.out
    assert "--allow-data-loss" in done.out


def test_a_terminal_gets_the_same_lines_in_colour(cli, graph, wanted):
    plain = cli("schema", "plan", "--schema", wanted(AGED), "-s", "library").lines
    shown = cli("schema", "plan", "--schema", "new.pg", "-s", "library", terminal=True).lines
    assert [re.sub("\x1b\\[[0-9;]*m", "", line) for line in shown] == plain
    assert shown != plain, "there is no colour"


@pytest.mark.parametrize("verb", [("plan",), ("apply", "--dry-run")])
def test_branches_in_the_way_are_warned_of_where_they_are(cli, graph, wanted, verb):
    wanted(("  age: I32?\n", ""))
    assert cli("schema", *verb, "--schema", "new.pg", "-s", "library").err == ""
    graph.branch_create("draft")
    done = cli("schema", *verb, "--schema", "new.pg", "-s", "library")
    assert done.code == 0
    assert done.err == "warning: an apply needs a graph with only main; merge or delete draft first\n"
    wanted(AGED)
    assert cli("schema", *verb, "--schema", "new.pg", "-s", "library").err == ""


def test_stored_queries_that_would_break_are_warned_of(cli, graph, wanted):
    Path("queries").mkdir()
    Path("queries/people.gq").write_text("query ages() {\n  match { $p: Person }\n  return { $p.age }\n}\n")
    Path("omnigraph.yaml").write_text("graphs: {lib: {uri: library, queries: queries}}\n")
    wanted(("  age: I32?\n", ""))
    done = cli("schema", "plan", "--schema", "new.pg", "-s", "lib")
    assert done.code == 0
    assert "warning: the new schema breaks 1 stored query: " in done.err
    assert "people.gq:3:" in done.err
    refused = cli("schema", "apply", "--schema", "new.pg", "-s", "lib", "--dry-run")
    assert (refused.code, refused.out) == (1, "")
    assert "people.gq:3:" in refused.err
    body = cli("schema", "apply", "--schema", "new.pg", "-s", "lib", "--dry-run", "--json").json
    assert body["code"] == "bad_request"
    assert [(found["query"], found["line"]) for found in body["broken"]] == [("ages", 3)]
