"""What a query answers: the same rows as Python values, Arrow, pandas, JSON or HTML."""

from __future__ import annotations

import gc
import sys
from datetime import UTC, date, datetime
from decimal import Decimal

import orjson
import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.catalog.types import PropertyType, ScalarType
from omnigraph.engine.read.result import QueryResult

TABLE = pa.table({"name": ["ana", "bo"], "age": pa.array([31, None], pa.int32())})


def result(rows, **more) -> QueryResult:
    return QueryResult(rows, query_name="q", target={"branch": "main"}, graph_commit_id="01C", **more)


def stream(batches: int = 3, fails: bool = False) -> pa.RecordBatchReader:
    schema = pa.schema([("n", pa.int64())])

    def made():
        for number in range(batches):
            yield pa.record_batch([pa.array([number, number + 100])], schema=schema)
        if fails:
            raise AssertionError("read too far")

    return pa.RecordBatchReader.from_batches(schema, made())


def json_of(*arrays: pa.Array) -> list[list[object]]:
    table = pa.table(list(arrays), names=[f"c{n}" for n in range(len(arrays))])
    told = orjson.loads(orjson.dumps(result(table).to_json()))
    return [list(row.values()) for row in told["rows"]]


def test_rows_are_dicts_in_the_order_of_the_columns():
    found = result(TABLE)
    assert found.columns == ["name", "age"]
    assert found.rows == [{"name": "ana", "age": 31}, {"name": "bo", "age": None}]
    assert (found.row_count, len(found), list(found)) == (2, 2, found.rows)


def test_types_are_those_of_the_schema():
    types = (PropertyType(ScalarType.STRING), PropertyType(ScalarType.I32, nullable=True))
    assert [str(t) for t in result(TABLE, types=types).types] == ["String", "I32?"]


def test_rows_hold_python_values():
    moment = datetime(2024, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)
    table = pa.table(
        {
            "d": [date(2024, 1, 2)],
            "t": pa.array([moment], pa.timestamp("ms", tz="UTC")),
            "v": pa.array([[1.0, 2.0]], pa.list_(pa.float32(), 2)),
            "b": pa.array([b"x"], pa.large_binary()),
            "h": pa.array([Decimal(5)], pa.decimal128(38, 0)),
            "m": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int32())),
        }
    )
    assert result(table).rows == [
        {"d": date(2024, 1, 2), "t": moment, "v": [1.0, 2.0], "b": b"x", "h": 5, "m": {"k": 1}}
    ]


def test_a_moment_no_python_date_can_hold_is_its_integer():
    table = pa.table({"d": pa.array([10**7], pa.date32()), "t": pa.array([10**15], pa.timestamp("ms", tz="UTC"))})
    assert result(table).rows == [{"d": 10**7, "t": 10**15}]
    assert result(table).to_json()["rows"] == [{"d": 10**7, "t": 10**15}]


def test_json_is_the_body_of_the_http_interface():
    assert result(TABLE).to_json() == {
        "query_name": "q",
        "target": {"branch": "main"},
        "graph_commit_id": "01C",
        "row_count": 2,
        "columns": ["name", "age"],
        "rows": [{"name": "ana", "age": 31}, {"name": "bo", "age": None}],
    }


def test_json_integers_beyond_doubles_are_text():
    edge = 2**53 - 1
    numbers = pa.array([edge, -edge, edge + 1, -edge - 1, None], pa.int64())
    assert [row[0] for row in json_of(numbers)] == [edge, -edge, str(edge + 1), str(-edge - 1), None]
    assert json_of(pa.array([2**64 - 1], pa.uint64()), pa.array([[edge + 1]])) == [[str(2**64 - 1), [str(edge + 1)]]]


@pytest.mark.parametrize("type_", [pa.float32(), pa.float64()])
def test_json_floats_that_are_no_numbers_are_text(type_):
    odd = [float("nan"), float("inf"), float("-inf"), 0.5, None]
    told = ["NaN", "Infinity", "-Infinity", 0.5, None]
    assert [row[0] for row in json_of(pa.array(odd, type_))] == told
    assert json_of(pa.array([odd, None], pa.list_(type_))) == [[told], [None]]
    assert json_of(pa.array([odd[:2], None, [0.5, 1.0]], pa.list_(type_, 2))) == [[told[:2]], [None], [[0.5, 1.0]]]


def test_json_keeps_the_shortest_digits_of_narrow_floats():
    assert json_of(pa.array([0.1, float("nan"), 0.2], pa.float32())) == [[0.1], ["NaN"], [0.2]]


def test_json_dates_and_moments_are_text():
    row = json_of(
        pa.array([date(2024, 1, 2)]),
        pa.array([datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)], pa.timestamp("ms", tz="UTC")),
        pa.array([[date(2024, 1, 2)]]),
        pa.array([{"d": date(2024, 1, 2)}]),
    )
    assert row == [["2024-01-02", "2024-01-02T03:04:05.000Z", ["2024-01-02"], {"d": "2024-01-02"}]]


def test_json_has_a_value_for_every_type_of_sql():
    row = json_of(
        pa.array([Decimal("1.50")], pa.decimal128(5, 2)),
        pa.array([Decimal(10**30)], pa.decimal128(38, 0)),
        pa.array([Decimal("12345678901234567890.5")], pa.decimal128(30, 1)),
        pa.array([pa.MonthDayNano([1, 2, 3_000_000_000])], pa.month_day_nano_interval()),
        pa.array(["x"]).dictionary_encode(),
        pa.array([{"f": float("nan"), "b": b"x"}]),
        pa.array([b"x"]),
        pa.nulls(1),
        pa.array([[("k", 2**60)]], pa.map_(pa.string(), pa.int64())),
    )
    assert row == [
        [
            1.5,
            str(10**30),
            "12345678901234567890.5",
            "1 months 2 days 0:00:03",
            "x",
            {"f": "NaN", "b": "base64:eA=="},
            "base64:eA==",
            None,
            {"k": str(2**60)},
        ]
    ]


def test_a_stream_is_read_piece_by_piece():
    found = result(stream(fails=True))
    batches = found.to_batches()
    assert next(batches).to_pydict() == {"n": [0, 100]}
    assert repr(found) == "<QueryResult q: a stream of rows, 1 column, from branch main>"


def test_a_stream_that_was_read_is_gone():
    found = result(stream())
    assert sum(batch.num_rows for batch in found.to_batches()) == 6
    for again in (found.to_arrow, found.to_batches, lambda: found.rows, found.to_json, lambda: len(found)):
        with pytest.raises(og.BadRequest, match="already read as a stream"):
            again()


def test_a_stream_whose_rows_were_asked_for_is_kept():
    found = result(stream())
    assert [row["n"] for row in found] == [0, 100, 1, 101, 2, 102]
    assert (found.row_count, found.to_json()["row_count"], found.to_arrow().num_rows) == (6, 6, 6)
    assert [batch.num_rows for batch in found.to_batches()] == [2, 2, 2]


def test_a_result_without_rows_is_true_and_says_so():
    found = result(TABLE.slice(0, 0))
    assert found
    assert (found.rows, found.row_count, found.to_json()["rows"]) == ([], 0, [])
    assert list(result(pa.table({"n": pa.array([], pa.int64())})).to_batches()) == []
    assert repr(found) == "<QueryResult q: 0 rows, 2 columns, from branch main>"


def test_a_frame_is_a_frame():
    assert result(TABLE).to_pandas()["name"].tolist() == ["ana", "bo"]


def test_polars_is_asked_for_in_words(monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(og.Unavailable, match="polars is not installed") as told:
        result(TABLE).to_polars()
    assert "pip install polars" in told.value.hint


def test_a_notebook_shows_escaped_rows_and_their_number():
    shown = result(pa.table({"<b>": ["<script>alert(1)</script>", None]}))._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown
    assert "<th>&lt;b&gt;</th>" in shown
    assert "<td>null</td>" in shown
    assert "2 rows from branch main via q" in shown


def test_a_notebook_shows_fifty_rows_at_most():
    shown = result(pa.table({"n": list(range(120))}))._repr_html_()
    assert shown.count("<tr>") == 51
    assert "120 rows from branch main via q, the first 50 shown" in shown
    assert result(stream(60))._repr_html_().count("<tr>") == 51


def test_what_kept_rows_lie_in_is_freed_with_the_result():
    class Kept:
        schema = TABLE.schema
        num_rows = 2

        def batches(self):
            return iter(TABLE.to_batches())

    freed: list[bool] = []
    found = result(Kept(), on_gone=lambda: freed.append(True))
    assert (found.row_count, [row["name"] for row in found], freed) == (2, ["ana", "bo"], [])
    del found
    gc.collect()
    assert freed == [True]
