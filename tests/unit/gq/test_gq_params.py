"""JSON parameters become typed values, or a bad request that names the parameter."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pytest
from gq_sources import CATALOG
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.base.errors import BadRequest
from omnigraph.catalog.types import PropertyType, ScalarType
from omnigraph.lang.gq import parse_queries
from omnigraph.plan.check import check_query
from omnigraph.plan.params import bind_parameters
from omnigraph.plan.typed import ParamSpec


def declared(*types: str) -> tuple[ParamSpec, ...]:
    """Parameters `x`, `y`, … of those types."""
    params = ", ".join(f"${name}: {type_}" for name, type_ in zip("xyz", types, strict=False))
    (query,) = parse_queries(f"query q({params}) {{ match {{ $p: Person }} return {{ $p }} }}").queries
    return check_query(CATALOG, query).params


def bound(type_: str, value: Any) -> Any:
    return bind_parameters(declared(type_), {"x": value})["x"]


@pytest.mark.parametrize(
    ("type_", "value", "expected"),
    [
        ("String", "ä", "ä"),
        ("String", "", ""),
        ("I32", -(2**31), -(2**31)),
        ("I32", "2147483647", 2**31 - 1),
        ("I64", "-9223372036854775808", -(2**63)),
        ("I64", 2**63 - 1, 2**63 - 1),
        ("U32", 2**32 - 1, 2**32 - 1),
        ("U64", 2**64 - 1, 2**64 - 1),
        ("U64", "18446744073709551615", 2**64 - 1),
        ("F64", 3, 3.0),
        ("F64", -0.5, -0.5),
        ("F32", 0.1, 0.10000000149011612),
        ("Bool", False, False),
        ("Date", "1970-01-02", 1),
        ("Date", "0001-01-01", -719_162),
        ("DateTime", "1970-01-01T00:00:01Z", 1_000),
        ("DateTime", "1970-01-01", 0),
        ("DateTime", "1970-01-01T01:00:00.5+01:00", 500),
        ("Blob", "base64:aGk=", b"hi"),
        ("Blob", "s3://bucket/key", "s3://bucket/key"),
        ("[String]", [], ()),
        ("[I32]", [1, "2"], (1, 2)),
        ("[Date]", ["1970-01-02"], (1,)),
        ("[F64]", (1, 2.5), (1.0, 2.5)),
        ("Vector(2)", [1, 0.5], (1.0, 0.5)),
        ("I32?", None, None),
        ("[I32]?", None, None),
        ("Vector(2)?", None, None),
    ],
)
def test_a_fitting_value_is_converted(type_: str, value: Any, expected: Any) -> None:
    found = bound(type_, value)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("type_", "value", "text"),
    [
        ("String", 3, "param 'x': expected string, got integer"),
        ("String", 3.5, "param 'x': expected string, got float"),
        ("String", True, "param 'x': expected string, got boolean"),
        ("String", ["a"], "param 'x': expected string, got array"),
        ("String", {"a": 1}, "param 'x': expected string, got object"),
        ("String", "\ud800", "param 'x': the text is not valid Unicode"),
        ("I32", 3.0, "param 'x': expected integer, got float"),
        ("I32", True, "param 'x': expected integer, got boolean"),
        ("I32", "3.0", "param 'x': expected integer, got '3.0'"),
        ("I32", " 3", "param 'x': expected integer, got ' 3'"),
        ("I32", "٣", "param 'x': expected integer, got '٣'"),
        ("I32", 2**31, "param 'x': value exceeds I32 range"),
        ("I32", "-2147483649", "param 'x': value exceeds I32 range"),
        ("I64", 2**63, "param 'x': value exceeds I64 range"),
        ("I64", "9" * 5_000, "param 'x': value exceeds I64 range"),
        ("I64", "-" + "9" * 5_000, "param 'x': value exceeds I64 range"),
        ("U32", -1, "param 'x': expected unsigned integer, got -1"),
        ("U32", "-1", "param 'x': expected unsigned integer, got '-1'"),
        ("U32", 2**32, "param 'x': value exceeds U32 range"),
        ("U64", 2**64, "param 'x': value exceeds U64 range"),
        ("U64", 1.5, "param 'x': expected unsigned integer, got float"),
        ("F64", "1.5", "param 'x': expected float, got string"),
        ("F64", True, "param 'x': expected float, got boolean"),
        ("F64", float("nan"), "param 'x': expected float, got nan"),
        ("F64", 10**400, "param 'x': value exceeds F64 range"),
        ("F32", 1e39, "param 'x': value exceeds F32 range"),
        ("Bool", 1, "param 'x': expected boolean, got integer"),
        ("Bool", "true", "param 'x': expected boolean, got string"),
        ("Date", 3, "param 'x': expected date string, got integer"),
        ("Date", "2024-02-30", "param 'x': expected date string: invalid Date literal '2024-02-30'"),
        ("DateTime", 3, "param 'x': expected datetime string, got integer"),
        ("DateTime", "noon", "param 'x': expected datetime string: invalid DateTime literal 'noon'"),
        (
            "DateTime",
            "0001-01-01T00:00:00+23:00",
            "param 'x': expected datetime string: invalid DateTime literal: outside the years 1 to 9999",
        ),
        ("Blob", 3, "param 'x': expected blob URI string, got integer"),
        ("Blob", "base64:***", "param 'x': expected blob URI string: invalid base64"),
        ("[I32]", 3, "param 'x': expected array for [I32], got integer"),
        ("[I32]", [1, "a"], "param 'x': item 1: expected integer, got 'a'"),
        ("[String]", [None], "param 'x': item 0: expected string, got null"),
        ("Vector(3)", [1, 2], "param 'x': expected 3 values for Vector(3), got 2"),
        ("Vector(3)", "x", "param 'x': expected array for Vector(3), got string"),
        ("Vector(2)", [1, "2"], "param 'x': vector element is not numeric, got string"),
        ("Vector(2)", [1, None], "param 'x': vector element is not numeric, got null"),
        ("Vector(1)", [1e39], "param 'x': value exceeds F32 range"),
        ("I32", None, "param 'x': null is not accepted for non-nullable parameter"),
        ("[I32]", None, "param 'x': null is not accepted for non-nullable parameter"),
    ],
)
def test_a_misfit_is_refused_by_name(type_: str, value: Any, text: str) -> None:
    with pytest.raises(BadRequest) as refused:
        bound(type_, value)
    assert str(refused.value) == text
    assert refused.value.hint == f"It is declared as {type_}."


def test_an_omitted_nullable_parameter_is_null() -> None:
    assert bind_parameters(declared("I32?", "String"), {"y": "a"}) == {"x": None, "y": "a"}
    assert bind_parameters(declared("I32?"), None) == {"x": None}
    assert bind_parameters((), {}) == {}


def test_a_missing_parameter_is_named() -> None:
    with pytest.raises(BadRequest, match=r"(?m)^parameter 'x' not provided$"):
        bind_parameters(declared("I32"), {})
    spec = ParamSpec("name", PropertyType(ScalarType.STRING))
    with pytest.raises(BadRequest) as refused:
        bind_parameters([spec], {"nmae": "ana"})
    assert refused.value.hint == "'nmae' was given and is not declared."


def test_undeclared_members_are_ignored_unless_they_are_objects() -> None:
    more: dict[str, Any] = {"a": 1, "b": None, "c": [1, "x", []], "d": 1.5, "e": "", "f": True}
    assert bind_parameters(declared("I32"), {"x": 1, **more}) == {"x": 1}
    for value in ({}, [{}], [[1, {"a": 1}]]):
        with pytest.raises(BadRequest, match=r"(?m)^param 'y': object is not supported$"):
            bind_parameters(declared("I32"), {"x": 1, "y": value})


@pytest.mark.parametrize("name", ["__x", "__"])
def test_reserved_names_are_refused(name: str) -> None:
    with pytest.raises(BadRequest, match=f"parameter name '{name}' is reserved"):
        bind_parameters((), {name: 1})


@pytest.mark.parametrize(
    ("given", "kind"), [([1], "array"), ("x", "string"), (3, "integer"), (True, "boolean"), (1.5, "float")]
)
def test_parameters_are_an_object_or_absent(given: Any, kind: str) -> None:
    with pytest.raises(BadRequest, match=f"parameters must be a JSON object, got {kind}"):
        bind_parameters((), given)


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=6)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=2)),
    max_leaves=5,
)
scalars = [scalar for scalar in ScalarType if scalar is not ScalarType.VECTOR]
types = st.one_of(
    st.builds(PropertyType, st.sampled_from(scalars), st.booleans(), st.booleans()),
    st.builds(PropertyType, st.just(ScalarType.VECTOR), st.booleans(), dimension=st.integers(1, 3)),
)


@settings(deadline=None, max_examples=300)
@given(st.lists(types, max_size=3), st.dictionaries(st.sampled_from(["a", "b", "c", "d", "__e"]), json_values))
def test_any_json_is_bound_or_refused_by_name(wanted: list[PropertyType], given: dict[str, Any]) -> None:
    specs = [ParamSpec(name, type_) for name, type_ in zip("abc", wanted, strict=False)]
    try:
        found = bind_parameters(specs, given)
    except BadRequest as refused:
        assert "param" in str(refused)
        return
    assert list(found) == [spec.name for spec in specs]
    assert all(found[spec.name] is not None or spec.type.nullable for spec in specs)


@pytest.mark.parametrize(
    ("type_", "value", "same"),
    [
        ("Date", date(2024, 1, 31), "2024-01-31"),
        ("DateTime", datetime(2024, 1, 31, 12, 30, 1, 250_999, tzinfo=UTC), "2024-01-31T12:30:01.250Z"),
        ("DateTime", datetime(2024, 1, 31, 1, tzinfo=timezone(timedelta(hours=2))), "2024-01-30T23:00:00Z"),
        ("DateTime", date(2024, 1, 31), "2024-01-31"),
        ("[Date]", [date(2024, 1, 31)], ["2024-01-31"]),
        ("Vector(3)", np.array([1, 0.5, 0], dtype=np.float32), [1, 0.5, 0]),
        ("Vector(3)", list(np.array([1, 0.5, 0], dtype=np.float32)), [1, 0.5, 0]),
        ("I32", np.int64(7), 7),
        ("[String]", np.array(["a", "b"]), ["a", "b"]),
    ],
)
def test_what_python_results_are_made_of_is_taken_as_its_json_would_be(type_: str, value: Any, same: Any) -> None:
    assert bound(type_, value) == bound(type_, same)


@pytest.mark.parametrize(
    ("type_", "value", "why"),
    [
        ("DateTime", datetime(2024, 1, 31), "has no time zone"),
        ("Date", datetime(2024, 1, 31, tzinfo=UTC), "invalid Date literal '2024-01-31T00:00:00.000Z'"),
        ("String", date(2024, 1, 31), "expected string, got date"),
        ("Vector(3)", np.array([1, 2]), "expected 3 values"),
        ("I32", np.float64(1.5), "expected integer, got float"),
    ],
)
def test_a_python_value_of_another_type_is_refused(type_: str, value: Any, why: str) -> None:
    with pytest.raises(BadRequest, match=re.escape(why)):
        bound(type_, value)
