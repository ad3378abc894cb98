"""An error in a schema or a query shows the line it stands in."""

from __future__ import annotations

import pytest


def test_an_error_in_a_file_shows_its_line_with_a_mark(cli, graph, tmp_path):
    path = tmp_path / "people.gq"
    path.write_text("query all() {\n  match {\n\t$p: Person\n\t$p.agee > 3\n  }\n  return { $p.name }\n}\n")
    told = cli("query", "all", "--query", str(path), "-s", "library").err.splitlines()
    assert told == [
        f"error: type error: T6: {path}:4:5: node type Person has no property 'agee'",
        "  4 |  $p.agee > 3",
        "    |     ^",
        "hint: Did you mean 'age'?",
    ]


def test_of_a_long_line_the_part_around_the_place_is_shown(cli, graph):
    many = " ".join(f'$p.name != "nobody {number}"' for number in range(40))
    line = f"query all() {{ match {{ $p: Person {many} $p.nme = 1 {many} }} return {{ $p.name }} }}"
    _, shown, mark, _ = cli("query", "-e", line, "-s", "library").err.splitlines()
    assert len(shown) < 120
    assert shown.startswith("  1 | …")
    assert shown.endswith("…")
    assert shown[mark.index("^") :].startswith("nme = 1")


@pytest.mark.parametrize("end", ["", "\r"])
def test_an_error_of_a_schema_or_a_mutation_is_shown_too(cli, graph, tmp_path, end):
    schema = tmp_path / "bad.pg"
    schema.write_bytes(f"node P {{{end}\n  tags: List<String>{end}\n}}\n".encode())
    made = cli("init", "other", "--schema", str(schema), "-q").err.splitlines()
    assert made[1:] == ["  2 |   tags: List<String>", "    |             ^", "hint: A list is written [String]."]
    hire = 'query hire() { insert Persn { name: "zoe" } }'
    told = cli("mutate", "-e", hire, "-s", "library", "-q").err.splitlines()
    assert told[1:3] == [f"  1 | {hire}", "    |                       ^"]


def test_the_body_for_programs_has_the_place_and_no_drawing(cli, graph):
    told = cli("query", "-e", "query all() { match { $p: Prson } return { $p } }", "-s", "library", "--json").json
    assert (told["line"], told["column"], "excerpt" in told) == (1, 27, False)


def test_a_name_like_no_other_is_answered_with_those_there_are(cli, graph):
    told = cli("query", "-e", "query all() { match { $p: Person } return { $p.zip } }", "-s", "library").err
    assert "hint: It has age, name, id." in told
    told = cli("query", "-e", "query all() { match { $p: Vehicle } return { $p } }", "-s", "library").err
    assert "hint: There are Book, Person." in told
