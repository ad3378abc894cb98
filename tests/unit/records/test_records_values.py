"""What each type accepts, what it refuses, and in which words. Nothing is ever coerced."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from records_scene import CATALOG, decode, decode_all, fault, stored, written

from omnigraph.catalog.catalog import Property
from omnigraph.catalog.types import PropertyType, ScalarType
from omnigraph.records.blobs import external_uri
from omnigraph.records.convert import column_of

DAY = 86_400_000


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("s", '""', ""),
        ("s", '"\\u0000\\ud83d\\ude00é"', "\0😀é"),
        ("b", "true", True),
        ("i32", "-2147483648", -(2**31)),
        ("i32", "-0", 0),
        ("i64", "9223372036854775807", 2**63 - 1),
        ("i64", "-9223372036854775808", -(2**63)),
        ("u32", "4294967295", 2**32 - 1),
        ("u64", "18446744073709551615", 2**64 - 1),
        ("f64", "3", 3.0),
        ("f64", "18446744073709551616", 2.0**64),
        ("f64", "9007199254740993", 9007199254740992.0),
        ("f64", "1.7976931348623157e308", 1.7976931348623157e308),
        ("f64", "1e-400", 0.0),
        ("f32", "16777217", 16777216.0),
        ("f32", "3.4028235e38", 3.4028234663852886e38),
        ("f32", "1e-50", 0.0),
        ("e", '"red"', "red"),
        ("v", "[1, 2.5, -0]", [1.0, 2.5, 0.0]),
        ("x", '"base64:"', b""),
        ("x", '"base64:AP8="', b"\x00\xff"),
        ("ls", "[]", []),
        ("ls", '["a", ""]', ["a", ""]),
        ("li", "[1, -2]", [1, -2]),
        ("lu", "[18446744073709551615]", [2**64 - 1]),
        ("lf", "[0.5, 1]", [0.5, 1.0]),
        ("lb", "[true, false]", [True, False]),
        ("s", "null", None),
        ("v", "null", None),
        ("ls", "null", None),
        ("x", "null", None),
    ],
)
def test_a_value_in_range_is_stored_as_it_is(name: str, text: str, expected: Any) -> None:
    assert stored(name, text) == expected


def test_negative_zero_keeps_its_sign() -> None:
    assert math.copysign(1, stored("f64", "-0.0")) == -1


REFUSED = [
    ("s", "1", "wrong_type", "property 's' expects a string, got integer"),
    ("s", "{}", "wrong_type", "property 's' expects a string, got object"),
    ("b", "1", "wrong_type", "property 'b' expects a boolean, got integer"),
    ("b", '"true"', "wrong_type", "property 'b' expects a boolean, got string"),
    ("i32", "true", "wrong_type", "property 'i32' expects an integer, got boolean"),
    ("i32", "3.0", "wrong_type", "property 'i32' expects an integer, got float"),
    ("i32", "1e3", "wrong_type", "property 'i32' expects an integer, got float"),
    ("i32", '"5"', "wrong_type", "property 'i32' expects an integer, got string"),
    ("i32", "2147483648", "out_of_range", "property 'i32': value 2147483648 exceeds I32 range"),
    ("i32", "-2147483649", "out_of_range", "property 'i32': value -2147483649 exceeds I32 range"),
    ("i64", "9223372036854775808", "out_of_range", "property 'i64': value 9223372036854775808 exceeds I64 range"),
    ("i64", "-9223372036854775809", "out_of_range", "property 'i64': value -9223372036854775809 exceeds I64 range"),
    ("u32", "-1", "out_of_range", "property 'u32': value -1 exceeds U32 range"),
    ("u64", "18446744073709551616", "out_of_range", "property 'u64': value 18446744073709551616 exceeds U64 range"),
    ("u64", "18446744073709551616.0", "wrong_type", "property 'u64' expects an integer, got float"),
    ("u64", "1" * 500, "out_of_range", "property 'u64': value with too many digits exceeds U64 range"),
    ("i64", "-" + "1" * 9000, "out_of_range", "property 'i64': value with too many digits exceeds I64 range"),
    ("f64", "true", "wrong_type", "property 'f64' expects a number, got boolean"),
    ("f64", '"NaN"', "wrong_type", "property 'f64' expects a number, got string"),
    ("f64", "1e400", "out_of_range", "property 'f64': value inf exceeds F64 range"),
    ("f64", "-1e400", "out_of_range", "property 'f64': value -inf exceeds F64 range"),
    ("f64", "1" * 400, "out_of_range", "property 'f64': value with too many digits exceeds F64 range"),
    ("f32", "3.5e38", "out_of_range", "property 'f32': value 3.5e+38 exceeds F32 range"),
    ("e", "1", "wrong_type", "property 'e' expects a string, got integer"),
    ("e", '"Red"', "invalid_enum", "invalid enum value 'Red' for All.e (expected: green, red)"),
    ("ls", '"a"', "wrong_type", "list property 'ls' expects a JSON array, got string"),
    ("ls", "{}", "wrong_type", "list property 'ls' expects a JSON array, got object"),
    ("ls", '["a", null]', "wrong_type", "element 2 of list property 'ls' expects a string, got null"),
    ("ls", '["a", ["b"]]', "wrong_type", "element 2 of list property 'ls' expects a string, got array"),
    ("li", "[1, 2, 3.0]", "wrong_type", "element 3 of list property 'li' expects an integer, got float"),
    ("li", "[1, 99999999999]", "out_of_range", "element 2 of list property 'li': value 99999999999 exceeds I32 range"),
    ("lu", "[18446744073709551616]", "out_of_range",
     "element 1 of list property 'lu': value 18446744073709551616 exceeds U64 range"),
    ("lf", "[1e39]", "out_of_range", "element 1 of list property 'lf': value 1e+39 exceeds F32 range"),
    ("ld", '["2024-02-30"]', "wrong_type",
     "element 1 of list property 'ld': invalid Date literal '2024-02-30' "
     "(expected YYYY-MM-DD or integer days since 1970-01-01)"),
    ("v", "1", "bad_vector", "vector property 'v' expects an array of 3 numbers, got integer"),
    ("v", "[]", "bad_vector", "vector property 'v' expects 3 dimensions, got 0"),
    ("v", "[1, 2, 3, 4]", "bad_vector", "vector property 'v' expects 3 dimensions, got 4"),
    ("v", "[1, null, 3]", "bad_vector", "vector property 'v' elements must be numeric, element 2 is null"),
    ("v", "[1, true, 3]", "bad_vector", "vector property 'v' elements must be numeric, element 2 is boolean"),
    ("v", "[1, 2, 1e39]", "bad_vector", "vector property 'v' elements must be finite, element 3 exceeds F32 range"),
    ("v", f"[1, 2, {'9' * 500}]", "bad_vector",
     "vector property 'v' elements must be finite, element 3 exceeds F32 range"),
    ("x", "5", "wrong_type", "property 'x' expects a string, got integer"),
    ("x", '"base64:AP8"', "bad_blob", "property 'x': content after 'base64:' is not valid base64"),
    ("x", '"base64:A P8="', "bad_blob", "property 'x': content after 'base64:' is not valid base64"),
    ("x", '"base64:AP8=="', "bad_blob", "property 'x': content after 'base64:' is not valid base64"),
    ("x", '"base64:é"', "bad_blob", "property 'x': content after 'base64:' is not valid base64"),
    ("x", '"file:///etc/hosts"', "bad_blob", "property 'x': external blob URI is not allowed"),
    ("x", '""', "bad_blob", "property 'x': external blob URI is not allowed"),
    ("d", "true", "wrong_type",
     "property 'd': invalid Date literal true (expected YYYY-MM-DD or integer days since 1970-01-01)"),
    ("d", "2147483648", "out_of_range", "property 'd': invalid Date literal 2147483648: more than a Date holds"),
    ("t", "9223372036854775808", "out_of_range",
     "property 't': invalid DateTime literal 9223372036854775808: more than a DateTime holds"),
    ("t", "1.5", "wrong_type",
     "property 't': invalid DateTime literal 1.5 "
     "(expected RFC 3339 text or integer milliseconds since 1970-01-01)"),
    ("t", '"2024-01-31T10:00:00.1234Z"', "wrong_type",
     "property 't': invalid DateTime literal '2024-01-31T10:00:00.1234Z': "
     "finer than a millisecond, which is what a DateTime holds"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "reason", "message"), REFUSED)
def test_a_value_that_does_not_fit_is_refused_in_these_words(name: str, text: str, reason: str, message: str) -> None:
    assert fault(name, text) == (reason, message)


@pytest.mark.parametrize(("name", "text", "reason", "message"), REFUSED)
def test_a_bad_value_among_good_ones_is_found_alone(name: str, text: str, reason: str, message: str) -> None:
    fine = '{"type":"All","data":{}}'
    decoded = decode(fine, f'{{"type":"All","data":{{"{name}":{text}}}}}', fine)
    assert decoded.only().message == message
    assert decoded.rows["node:All"].column("__position").to_pylist() == [1, 3]


@pytest.mark.parametrize(
    "line",
    [
        '{"type":"All","data":{"f64":NaN}}',
        '{"type":"All","data":{"f64":Infinity}}',
        '{"type":"All","data":{"f64":-Infinity}}',
        '{"type":"All","data":{"i32":01}}',
        '{"type":"All","data":{"i32":+1}}',
        '{"type":"All","data":{"f64":1.}}',
        '{"type":"All","data":{"f64":.5}}',
        '{"type":"All","data":{"s":"\\ud800"}}',
        '{"type":"All","data":{"s":"\\udc00\\ud800"}}',
        '{"type":"All","data":{"s":"\\x41"}}',
        '{"type":"All","data":{"s":"a\tb"}}',
        b'{"type":"All","data":{"s":"\xff"}}',
        b'{"type":"All","data":{"s":"\xed\xa0\x80"}}',
        b'{"type":"All","data":{"s":"\xc0\x80"}}',
        '{"type":"All","data":{"s":"a"},}',
        '{"type":"All","data":{"s":"a"}} {}',
        '{"type":"All","data":{"s":"a"}}}',
        "{'type':'All','data':{}}",
        '{"type":"All","data":{"s":"a"',
        b'{"type":"All","data":{}}\x00',
        b'{"type":"All",/**/"data":{}}',
        b'\xff\xfe{\x00}\x00',
    ],
)  # fmt: skip
def test_what_is_not_json_is_never_read(line: str | bytes) -> None:
    decoded = decode(line)
    assert decoded.only().reason == "invalid_json"
    assert decoded.rows == {}


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_a_deeply_nested_line_is_a_bad_line_and_nothing_worse(opening: str) -> None:
    closing = "]" if opening == "[" else "}"
    bomb = opening * 200_000 + "1" + closing * 200_000
    inside = '{"type":"All","data":{"s":' + opening * 900 + "1" + closing * 900 + "}}"
    twice = '{"type":"All","data":{"s":' + opening * 990 + '{"a":1,"a":2}' + closing * 990 + "}}"
    decoded = decode(bomb, inside, twice)
    assert [(v.position, v.reason) for v in decoded.all_listed()] == [
        (1, "invalid_json"),
        (3, "duplicate_member"),
        (2, "wrong_type"),
    ]
    assert "depth limit exceeded" in decoded.all_listed()[0].message


def test_one_column_may_hold_both_forms_of_a_date() -> None:
    texts = ['"1970-01-02"', "2", "null", '"0001-01-01"', "-2147483648"]
    decoded = decode(*[f'{{"type":"All","data":{{"d":{text}}}}}' for text in texts])
    assert decoded.rows["node:All"].column("d").cast(pa.int32()).to_pylist() == [1, 2, None, -719162, -(2**31)]


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("0", 0),
        ("-1", -1),
        ("9223372036854775807", 2**63 - 1),
        ('"1970-01-02"', DAY),
        ('"1970-01-01T00:00:01"', 1000),
        ('"1970-01-01 00:00:01"', 1000),
        ('"1970-01-01T00:00:01Z"', 1000),
        ('"1970-01-01T00:00:01.5Z"', 1500),
        ('"1970-01-01T00:00:01.05"', 1050),
        ('"1970-01-01T00:00:01.005000000+00:00"', 1005),
        ('"1970-01-01T01:00:00+01:00"', 0),
        ('"1969-12-31T23:30:00-00:30"', 0),
        ('"1969-12-31T23:59:59.999Z"', -1),
        ('"0001-01-01T00:00:00Z"', -719162 * DAY),
        ('"9999-12-31T23:59:59.999Z"', 2932897 * DAY - 1),
        ('"2024-02-29T12:00:00Z"', 1709208000000),
    ],
)
def test_a_moment_has_these_forms(text: str, ms: int) -> None:
    assert stored("t", text) == ms


@pytest.mark.parametrize(
    "text",
    [
        "", "2024", "2024-1-31", "2024-01-31T", "2024-01-31T10:00", "2024-01-31T10:00:60Z", "2024-01-31T24:00:00Z",
        "2024-01-31T10:60:00Z", "2024-13-01", "2024-00-01", "2024-01-00", "2023-02-29", "0000-01-01", "20240131",
        "2024-01-31t10:00:00z", "2024-01-31T10:00:00z", "2024-01-31T10:00:00.Z", "2024-01-31T10:00:00,5Z",
        "2024-01-31T10:00:00+24:00", "2024-01-31T10:00:00+01:60", "2024-01-31T10:00:00+0100", "2024-01-31T10:00:00+01",
        " 2024-01-31", "2024-01-31 ", "2024-01-31T10:00:00 Z", "+2024-01-31", "10000-01-01", "２０２４-01-31",
        "0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01", "2024-01-31T10:00:00.1234567Z", "1706659200000",
    ],
)  # fmt: skip
def test_a_moment_has_no_other_form(text: str) -> None:
    reason, message = fault("t", f'"{text}"')
    assert reason == "wrong_type"
    assert message.startswith(f"property 't': invalid DateTime literal '{text}'")


def test_a_long_bad_value_is_shortened_in_its_message() -> None:
    _, message = fault("e", '"' + "é" * 5000 + '"')
    assert message == f"invalid enum value '{'é' * 80}…' for All.e (expected: green, red)"


def test_an_external_blob_needs_an_allowed_prefix() -> None:
    decoded = decode(
        {"type": "All", "data": {"x": "s3://ok/key"}},
        {"type": "All", "data": {"x": "s3://other/key"}},
        allowed_blob_prefixes=["s3://ok/"],
    )
    assert decoded.only().message == "property 'x': external blob URI is not allowed"
    kept = decoded.rows["node:All"].column("x").to_pylist()
    assert [external_uri(value) for value in kept] == ["s3://ok/key"]


def test_no_content_can_pose_as_an_external_blob() -> None:
    marked = decode({"type": "All", "data": {"x": "s3://ok/"}}, allowed_blob_prefixes=["s3://"])
    forged = marked.rows["node:All"].column("x")[0].as_py()
    prop = Property("x", PropertyType(ScalarType.BLOB))
    assert column_of(prop, [forged])[1] == [
        (0, "bad_blob", "property 'x': content begins with the marker of external blobs")
    ]


def test_all_nullable_properties_may_be_missing() -> None:
    decoded = decode_all()
    assert decoded.told() == []
    row = decoded.rows["node:All"].drop_columns(["id", "__position"]).to_pylist()[0]
    assert set(row.values()) == {None}


def test_an_empty_batch_decodes_to_nothing() -> None:
    assert decode().rows == {}


def test_column_of_tells_the_index_reason_and_message_of_each_misfit() -> None:
    must = CATALOG.find_node("Must")
    assert must is not None
    declared = must.find_property("n")
    assert declared is not None
    array, faults = column_of(declared, [1, None, "x", 2**63, 10**5000])
    assert array.to_pylist() == [1, None, None, None, None]
    assert faults == [
        (1, "missing_required", "non-nullable property 'n' has null or missing value"),
        (2, "wrong_type", "property 'n' expects an integer, got string"),
        (3, "out_of_range", "property 'n': value 9223372036854775808 exceeds I64 range"),
        (4, "out_of_range", "property 'n': value with too many digits exceeds I64 range"),
    ]


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_parameter_that_is_no_finite_number_is_refused(number: float) -> None:
    for scalar in (ScalarType.F32, ScalarType.F64):
        array, faults = column_of(Property("p", PropertyType(scalar, nullable=True)), [1.0, number, None])
        assert array.to_pylist() == [1.0, None, None]
        assert [(index, reason) for index, reason, _ in faults] == [(1, "out_of_range")]


def test_half_a_surrogate_pair_from_a_program_is_refused_as_text() -> None:
    prop = Property("p", PropertyType(ScalarType.STRING))
    array, faults = column_of(prop, ["a", "\ud800", "b", 5])
    assert array.to_pylist() == ["a", None, "b", None]
    assert [(index, reason) for index, reason, _ in faults] == [(1, "wrong_type"), (3, "wrong_type")]


def test_tuples_serve_as_arrays_and_bytes_as_content_for_programs() -> None:
    tags = Property("p", PropertyType(ScalarType.STRING, is_list=True))
    assert column_of(tags, [("a", "b"), ()])[0].to_pylist() == [["a", "b"], []]
    blob = Property("p", PropertyType(ScalarType.BLOB))
    assert column_of(blob, [b"\x00"])[0].to_pylist() == [b"\x00"]


def test_several_bad_properties_of_one_row_are_all_told() -> None:
    decoded = written('{"i32":"x","b":2,"v":[1],"s":"fine"}')
    assert [v.property for v in decoded.all_listed()] == ["b", "i32", "v"]
