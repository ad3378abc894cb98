"""Each reason code of stages 2 to 5 names the file, the line, the type, the property and what is wrong."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from records_scene import CATALOG, FILE, decode

from omnigraph.records.values import check_values

GOOD = b'{"type":"Person","data":{"name":"ana"}}'


def told(line: str, **options: Any) -> list[tuple[str | None, str | None, str, str]]:
    """What is said about a bad line that stands second, between good ones."""
    decoded = decode(GOOD, line, b'{"type":"Person","data":{"name":"bo"}}', **options)
    assert decoded.rows["node:Person"].column("name").to_pylist() == ["ana", "bo"]
    found = decoded.told()
    assert {(one["file"], one["line"]) for one in found} == {(FILE, 2)}
    assert [row.position for row in decoded.rejected] == [2]
    assert decoded.rejected[0].raw == line.encode()
    return [(one["type"], one["property"], one["reason"], one["message"]) for one in found]


PARSE = [
    ("%%", (None, None, "invalid_json", "invalid JSON at column 1: unexpected character, expected a JSON value")),
    ('["a"]', (None, None, "invalid_json", "expects a JSON object, got array")),
    ("null", (None, None, "invalid_json", "expects a JSON object, got null")),
    ('{"type":"Person"}', ("Person", None, "invalid_json", "'data' is missing: a node line has 'type' and 'data'")),
    ('{"type":"Person","data":[]}', ("Person", None, "invalid_json", "'data' expects a JSON object, got array")),
    ('{"edge":"Follows","from":"a","to":"b","data":null}',
     ("Follows", None, "invalid_json", "'data' expects a JSON object, got null")),
    ('{"type":"Person","data":{"name":"a","age":1,"age":2}}',
     ("Person", None, "duplicate_member", "duplicate member 'age'")),
    ('{"type":"Person","type":"Person","data":{"name":"a"}}',
     ("Person", None, "duplicate_member", "duplicate member 'type'")),
    ('{"type":"Persn","data":{}}',
     ("Persn", None, "unknown_type", "unknown node type 'Persn'; did you mean 'Person'?")),
    ('{"type":"Follows","data":{}}',
     ("Follows", None, "unknown_type",
      "unknown node type 'Follows'; 'Follows' is an edge type: write 'edge', 'from' and 'to'")),
    ('{"edge":"Person","from":"a","to":"b"}',
     ("Person", None, "unknown_type", "unknown edge type 'Person'; 'Person' is a node type: write 'type'")),
    ('{"edge":"MembrOf","from":"a","to":"b"}',
     ("MembrOf", None, "unknown_type", "unknown edge type 'MembrOf'; did you mean 'MemberOf'?")),
    ('{"type":5,"data":{}}', (None, None, "unknown_type", "'type' expects a string, got integer")),
    ('{"edge":["Follows"]}', (None, None, "unknown_type", "'edge' expects a string, got array")),
    ('{"data":{}}', (None, None, "unknown_type", "a line needs exactly one of 'type' and 'edge', it has none")),
    ('{"type":"Person","edge":"Follows","data":{"name":"a"}}',
     ("Person", "edge", "unknown_field", "a line needs exactly one of 'type' and 'edge', it has both")),
    ('{"type":"Person","edge":null,"data":{"name":"a"}}',
     ("Person", "edge", "unknown_field", "a line needs exactly one of 'type' and 'edge', it has both")),
    ('{"type":"Person","extra":1,"data":{"name":"a"}}',
     ("Person", "extra", "unknown_field", "unknown member 'extra': a node line has 'type' and 'data'")),
    ('{"edge":"Follows","from":"a","to":"b","id":"c"}',
     ("Follows", "id", "unknown_field", "unknown member 'id': an edge line has 'edge', 'from', 'to', 'data'")),
    ('{"type":"Person","data":{"name":"a","agee":1}}',
     ("Person", "agee", "unknown_field", "unknown field 'agee' of Person; did you mean 'age'?")),
    ('{"type":"Person","data":{"name":"a","_tombstone":true}}',
     ("Person", "_tombstone", "unknown_field", "field '_tombstone' is reserved")),
    *[(f'{{"type":"Person","data":{{"name":"a","{name}":1}}}}',
       ("Person", name, "unknown_field", f"field '{name}' is reserved"))
      for name in ("_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version")],
    *[(f'{{"edge":"Follows","from":"a","to":"b","data":{{"{name}":"x"}}}}',
       ("Follows", name, "unknown_field",
        f"unknown field '{name}' of Follows: endpoints are 'from' and 'to' beside 'data'"))
      for name in ("src", "dst", "from", "to")],
    ('{"edge":"Follows","to":"b"}', ("Follows", "from", "missing_from", "'from' of edge Follows is missing")),
    ('{"edge":"Follows","from":"a"}', ("Follows", "to", "missing_to", "'to' of edge Follows is missing")),
    ('{"edge":"Follows","from":7,"to":"b"}',
     ("Follows", "from", "missing_from", "'from' of edge Follows expects a string, got integer")),
    ('{"edge":"Follows","from":"a","to":null}',
     ("Follows", "to", "missing_to", "'to' of edge Follows expects a string, got null")),
]  # fmt: skip

CONVERT = [
    ('{"type":"Person","data":{"name":5}}',
     ("Person", "name", "wrong_type", "property 'name' expects a string, got integer")),
    ('{"type":"Person","data":{"name":"a","age":3.0}}',
     ("Person", "age", "wrong_type", "property 'age' expects an integer, got float")),
    ('{"type":"Person","data":{"name":"a","age":2147483648}}',
     ("Person", "age", "out_of_range", "property 'age': value 2147483648 exceeds I32 range")),
    ('{"type":"Person","data":{"age":3}}',
     ("Person", "name", "missing_required", "non-nullable property 'name' has null or missing value")),
    ('{"type":"Person","data":{"name":null}}',
     ("Person", "name", "missing_required", "non-nullable property 'name' has null or missing value")),
    ('{"type":"All","data":{"e":"blue"}}',
     ("All", "e", "invalid_enum", "invalid enum value 'blue' for All.e (expected: green, red)")),
    ('{"type":"All","data":{"v":[1,2]}}',
     ("All", "v", "bad_vector", "vector property 'v' expects 3 dimensions, got 2")),
    ('{"type":"All","data":{"v":[1,2,"3"]}}',
     ("All", "v", "bad_vector", "vector property 'v' elements must be numeric, element 3 is string")),
    ('{"type":"All","data":{"x":"s3://bucket/key"}}',
     ("All", "x", "bad_blob", "property 'x': external blob URI is not allowed")),
    ('{"type":"All","data":{"ls":"a"}}',
     ("All", "ls", "wrong_type", "list property 'ls' expects a JSON array, got string")),
]  # fmt: skip

IDS = [
    ('{"type":"Person","data":{"id":"bob","name":"a"}}',
     ("Person", "id", "key_mismatch", "explicit id 'bob' does not match @key, which gives 'a'")),
    ('{"type":"Person","data":{"id":5,"name":"a"}}', ("Person", "id", "bad_id", "explicit id must be a string")),
    ('{"type":"Note","data":{"id":5,"text":"a"}}', ("Note", "id", "bad_id", "explicit id must be a string")),
    ('{"edge":"Follows","from":"a","to":"b","data":{"id":null}}',
     ("Follows", "id", "bad_id", "explicit id must be a string")),
]  # fmt: skip


@pytest.mark.parametrize(("line", "expected"), [*PARSE, *CONVERT, *IDS], ids=lambda v: v if isinstance(v, str) else "")
def test_a_bad_line_is_named_with_its_reason(line: str, expected: tuple[str | None, str | None, str, str]) -> None:
    assert told(line) == [expected]


def test_a_line_beyond_the_limit_is_too_long_and_never_parsed() -> None:
    line = '{"type":"Person","data":{"name":"' + "a" * 100 + '"}}'
    decoded = decode(GOOD, line, max_line_bytes=100)
    assert decoded.rows["node:Person"].num_rows == 1
    assert decoded.told() == [
        {"file": FILE, "line": 2, "type": None, "property": None, "reason": "line_too_long",
         "message": "line has 136 bytes, more than the 100 allowed"}
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ('{"name":"a","age":-1}', ("age", "range_violation", "@range violation on Person.age: value -1 < min 0")),
        ('{"name":"a","age":131}', ("age", "range_violation", "@range violation on Person.age: value 131 > max 130")),
        ('{"name":"a","score":0.25}',
         ("score", "range_violation", "@range violation on Person.score: value 0.25 < min 0.5")),
        ('{"name":"A1"}',
         ("name", "check_violation",
          "@check violation on Person.name: value 'A1' does not match pattern '^[a-z]+$'")),
    ],
)  # fmt: skip
def test_a_value_outside_its_constraint_is_named(data: str, expected: tuple[str, str, str]) -> None:
    decoded = decode(GOOD, f'{{"type":"Person","data":{data}}}')
    assert decoded.told() == []
    person = CATALOG.find_node("Person")
    assert person is not None
    good = check_values(person, decoded.rows["node:Person"], decoded.findings)
    assert good.tolist() == [True, False]
    found = decoded.told()
    assert [(v["file"], v["line"], v["type"]) for v in found] == [(FILE, 2, "Person")]
    assert (found[0]["property"], found[0]["reason"], found[0]["message"]) == expected


def test_a_row_reports_every_violation_of_its_first_failing_stage_and_none_of_later_ones() -> None:
    bad_twice_and_a_wrong_id = '{"type":"Person","data":{"id":5,"name":1,"age":"x"}}'
    assert [(prop, reason) for _, prop, reason, _ in told(bad_twice_and_a_wrong_id)] == [
        ("age", "wrong_type"),
        ("name", "wrong_type"),
    ]
    bad_and_another_id = '{"type":"Person","data":{"id":"x","name":"a","age":"x"}}'
    assert [reason for _, _, reason, _ in told(bad_and_another_id)] == ["wrong_type"]
    unknown_twice_and_a_bad_value = '{"type":"Person","data":{"zz":1,"name":5,"aa":2}}'
    assert [(prop, reason) for _, prop, reason, _ in told(unknown_twice_and_a_bad_value)] == [
        ("aa", "unknown_field"),
        ("zz", "unknown_field"),
    ]
    no_ends = '{"edge":"Follows"}'
    assert [reason for _, _, reason, _ in told(no_ends)] == ["missing_from", "missing_to"]


def test_a_value_may_break_several_constraints_at_once() -> None:
    decoded = decode('{"type":"Person","data":{"name":"X","age":-5,"score":0.1}}')
    person = CATALOG.find_node("Person")
    assert person is not None
    check_values(person, decoded.rows["node:Person"], decoded.findings)
    assert [v.property for v in decoded.all_listed()] == ["age", "name", "score"]


def test_a_stored_value_that_is_no_number_breaks_its_range() -> None:
    decoded = decode('{"type":"Person","data":{"name":"a","score":1}}', '{"type":"Person","data":{"name":"b"}}')
    rows = decoded.rows["node:Person"]
    place = rows.schema.get_field_index("score")
    rows = rows.set_column(place, rows.schema.field(place), pa.array([float("nan"), None], pa.float64()))
    person = CATALOG.find_node("Person")
    assert person is not None
    assert check_values(person, rows, decoded.findings).tolist() == [False, True]
    assert decoded.only().message == "@range violation on Person.score: value is NaN"


def test_null_is_exempt_from_constraints() -> None:
    decoded = decode('{"type":"Person","data":{"name":"a","age":null}}')
    person = CATALOG.find_node("Person")
    assert person is not None
    assert check_values(person, decoded.rows["node:Person"], decoded.findings).tolist() == [True]


def test_edge_names_match_whatever_their_case_and_form_one_batch() -> None:
    decoded = decode(
        '{"edge":"follows","from":"a","to":"b"}',
        '{"edge":"Follows","from":"c","to":"d","data":{}}',
        '{"edge":"FOLLOWS","from":"e","to":"f"}',
    )
    assert decoded.told() == []
    assert decoded.rows["edge:Follows"].column("src").to_pylist() == ["a", "c", "e"]
    assert decoded.rows["edge:Follows"].column("__position").to_pylist() == [1, 2, 3]


def test_node_names_match_exactly() -> None:
    assert decode('{"type":"person","data":{"name":"a"}}').only().message == (
        "unknown node type 'person'; did you mean 'Person'?"
    )


def test_rows_come_in_the_order_of_their_lines_in_the_schema_of_their_table() -> None:
    decoded = decode(
        '{"type":"Person","data":{"name":"b","age":2}}',
        '{"edge":"MemberOf","from":"b","to":"[\\"1\\",\\"eu\\"]","data":{"id":"m1","since":"2024-01-31"}}',
        '{"type":"Person","data":{"name":"a"}}',
        '{"type":"Team","data":{"code":1,"region":"eu"}}',
    )
    assert {key: batch.num_rows for key, batch in decoded.rows.items()} == {
        "node:Person": 2, "edge:MemberOf": 1, "node:Team": 1,
    }  # fmt: skip
    for key, batch in decoded.rows.items():
        assert batch.schema.remove(len(batch.schema) - 1) == CATALOG.arrow_schema(key)
        batch.validate(full=True)
    assert decoded.rows["node:Person"].select(["id", "age", "__position"]).to_pylist() == [
        {"id": "b", "age": 2, "__position": 1},
        {"id": "a", "age": None, "__position": 3},
    ]


def test_an_edge_without_data_has_none() -> None:
    decoded = decode('{"edge":"MemberOf","from":"a","to":"b"}')
    assert decoded.rows["edge:MemberOf"].column("role").to_pylist() == [None]
