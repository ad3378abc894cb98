"""What a user and a program are told about a bad row, for every reason there is."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

import omnigraph as og

pytestmark = pytest.mark.slow

SCHEMA = """
node Person {
  name: String @key
  age: I32?
  mail: String? @unique
  tier: enum(gold, silver)?
  v: Vector(2)?
  photo: Blob?
  must: Bool
  @range(age, 0..150)
  @check(mail, "@")
}
node Note { text: String }
edge Follows: Person -> Person { why: String? }
edge Leads: Person -> Person @card(0..1)
"""


def person(name: str, **data: Any) -> dict[str, Any]:
    return {"type": "Person", "data": {"name": name, "must": True, **data}}


def follows(**members: Any) -> dict[str, Any]:
    return {"edge": "Follows", **members}


GOOD = [person("ana", mail="a@x"), person("bo"), {"edge": "Leads", "from": "ana", "to": "bo"}]
# reason, type, property, the lines (the last one is bad), a part of the message
REASONS: list[tuple[str, str | None, str | None, list[Any], str]] = [
    ("invalid_json", None, None, ["{"], "invalid JSON at column 2"),
    (
        "duplicate_member",
        "Person",
        None,
        ['{"type":"Person","data":{"name":"x","name":"y"}}'],
        "duplicate member 'name'",
    ),
    ("unknown_type", "Persn", None, [{"type": "Persn", "data": {}}], "did you mean 'Person'?"),
    ("unknown_field", "Person", "agee", [person("x", agee=1)], "did you mean 'age'?"),
    ("missing_from", "Follows", "from", [follows(to="bo")], "'from' of edge Follows is missing"),
    ("missing_to", "Follows", "to", [follows(**{"from": "bo"})], "'to' of edge Follows is missing"),
    ("line_too_long", None, None, [person("x" * 3000)], "more than the 2048 allowed"),
    ("wrong_type", "Person", "age", [person("x", age="old")], "expects an integer, got string"),
    ("out_of_range", "Person", "age", [person("x", age=2**31)], "exceeds I32 range"),
    ("missing_required", "Person", "must", [{"type": "Person", "data": {"name": "x"}}], "has null or missing value"),
    ("invalid_enum", "Person", "tier", [person("x", tier="tin")], "invalid enum value 'tin' for Person.tier"),
    ("bad_vector", "Person", "v", [person("x", v=[1])], "expects 2 dimensions, got 1"),
    ("bad_blob", "Person", "photo", [person("x", photo="s3://b/x")], "external blob URI is not allowed"),
    ("key_mismatch", "Person", "id", [person("x", id="y")], "explicit id 'y' does not match @key"),
    ("bad_id", "Note", "id", [{"type": "Note", "data": {"text": "t", "id": 5}}], "explicit id must be a string"),
    ("range_violation", "Person", "age", [person("x", age=151)], "value 151 > max 150"),
    ("check_violation", "Person", "mail", [person("x", mail="no")], "value 'no' does not match pattern '@'"),
    ("unique_violation", "Person", "mail", [person("x", mail="a@x")], "value 'a@x' held by 'ana' and 'x'"),
    ("src_not_found", "Follows", "src", [follows(**{"from": "no", "to": "bo"})], "src 'no' not found in Person"),
    ("dst_not_found", "Follows", "dst", [follows(**{"from": "bo", "to": "no"})], "dst 'no' not found in Person"),
    (
        "card_violation",
        "Leads",
        "src",
        [{"edge": "Leads", "from": "ana", "to": "ana"}],
        "@card violation on edge Leads: source 'ana' has 2 edges (max 1)",
    ),
]


def written(*lines: Any) -> bytes:
    return b"".join((line.encode() if isinstance(line, str) else orjson.dumps(line)) + b"\n" for line in lines)


@pytest.fixture
def town(tmp_path, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_MAX_LINE_BYTES", "2048")
    graph = og.Graph.init(str(tmp_path / "town"), SCHEMA)
    (tmp_path / "good.jsonl").write_bytes(written(*GOOD))
    graph.load(tmp_path / "good.jsonl", mode="append", index=False)
    return graph


@pytest.mark.parametrize(("reason", "kind", "name", "lines", "says"), REASONS, ids=[r[0] for r in REASONS])
def test_a_bad_row_is_told_with_place_type_property_reason_message_and_hint(
    cli, town, tmp_path, reason, kind, name, lines, says
):
    bad = tmp_path / "bad.jsonl"
    bad.write_bytes(written(person("fine"), *lines))
    head = town.head_commit_id_for_branch()
    done = cli("load", "town", "--data", "bad.jsonl", "--mode", "append", "--quiet")
    assert (done.code, done.out) == (1, "")
    first, listed, hint = done.err.splitlines()
    assert first.startswith("error: bad.jsonl:2: ")
    assert says in first
    what = ".".join(part for part in (kind, name) if part)
    message = first.split(": ", 2)[2]
    assert listed.strip().split("  ") == [part for part in ("bad.jsonl:2", what, reason, message) if part]
    assert hint.startswith("hint: Nothing was written.")

    body = cli("load", "town", "--data", "bad.jsonl", "--mode", "append", "--json", "--quiet").json
    assert (body["code"], body["total"]) == ("bad_request", 1)
    (told,) = body["violations"]
    assert set(told) == {"file", "line", "type", "property", "reason", "message"}
    assert (told["file"], told["line"], told["type"], told["property"], told["reason"]) == (
        "bad.jsonl",
        2,
        kind,
        name,
        reason,
    )
    assert says in told["message"]
    assert town.head_commit_id_for_branch() == head


def test_every_reason_of_the_documentation_is_told_above():
    documented = """invalid_json duplicate_member unknown_type unknown_field missing_from missing_to line_too_long
        wrong_type out_of_range missing_required invalid_enum bad_vector bad_blob key_mismatch bad_id
        range_violation check_violation unique_violation src_not_found dst_not_found card_violation"""
    assert [reason for reason, *_ in REASONS] == documented.split()


def test_a_repeated_id_and_a_taken_one_are_told_with_their_lines(cli, town, tmp_path):
    note = {"type": "Note", "data": {"text": "t", "id": "n"}}
    (tmp_path / "bad.jsonl").write_bytes(written(note, note))
    done = cli("load", "town", "--data", "bad.jsonl", "--mode", "append", "--quiet")
    assert done.code == 1
    assert [line.split("  ")[1:4] for line in done.err.splitlines()[1:3]] == [
        ["bad.jsonl:1", "Note.id", "duplicate_id"],
        ["bad.jsonl:2", "Note.id", "duplicate_id"],
    ]
    (tmp_path / "taken.jsonl").write_bytes(written(person("ana"), person("k", id="other")))
    taken = cli("load", "town", "--data", "taken.jsonl", "--mode", "append", "--quiet", "--json").json
    assert [(v["line"], v["reason"]) for v in taken["violations"]] == [(1, "key_conflict"), (2, "key_mismatch")]


def test_only_as_many_rows_are_listed_as_asked_for_and_all_are_counted(cli, town, tmp_path):
    (tmp_path / "bad.jsonl").write_bytes(written(*(person(f"x{n}", age="old") for n in range(50))))
    words = ("load", "town", "--data", "bad.jsonl", "--mode", "append", "--quiet")
    done = cli(*words)
    assert len([line for line in done.err.splitlines() if "wrong_type" in line]) == 20
    assert "and 30 more" in done.err
    few = cli(*words, "--max-errors", "2", "--json").json
    assert (few["total"], len(few["violations"])) == (50, 2)
