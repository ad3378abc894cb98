"""Ids follow from the key in one canonical text, or are fresh ULIDs."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from records_scene import decode

from omnigraph.base.clock import now_us
from omnigraph.base.ids import is_ulid, new_ulid
from omnigraph.catalog.build import compile_source
from omnigraph.catalog.identity import assign
from omnigraph.records.ids import fresh_ids, key_texts


def keyed(type_: str, json_text: str) -> str:
    decoded = decode(
        f'{{"type":"K","data":{{"k":{json_text}}}}}', catalog=compile_source(f"node K {{ k: {type_} @key }}")
    )
    assert decoded.told() == []
    found: str = decoded.rows["node:K"].column("id")[0].as_py()
    return found


@pytest.mark.parametrize(
    ("type_", "json_text", "expected"),
    [
        ("String", '"Ana \\"x\\""', 'Ana "x"'),
        ("String", '""', ""),
        ("I32", "-7", "-7"),
        ("U64", "18446744073709551615", "18446744073709551615"),
        ("Bool", "true", "true"),
        ("Bool", "false", "false"),
        ("Date", '"1970-01-31"', "30"),
        ("Date", "-2147483648", "-2147483648"),
        ("DateTime", '"1970-01-01T00:00:01.5Z"', "1500"),
        ("DateTime", "9223372036854775807", "9223372036854775807"),
        ("enum(a, b)", '"b"', "b"),
        ("F64", "0.0", "0"),
        ("F64", "-0.0", "0"),
        ("F64", "1", "1"),
        ("F64", "1.50", "1.5"),
        ("F64", "0.1", "0.1"),
        ("F64", "1e21", "1000000000000000000000"),
        ("F64", "1e-7", "0.0000001"),
        ("F64", "-123456789012.5", "-123456789012.5"),
        ("F32", "0.1", "0.1"),
        ("F32", "16777217", "16777216"),
    ],
)
def test_the_key_gives_the_id_in_this_text(type_: str, json_text: str, expected: str) -> None:
    assert keyed(type_, json_text) == expected


@settings(deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_key_gives_the_number_back(number: float) -> None:
    table = compile_source("node K { k: F64 @key }").find_node("K")
    assert table is not None
    text = key_texts(table, {"k": pa.array([number])})[0].as_py()
    assert float(text) == number
    assert re.fullmatch(r"-?[0-9]+(\.[0-9]*[1-9])?", text)


@settings(deadline=None)
@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_narrow_float_key_gives_the_number_back(number: float) -> None:
    table = compile_source("node K { k: F32 @key }").find_node("K")
    assert table is not None
    text = key_texts(table, {"k": pa.array([number], pa.float32())})[0].as_py()
    assert np.float32(float(text)) == np.float32(number)


def test_a_key_that_is_no_number_has_no_id() -> None:
    table = compile_source("node K { k: F64 @key }").find_node("K")
    assert table is not None
    assert key_texts(table, {"k": pa.array([math.nan, math.inf, None, 1.0])}).to_pylist() == [None, None, None, "1"]


def test_several_members_give_a_compact_json_array_in_property_id_order() -> None:
    assert decode({"type": "Team", "data": {"region": "eu", "code": 7}}).rows["node:Team"].column("id").to_pylist() == [
        '["7","eu"]'
    ]
    # `a` is added after `z` had its id, so it comes second though its name comes first.
    older = assign(compile_source("node K { z: String  @key(z) }"), None, new_ulid())
    newer = assign(compile_source("node K { z: String  a: I32  @key(a, z) }"), older).catalog
    decoded = decode({"type": "K", "data": {"a": 1, "z": "x"}}, catalog=newer)
    assert decoded.rows["node:K"].column("id").to_pylist() == ['["x","1"]']


@settings(deadline=None)
@given(st.lists(st.tuples(st.text(), st.integers(-9, 9), st.booleans()), min_size=1, max_size=5))
def test_a_composite_id_is_the_json_of_its_texts(rows: list[tuple[str, int, bool]]) -> None:
    table = compile_source("node K { a: String  b: I32  c: Bool  @key(a, b, c) }").find_node("K")
    assert table is not None
    a, b, c = (list(column) for column in zip(*rows, strict=True))
    texts = key_texts(table, {"a": pa.array(a), "b": pa.array(b, pa.int32()), "c": pa.array(c)}).to_pylist()
    assert [json.loads(text) for text in texts] == [[x, str(y), str(z).lower()] for x, y, z in rows]
    assert len(set(texts)) == len(set(rows))
    assert all(", " not in re.sub(r'"(?:[^"\\]|\\.)*"', "", text) for text in texts)


def test_an_explicit_id_equal_to_the_key_is_accepted() -> None:
    decoded = decode(
        {"type": "Person", "data": {"id": "ana", "name": "ana"}},
        {"type": "Person", "data": {"name": "bo"}},
        {"type": "Team", "data": {"id": '["7","eu"]', "code": 7, "region": "eu"}},
    )
    assert decoded.told() == []
    assert decoded.rows["node:Person"].column("id").to_pylist() == ["ana", "bo"]


def test_an_entity_without_key_takes_the_given_id_or_a_fresh_one() -> None:
    decoded = decode(
        {"type": "Note", "data": {"id": "n1", "text": "a"}},
        {"type": "Note", "data": {"text": "b"}},
        {"edge": "Follows", "from": "a", "to": "b", "data": {"id": "f1"}},
        {"edge": "Follows", "from": "a", "to": "b"},
    )
    for key in ("node:Note", "edge:Follows"):
        given_id, fresh = decoded.rows[key].column("id").to_pylist()
        assert given_id in ("n1", "f1")
        assert is_ulid(fresh)


def test_fresh_ids_are_distinct_ulids_of_now() -> None:
    before = now_us() // 1000
    ids = fresh_ids(20_000).to_pylist()
    after = now_us() // 1000
    assert len(set(ids)) == 20_000
    assert all(map(is_ulid, ids))
    alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
    times = {sum(alphabet.index(c) << (5 * (9 - i)) for i, c in enumerate(one[:10])) for one in ids}
    assert all(before <= time <= after for time in times)
    assert {c for one in ids for c in one[10:]} == set(alphabet)


def rejected_id(line: dict[str, Any]) -> str | None:
    rejected = decode(line).rejected
    assert len(rejected) == 1
    return rejected[0].id


def test_the_id_of_a_rejected_row_is_told_when_the_record_could_be_read_that_far() -> None:
    assert rejected_id({"type": "Person", "data": {"name": "ana", "age": "x"}}) == "ana"
    assert rejected_id({"type": "Person", "data": {"name": "ana", "agee": 1}}) == "ana"
    assert rejected_id({"type": "Person", "data": {"name": "ana", "id": "bo"}}) == "ana"
    assert rejected_id({"type": "Person", "data": {"name": 5}}) is None
    assert rejected_id({"type": "Team", "data": {"code": 1, "region": "eu", "x": 1}}) == '["1","eu"]'
    assert rejected_id({"type": "Team", "data": {"code": 1}}) is None
    assert rejected_id({"type": "Note", "data": {"id": "n1", "text": 5}}) == "n1"
    assert rejected_id({"type": "Note", "data": {"text": 5}}) is None
    assert rejected_id({"type": "Nope", "data": {"id": "n1"}}) is None
    assert rejected_id({"edge": "Follows", "from": "a", "data": {"id": "e1"}}) == "e1"


def test_a_rejected_row_carries_its_line_its_table_and_all_it_broke() -> None:
    decoded = decode({"type": "Person", "data": {"name": 1, "age": "x"}}, "nonsense")
    first, second = decoded.rejected
    assert (first.position, first.table_key, first.type) == (1, "node:Person", "Person")
    assert [v.property for v in first.violations] == ["age", "name"]
    unsorted = decode('{"edge":"Follows","data":{"aaa":1}}').rejected[0]
    assert [v.property for v in unsorted.violations] == ["aaa", "from", "to"]
    assert (second.raw, second.table_key, second.type, second.id) == (b"nonsense", None, None, None)
