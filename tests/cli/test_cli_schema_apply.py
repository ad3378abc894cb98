"""`omnigraph schema apply`: what it prints, how it ends, and that the new schema is in force."""

from __future__ import annotations

from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

MEMBERS = """node Member @rename_from("Person") {
  name: String @key
  age: I32?
  fee: I32 @default(10)
}
node Book { title: String }
edge Wrote: Member -> Book { year: I32? }
"""


@pytest.fixture(autouse=True)
def _wanted(_fresh_directory):
    Path("new.pg").write_text(MEMBERS)


def test_an_apply_prints_its_steps_and_is_one_commit(cli, graph):
    done = cli("schema", "apply", "--schema", "new.pg", "-s", "library", "-m", "members", "--as", "act-bo")
    assert done.code == 0
    assert done.err == f"omnigraph schema apply → {Path('library')}\n"
    assert done.lines == [
        "supported: yes",
        "applied: yes",
        "- rename node type 'Person' to 'Member'",
        "- add property 'Member.fee' (I32, 10 in existing rows)",
    ]
    assert cli("schema", "show", "-s", "library").out == MEMBERS
    commits = cli("commit", "list", "-s", "library").lines
    assert len(commits) == 4
    assert "kind=schema_apply actor=act-bo  members" in commits[0]
    fees = cli("sql", "select fee from node_Member", "-s", "library", "--format", "csv").lines
    assert fees == ["fee", "10", "10", "10"]


def test_an_apply_of_the_schema_in_force_does_nothing(cli, graph):
    before = cli("commit", "list", "-s", "library").lines
    done = cli("schema", "apply", "--schema", "schema.pg", "-s", "library", "-q")
    assert (done.code, done.lines) == (0, ["supported: yes", "applied: no", "no schema changes"])
    assert cli("commit", "list", "-s", "library").lines == before


def test_json_has_the_members_of_the_result(cli, graph):
    body = cli("schema", "apply", "--schema", "new.pg", "-s", "library", "--json").json
    version = graph.snapshot().version
    assert list(body) == ["supported", "applied", "step_count", "manifest_version", "steps"]
    assert (body["supported"], body["applied"], body["step_count"]) == (True, True, 2)
    assert body["manifest_version"] == version
    assert body["steps"][1] == {
        "kind": "add_property",
        "type_kind": "node",
        "type_name": "Member",
        "property_name": "fee",
        "property_type": "I32",
        "default": 10,
    }


def test_what_cannot_be_applied_ends_with_1_at_its_place(cli, graph):
    Path("new.pg").write_text(Path("schema.pg").read_text().replace("age: I32?", "age: I32? @unit(years)"))
    done = cli("schema", "apply", "--schema", "new.pg", "-s", "library", "-q")
    assert (done.code, done.out) == (1, "")
    said = done.err.splitlines()
    assert said[0] == "error: new.pg:3:3: unsupported change on node:Person.age: changing annotation @unit"
    assert said[1:3] == ["  3 |   age: I32? @unit(years)", "    |   ^"]
    body = cli("schema", "apply", "--schema", "new.pg", "-s", "library", "-q", "--json").json
    assert (body["code"], body["entity"], body["line"]) == ("bad_request", "node:Person.age", 3)


def test_the_file_is_kept_byte_for_byte(cli, graph):
    source = f"// ä €\r\n{MEMBERS}".encode().replace(b"\n}", b"\r\n}")
    Path("new.pg").write_bytes(source)
    assert cli("schema", "apply", "--schema", "new.pg", "-s", "library", "-q").code == 0
    assert cli("schema", "show", "-s", "library").payload == source


def test_branches_in_the_way_are_a_conflict(cli, graph):
    graph.branch_create("draft")
    done = cli("schema", "apply", "--schema", "new.pg", "-s", "library", "-q")
    assert done.code == 3
    assert "requires a graph with only main; found non-main branches: draft" in done.err


def test_a_hard_drop_says_so(cli, graph):
    Path("new.pg").write_text(Path("schema.pg").read_text().replace("  age: I32?\n", ""))
    done = cli("schema", "apply", "--schema", "new.pg", "-s", "library", "-q", "--allow-data-loss")
    assert done.lines == [
        "supported: yes",
        "applied: yes",
        "- drop property 'Person.age' (hard) [OG-DS-104, destructive]",
    ]
    past = cli("sql", "select name from node_Person", "-s", "library", "--at", "main~1")
    assert past.code == 1
    assert "was reclaimed" in past.err


def test_stored_queries_that_would_break_refuse_the_apply(cli, graph):
    Path("queries").mkdir()
    Path("queries/a.gq").write_text("query a() { match { $p: Person } return { $p.age } }\n")
    Path("queries/b.gq").write_text("query b() {\n  match { $p: Person }\n  return { $p.name }\n}\n")
    Path("omnigraph.yaml").write_text("graphs: {lib: {uri: library, queries: queries}}\n")
    done = cli("schema", "apply", "--schema", "new.pg", "-s", "lib", "-q")
    assert (done.code, done.out) == (1, "")
    assert "error: the new schema breaks 2 stored queries: " in done.err
    assert "a.gq:1:" in done.err
    assert "b.gq:2:" in done.err
    assert cli("schema", "show", "-s", "lib").out == Path("schema.pg").read_text()
