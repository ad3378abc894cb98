"""Members given twice are found at any depth, though the quick parser hides them."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from records_scene import decode

from omnigraph.records.strict import exact, parsed_members, repeated_members, written_members

pytestmark = pytest.mark.slow

# Few names, so that they repeat; and all that could mislead somebody who counts colons and quotes.
NAMES = st.sampled_from(["a", "b", "", ":", '"', "\\", '":', '\\"', "a:b", '": "', "\\\\", "é", "\n", " :"])
TEXTS = st.one_of(NAMES, st.text(max_size=6), st.text(st.sampled_from('\\":{}[], \tu0'), max_size=12))
SPACES = st.sampled_from(["", "", " ", "\t", "  ", " \r"])


@st.composite
def written_json(draw: st.DrawFn, depth: int = 3) -> str:
    """JSON text in which objects may hold a member twice, with odd white space and escapes."""
    kind = draw(st.sampled_from(["text", "number", "word", "object", "object", "array"] if depth else ["text", "word"]))
    if kind == "text":
        return json.dumps(draw(TEXTS), ensure_ascii=draw(st.booleans()))
    if kind == "number":
        return draw(st.sampled_from(["0", "-1.5e3", "12"]))
    if kind == "word":
        return draw(st.sampled_from(["true", "null"]))
    pad = draw(SPACES)
    if kind == "array":
        return f"[{f'{pad},'.join(draw(st.lists(written_json(depth=depth - 1), max_size=3)))}]"
    names = draw(st.lists(NAMES, max_size=4))
    members = [
        f"{json.dumps(name)}{draw(SPACES)}:{draw(SPACES)}{draw(written_json(depth=depth - 1))}" for name in names
    ]
    return f"{{{pad}{','.join(members)}{pad}}}"


def repeats(text: str) -> bool:
    """What a strict parser says."""
    found = False

    def pairs(members: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal found
        found |= len({name for name, _ in members}) != len(members)
        return dict(members)

    json.loads(text, object_pairs_hook=pairs)
    return found


@settings(max_examples=200, deadline=None)
@given(st.lists(written_json(), min_size=1, max_size=6))
@example(['{"a":1,"a":2}'])
@example(['{"a\\\\":1,"a\\\\":"\\":"}', '"\\\\\\""', '{":":{"\\"":[{"x" :1,"x":2}]}}'])
def test_counting_colons_outside_strings_finds_repeats_exactly_as_a_strict_parser_does(texts: list[str]) -> None:
    lines = [text.encode() for text in texts]
    written = written_members(lines)
    values = [{"data": orjson.loads(line)} for line in lines]
    # Each value stands in a record, which has one member of its own.
    counted = parsed_members(values, written + 1) - 1
    assert (written != counted).tolist() == [repeats(text) for text in texts]
    assert [bool(repeated_members(line)) for line in lines] == [repeats(text) for text in texts]


@settings(max_examples=100, deadline=None)
@given(st.lists(written_json(depth=2), min_size=1, max_size=5))
def test_the_decoder_reports_a_repeat_wherever_it_is(texts: list[str]) -> None:
    lines = [f'{{"type":"Note","data":{{"text":{text}}}}}' for text in texts]
    decoded = decode(*lines)
    twice = {v.position for v in decoded.all_listed() if v.reason == "duplicate_member"}
    assert twice == {place for place, text in enumerate(texts, 1) if repeats(text)}


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ('{"type":"Note","data":{"text":"a"},"data":{"text":"b"}}', "'data'"),
        ('{"type":"Note","data":{"text":"a","text":"b","id":"x","id":"y"}}', "'text', 'id'"),
        ('{"type":"Note","data":{"text":{"deep":[{"x":1,"x":1}]}}}', "'x'"),
        ('{"type":"Note","data":{"te\\u0078t":"a","text":"b"}}', "'text'"),
        ('{"type":"Nowhere","type":"Note","data":{"text":"a"}}', "'type'"),
        ('{"edge":"Follows","from":"a","from":"b","to":"c"}', "'from'"),
    ],
)
def test_the_repeated_members_are_named(line: str, names: str) -> None:
    assert decode(line).only().message == f"duplicate member {names}"


def test_a_repeat_is_told_beside_the_other_faults_of_its_stage() -> None:
    reasons = [v.reason for v in decode('{"type":"Nope","data":{"a":1,"a":2}}').all_listed()]
    assert reasons == ["duplicate_member", "unknown_type"]
    reasons = [v.reason for v in decode('{"type":"Note","data":{"text":"x","zz":1,"zz":2}}').all_listed()]
    assert sorted(reasons) == ["duplicate_member", "unknown_field"]
    reasons = [v.reason for v in decode('{"type":"Note","type":"Note","data":7}').all_listed()]
    assert sorted(reasons) == ["duplicate_member", "invalid_json"]


def test_integers_of_any_length_are_read_exactly_or_as_something_no_type_holds() -> None:
    assert exact(b'{"a":18446744073709551616}') == {"a": 2**64}
    assert exact(b"[" + b"7" * 10_000 + b"]")[0] > 10**300
    assert exact(b"[-" + b"7" * 10_000 + b"]")[0] < -(10**300)
    with pytest.raises(ValueError):
        exact(b"[NaN]")
