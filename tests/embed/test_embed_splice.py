"""A property set or removed inside a line: the result means what it should, and nothing else moved."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.embeddings.splice import with_property, without_property

pytestmark = pytest.mark.slow

names = st.sampled_from(["vec", "a", "data", "type", 'q"uote', "back\\slash", "é", "", "{"])
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)
datas = st.dictionaries(names, values, max_size=5)
spaces = st.sampled_from(["", " ", "\t", "  "])


@st.composite
def lines(draw: st.DrawFn) -> tuple[str, dict[str, object]]:
    """A record in one of many spellings, and its value."""
    record = {"type": "Doc", "data": draw(datas)}
    if draw(st.booleans()):
        record = dict(reversed(record.items()))
    space = draw(spaces)
    text = json.dumps(record, ensure_ascii=draw(st.booleans()), separators=(f"{space},{space}", f"{space}:{space}"))
    return f"{space}{text}{space}{draw(st.sampled_from(['', chr(10), chr(13) + chr(10)]))}", record


@settings(max_examples=120, deadline=None)
@given(lines(), names)
def test_a_property_that_is_set_has_its_value_and_all_others_theirs(line, name):
    text, record = line
    found = with_property(text.encode(), name, "[1.5,2]").decode()
    assert json.loads(found) == {**record, "data": {**record["data"], name: [1.5, 2]}}
    assert list(json.loads(found)["data"]) == list({**record["data"], name: 0})
    start = found.index("[1.5,2]")
    # Everything after the value is as it was, and everything before it but a new name.
    assert text.endswith(found[start + len("[1.5,2]") :])
    assert found[:start].startswith(text[: len(text) - len(found) + start]) or name in record["data"]


@settings(max_examples=120, deadline=None)
@given(lines(), st.data())
def test_a_property_that_is_removed_is_gone_and_all_others_stay(line, data):
    text, record = line
    if not record["data"]:
        return
    name = data.draw(st.sampled_from(sorted(record["data"])))
    found = json.loads(without_property(text.encode(), name))
    assert found == {**record, "data": {k: v for k, v in record["data"].items() if k != name}}


@settings(max_examples=60, deadline=None)
@given(lines())
def test_set_and_removed_again_the_line_is_the_same(line):
    text, _ = line
    assert without_property(with_property(text.encode(), "fresh", "[1]"), "fresh").decode() == text


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ('{"type":"D","data":{}}', '{"type":"D","data":{"vec":[1]}}'),
        ('{"type":"D","data":{ }}\r\n', '{"type":"D","data":{ "vec":[1]}}\r\n'),
        ('{"data":{"n":1.0e5, "vec" : null ,"m":007}}'.replace("007", "7"), '{"data":{"n":1.0e5, "vec" : [1] ,"m":7}}'),
        ('{"data":{"big":' + "9" * 5000 + "}}", '{"data":{"big":' + "9" * 5000 + ',"vec":[1]}}'),
        ('{"d\\u0061ta":{"v\\u0065c":[]}}', '{"d\\u0061ta":{"v\\u0065c":[1]}}'),
    ],
)
def test_spelling_numbers_and_spaces_stay_as_they_were(line, wanted):
    assert with_property(line.encode(), "vec", "[1]").decode() == wanted


@pytest.mark.parametrize("line", ['{"data":{"a":1,"a":2}}', '{"data":{},"data":{}}', '{"data":{"a":1,"\\u0061":1}}'])
def test_a_member_that_is_there_twice_is_refused(line):
    with pytest.raises(ValueError, match=r"has member '(a|data)' twice"):
        with_property(line.encode(), "vec", "[1]")


def test_a_value_that_is_nested_too_deeply_is_refused():
    line = '{"data":{"a":' + "[" * 100_000 + "]" * 100_000 + "}}"
    with pytest.raises(ValueError, match="nested too deeply"):
        with_property(line.encode(), "vec", "[1]")
