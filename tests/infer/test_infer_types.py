"""The narrowest type that holds every value, and texts wherever a value would change."""

from __future__ import annotations

import pyarrow as pa
import pytest

from omnigraph.pipeline.infer.arrow_columns import column_of, plain_type
from omnigraph.pipeline.infer.draft import expression, type_text
from omnigraph.pipeline.infer.json_columns import JsonColumn
from omnigraph.pipeline.infer.profile import ColumnProfile
from omnigraph.pipeline.infer.texts import TextColumn

TEXTS = [
    (["1", "-2", "0"], "I32"),
    (["2147483647"], "I32"),
    (["2147483648"], "I64"),
    (["-2147483649"], "I64"),
    (["9223372036854775807"], "I64"),
    (["9223372036854775808"], "U64"),
    (["18446744073709551615", "1"], "U64"),
    (["18446744073709551616"], "String"),
    (["18446744073709551615", "-1"], "String"),
    (["9" * 5000], "String"),
    (["007", "008"], "String"),
    (["1", "007"], "String"),
    (["+1"], "String"),
    ([" 5"], "String"),
    (["5 "], "String"),
    (["1,234"], "String"),
    (["1_000"], "String"),
    (["٣"], "String"),
    (["-0"], "F64"),
    (["1", "2.5"], "F64"),
    (["5.0"], "F64"),
    ([".5"], "F64"),
    (["5."], "String"),
    (["1e5"], "String"),
    (["1.5e5"], "F64"),
    (["1e-05"], "F64"),
    (["1e+400"], "String"),
    (["1e-400"], "String"),
    (["0.1", "0.30000000000000004"], "F64"),
    (["0.1234567890123456789"], "String"),
    (["1.5", "9007199254740993"], "String"),
    (["NaN"], "String"),
    (["1.5", "NaN"], "String"),
    (["Infinity"], "String"),
    (["true", "FALSE", "True"], "Bool"),
    (["true", "yes"], "String"),
    (["t", "f"], "String"),
    (["0", "1"], "I32"),
    (["2024-02-29"], "Date"),
    (["2023-02-29"], "String"),
    (["01/02/2024"], "String"),
    (["20240102"], "I32"),
    (["2024-01-01T10:00:00Z"], "DateTime"),
    (["2024-01-01", "2024-01-01 10:00:00+02:00"], "DateTime"),
    (["2024-01-01T10:00:00.123456Z"], "String"),
    (["2024-01-01T10:00"], "String"),
    (["0001-01-01", "9999-12-31"], "Date"),
    (["x", None], "String?"),
    ([None, "1"], "I32?"),
    ([None, None], "String?"),
]


def texts(values: list[str | None], batches: int = 1) -> ColumnProfile:
    column = TextColumn("c", 1)
    for k in range(batches):
        column.add(pa.array(values[k::batches], pa.string()))
    return column.profile()


@pytest.mark.parametrize(("values", "wanted"), TEXTS, ids=lambda given: str(given)[:40])
def test_a_text_column_gets_the_narrowest_type_that_keeps_every_value(values, wanted):
    assert type_text(texts(values)) == wanted
    assert type_text(texts(values, batches=2)) == wanted


@pytest.mark.parametrize(
    ("type_", "wanted"),
    [("I32", "int"), ("I64", "bigint"), ("U64", "decimal(20,0)"), ("F64", "double"), ("Bool", "boolean")],
)
def test_a_text_is_cast_to_what_the_property_holds(type_, wanted):
    values = next(values for values, found in TEXTS if found == type_)
    assert expression(texts(values)) == f"cast(`c` as {wanted})"


def test_dates_and_times_stay_texts_which_the_load_reads_itself():
    assert expression(texts(["2024-01-01"])) == expression(texts(["2024-01-01T00:00:00Z"])) == "c"


@pytest.mark.parametrize("rows", [99, 100])
def test_few_values_in_a_hundred_rows_are_an_enum(rows):
    profile = texts(["b", "a"] * 50 if rows == 100 else ["b", "a"] * 49 + ["b"])
    assert type_text(profile) == ("enum(a, b)" if rows == 100 else "String")


@pytest.mark.parametrize("different", [16, 17])
def test_at_most_sixteen_values_are_an_enum(different):
    profile = texts([f"v{k % different:02}" for k in range(200)])
    assert type_text(profile).startswith("enum(v00, v01" if different == 16 else "String")


def test_values_that_an_enum_cannot_spell_stay_texts():
    assert type_text(texts(["in stock", "sold"] * 60)) == "String"


@pytest.mark.parametrize(
    ("array", "wanted", "mapped"),
    [
        (pa.array([1, 2], pa.int64()), "I32", "c"),
        (pa.array([1 << 40], pa.int64()), "I64", "c"),
        (pa.array([1 << 63], pa.uint64()), "U64", "c"),
        (pa.array([1.5], pa.float32()), "F32", "c"),
        (pa.array([1.5, None]), "F64?", "c"),
        (pa.array([True]), "Bool", "c"),
        (pa.array([1], pa.date32()), "Date", "c"),
        (pa.array([1_000], pa.timestamp("us")), "DateTime", "c"),
        (pa.array([1_001], pa.timestamp("us", "UTC")), "String", "cast(`c` as string)"),
        (pa.array([5], pa.decimal128(30, 0)), "I32", "c"),
        (pa.array([1], pa.decimal128(10, 2)), "F64", "c"),
        (pa.array([1], pa.decimal128(30, 2)), "String", "cast(`c` as string)"),
        (pa.array(["a"]).dictionary_encode(), "String", "c"),
        (pa.array(["2024-01-01"], pa.large_string()), "Date", "c"),
        (pa.array(["5"]), "String", "c"),
        (pa.array([b"x"]), "Blob", "c"),
        (pa.array([[1, 2], []]), "[I32]", "c"),
        (pa.array([["a"], None]), "[String]?", "c"),
        (pa.array([[1, None]]), "String", "to_json(`c`)"),
        (pa.array([[[1]]]), "String", "to_json(`c`)"),
        (pa.array([{"x": 1}]), "String", "to_json(`c`)"),
        (pa.nulls(2), "String?", "cast(`c` as string)"),
    ],
    ids=lambda given: str(getattr(given, "type", given)),
)
def test_a_typed_column_keeps_its_values(array, wanted, mapped):
    column = column_of("c", 1, array.type)
    column.add(array.cast(plain_type(array.type)))
    profile = column.profile()
    assert (type_text(profile), expression(profile)) == (wanted, mapped)


@pytest.mark.parametrize(
    ("values", "wanted", "mapped"),
    [
        ([1, 2], "I32", "c"),
        ([1, 1 << 63], "U64", "c"),
        ([-1, 1 << 63], "String", "cast(`c` as string)"),
        ([1, 2.5], "F64", "c"),
        ([True, False], "Bool", "c"),
        (["5", "6"], "String", "c"),
        (["2024-01-01", None], "Date?", "c"),
        ([1, "a"], "String", "c"),
        ([[1, 2], []], "[I32]", "c"),
        ([[], []], "[String]", "c"),
        ([["a"], None], "[String]?", "c"),
        ([[1, None]], "String", "to_json(`c`)"),
        ([[{"a": 1}]], "String", "to_json(`c`)"),
        ([{"a": 1}, {}], "String", "to_json(`c`)"),
        ([None], "String?", "c"),
    ],
    ids=str,
)
def test_a_member_of_json_records_keeps_its_values(values, wanted, mapped):
    column = JsonColumn("c", 1)
    column.add(values)
    profile = column.profile()
    assert (type_text(profile), expression(profile)) == (wanted, mapped)


def test_objects_that_spark_drops_are_left_out():
    column = JsonColumn("c", 1)
    column.add([{}, {"a": {}}])
    assert column.profile().left_out == "only empty objects"
