"""Whatever is stored can be exported and loaded again, value for value."""

from __future__ import annotations

from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from records_scene import CATALOG, decode

from omnigraph.base.errors import BadRequest
from omnigraph.catalog.catalog import NodeType, TableType
from omnigraph.catalog.types import INTEGER_RANGES, PropertyType, ScalarType, arrow_type
from omnigraph.records.blobs import external_uri
from omnigraph.records.encode import export_lines, json_rows
from omnigraph.records.times import FIRST_DAY, FIRST_MS, LAST_DAY, LAST_MS

pytestmark = pytest.mark.slow


def near(*edges: int) -> st.SearchStrategy[int]:
    """Integers, most of them where things change."""
    return st.one_of(st.sampled_from(edges), st.sampled_from(edges).flatmap(lambda e: st.integers(e - 3, e + 3)))


def between(low: int, high: int, *edges: int) -> st.SearchStrategy[int]:
    return st.one_of(st.integers(low, high), near(0, low, high, *edges).filter(lambda n: low <= n <= high))


SCALARS: dict[ScalarType, st.SearchStrategy[Any]] = {
    ScalarType.STRING: st.text(),
    ScalarType.BOOL: st.booleans(),
    **{scalar: between(low, high, 2**53, 2**31, 2**63) for scalar, (low, high) in INTEGER_RANGES.items()},
    ScalarType.F32: st.floats(width=32, allow_nan=False, allow_infinity=False),
    ScalarType.F64: st.floats(allow_nan=False, allow_infinity=False),
    ScalarType.DATE: between(-(2**31), 2**31 - 1, FIRST_DAY, LAST_DAY),
    ScalarType.DATETIME: between(-(2**63), 2**63 - 1, FIRST_MS, LAST_MS, -62_104_060_800_000),
    ScalarType.BLOB: st.binary().filter(lambda content: external_uri(content) is None),
}
STORED_AS = {ScalarType.DATE: pa.int32(), ScalarType.DATETIME: pa.int64()}


def values_of(type_: PropertyType) -> st.SearchStrategy[Any]:
    if type_.is_enum:
        found: st.SearchStrategy[Any] = st.sampled_from(type_.enum_values)
    elif type_.is_vector:
        found = st.lists(SCALARS[ScalarType.F32], min_size=type_.dimension or 0, max_size=type_.dimension)
    elif type_.is_list:
        found = st.lists(SCALARS[type_.scalar], max_size=4)
    else:
        found = SCALARS[type_.scalar]
    return st.one_of(st.none(), found) if type_.nullable else found


def column(type_: PropertyType, values: list[Any]) -> pa.Array:
    if type_.scalar in STORED_AS:
        numbers = STORED_AS[type_.scalar]
        return pa.array(values, pa.list_(numbers) if type_.is_list else numbers).cast(arrow_type(type_))
    return pa.array(values, arrow_type(type_))


@st.composite
def stored_rows(draw: st.DrawFn, table: TableType) -> pa.RecordBatch:
    count = draw(st.integers(1, 4))
    columns = {
        declared.name: column(declared.type, draw(st.lists(values_of(declared.type), min_size=count, max_size=count)))
        for declared in table.properties
    }
    for name in {"id", "src", "dst"} & set(table.arrow_schema.names):
        columns[name] = pa.array(draw(st.lists(st.text(), min_size=count, max_size=count)), pa.string())
    return pa.RecordBatch.from_arrays([columns[n] for n in table.arrow_schema.names], schema=table.arrow_schema)


def loaded_again(table: TableType, rows: pa.RecordBatch | pa.Table) -> pa.RecordBatch:
    decoded = decode(*export_lines(table, rows).splitlines())
    assert decoded.told() == []
    return decoded.rows[table.table_key].drop_columns(["__position"])


def bits(batch: pa.RecordBatch) -> list[Any]:
    """Values in which both zeros differ and every date can be told."""
    found = []
    for name in batch.schema.names:
        values = batch.column(name)
        if pa.types.is_date(values.type) or pa.types.is_timestamp(values.type):
            values = values.cast(pa.int32() if pa.types.is_date(values.type) else pa.int64())
        if pa.types.is_list(values.type) and pa.types.is_temporal(values.type.value_type):
            values = values.cast(pa.list_(pa.int32() if pa.types.is_date(values.type.value_type) else pa.int64()))
        found.append(repr(values.to_pylist()))
    return found


ALL, MEMBER_OF = CATALOG.find_node("All"), CATALOG.find_edge("MemberOf")
assert ALL is not None
assert MEMBER_OF is not None


@settings(max_examples=40, deadline=None)
@given(stored_rows(ALL))
def test_a_node_of_every_type_survives_export_and_load(rows: pa.RecordBatch) -> None:
    assert ALL is not None
    again = loaded_again(ALL, rows)
    assert bits(again) == bits(rows)
    assert export_lines(ALL, again) == export_lines(ALL, rows)


@settings(max_examples=60, deadline=None)
@given(stored_rows(MEMBER_OF))
def test_an_edge_survives_export_and_load(rows: pa.RecordBatch) -> None:
    assert MEMBER_OF is not None
    assert bits(loaded_again(MEMBER_OF, rows)) == bits(rows)


def test_every_kind_of_narrow_float_survives() -> None:
    table = ALL
    assert isinstance(table, NodeType)
    patterns = np.random.default_rng(7).integers(0, 2**32, 30_000, dtype=np.uint32)
    edges = np.array([0, 1, 2**31, 2**31 + 1, 0x7F7FFFFF, 0x00800000, 0x007FFFFF, 0x3F800001, 0x4B800000], np.uint32)
    numbers = np.concatenate([patterns, edges]).view(np.float32)
    numbers = numbers[np.isfinite(numbers)]
    numbers = numbers[: len(numbers) // 3 * 3]
    matrix = pa.FixedSizeListArray.from_arrays(pa.array(numbers), 3)
    scalars = pa.array(numbers[::3])
    columns = {declared.name: pa.nulls(len(scalars), arrow_type(declared.type)) for declared in table.properties} | {
        "id": pa.array([str(n) for n in range(len(scalars))]),
        "f32": scalars,
        "v": matrix,
    }
    schema = table.arrow_schema
    rows = pa.RecordBatch.from_arrays(
        [columns[name].cast(schema.field(name).type) for name in schema.names], schema=schema
    )
    again = loaded_again(table, rows)
    for name in ("f32", "v"):
        before, after = rows.column(name), again.column(name)
        flat = (before, after) if name == "f32" else (before.flatten(), after.flatten())
        assert (flat[0].to_numpy().view(np.uint32) == flat[1].to_numpy().view(np.uint32)).all()


def one(name: str, value: Any, storage: pa.DataType | None = None) -> pa.RecordBatch:
    """One All node with one property."""
    assert ALL is not None
    schema = ALL.arrow_schema
    columns = {field.name: pa.nulls(1, field.type) for field in schema} | {"id": pa.array(["n"])}
    array = pa.array([value], storage or schema.field(name).type)
    columns[name] = array.cast(schema.field(name).type)
    return pa.RecordBatch.from_arrays([columns[field] for field in schema.names], schema=schema)


def text_of(name: str, value: Any, storage: pa.DataType | None = None) -> str:
    """How an export writes one property."""
    assert ALL is not None
    line = export_lines(ALL, one(name, value, storage)).decode()
    body = line[line.index(f'"{name}":') + len(name) + 3 :]
    return body[: body.index(',"') if ',"' in body else body.index("}")]


@pytest.mark.parametrize(
    ("name", "value", "storage", "expected"),
    [
        ("u64", 2**64 - 1, None, "18446744073709551615"),
        ("i64", -(2**63), None, "-9223372036854775808"),
        ("f32", 0.1, None, "0.1"),
        ("f64", 0.1, None, "0.1"),
        ("v", [0.1, 1.0, -0.0], None, "[0.1,1.0,-0.0]"),
        ("d", 0, pa.int32(), '"1970-01-01"'),
        ("d", FIRST_DAY, pa.int32(), '"0001-01-01"'),
        ("d", LAST_DAY, pa.int32(), '"9999-12-31"'),
        ("d", FIRST_DAY - 1, pa.int32(), str(FIRST_DAY - 1)),
        ("d", LAST_DAY + 1, pa.int32(), str(LAST_DAY + 1)),
        ("d", 2**31 - 1, pa.int32(), "2147483647"),
        ("t", 1, pa.int64(), '"1970-01-01T00:00:00.001Z"'),
        ("t", FIRST_MS, pa.int64(), '"0001-01-01T00:00:00.000Z"'),
        ("t", LAST_MS, pa.int64(), '"9999-12-31T23:59:59.999Z"'),
        ("t", LAST_MS + 1, pa.int64(), str(LAST_MS + 1)),
        ("t", -(2**63), pa.int64(), str(-(2**63))),
        ("x", b"\x00\xff", None, '"base64:AP8="'),
        ("ls", [], None, "[]"),
    ],
)
def test_an_export_writes_values_like_this(name: str, value: Any, storage: Any, expected: str) -> None:
    assert text_of(name, value, storage) == expected


def test_export_lines_have_the_members_of_their_kind_with_nulls_and_ids() -> None:
    person, follows = CATALOG.find_node("Person"), CATALOG.find_edge("Follows")
    assert person is not None
    assert follows is not None
    decoded = decode(
        '{"type":"Person","data":{"name":"ana"}}', '{"edge":"follows","from":"a","to":"b","data":{"id":"f"}}'
    )
    assert export_lines(person, decoded.rows["node:Person"]) == (
        b'{"type":"Person","data":{"id":"ana","age":null,"email":null,"name":"ana","score":null}}\n'
    )
    assert export_lines(follows, decoded.rows["edge:Follows"]) == (
        b'{"edge":"Follows","from":"a","to":"b","data":{"id":"f"}}\n'
    )
    assert export_lines(person, decoded.rows["node:Person"].slice(1)) == b""


def test_an_external_blob_is_exported_as_its_uri() -> None:
    line = b'{"type":"All","data":{"id":"n","x":"s3://ok/a"}}'
    decoded = decode(line, allowed_blob_prefixes=["s3://ok/"])
    assert ALL is not None
    exported = orjson.loads(export_lines(ALL, decoded.rows["node:All"]))
    assert exported["data"]["x"] == "s3://ok/a"


@pytest.mark.parametrize(
    "text",
    ['}},{"type":', "}},{", '"}},{"type":"All","data":{"id":"x"}}', "}\n{", '\\"},{\\"edge":', '},{"', "\u2028\r\n"],
)
def test_no_text_can_pose_as_the_end_of_a_line(text: str) -> None:
    assert ALL is not None
    lines = [{"type": "All", "data": {"id": str(n), "s": text, "ls": [text, text]}} for n in range(3)]
    rows = decode(*lines).rows["node:All"]
    exported = export_lines(ALL, rows).split(b"\n")
    assert [orjson.loads(line)["data"]["s"] for line in exported[:-1]] == [text] * 3
    assert exported[-1] == b""


def test_slices_and_chunks_export_like_whole_batches() -> None:
    assert ALL is not None
    lines = [
        {
            "type": "All",
            "data": {"id": str(n), "v": [n, n, n] if n % 2 else None, "ls": ["a"] * n, "d": n, "f32": n / 10},
        }
        for n in range(6)
    ]
    rows = decode(*lines).rows["node:All"]
    parts = export_lines(ALL, rows.slice(0, 3)) + export_lines(ALL, rows.slice(3))
    whole = export_lines(ALL, rows)
    assert whole == parts
    assert export_lines(ALL, pa.Table.from_batches([rows.slice(0, 2), rows.slice(2)])) == whole
    assert len(whole.splitlines()) == 6


@pytest.mark.parametrize(("name", "value"), [("f64", float("nan")), ("f32", float("inf")), ("lg", [1.0, float("nan")])])
def test_a_float_that_json_cannot_say_is_refused_by_name(name: str, value: Any) -> None:
    assert ALL is not None
    with pytest.raises(BadRequest, match=f"All.{name} of id 'n' is not a finite number") as caught:
        export_lines(ALL, one(name, value))
    assert caught.value.hint


def test_rows_for_programs_keep_great_integers_as_text() -> None:
    table = pa.table({
        "u": pa.array([2**53, 2**53 - 1, None], pa.uint64()),
        "l": pa.array([[2**60], [1], None], pa.list_(pa.int64())),
        "t": pa.array([0, LAST_MS + 1, None], pa.int64()).cast(pa.timestamp("ms", "UTC")),
        "v": pa.array([[0.1], [0.5], None], pa.list_(pa.float32(), 1)),
        "b": pa.array([b"\x00", b"", None], pa.large_binary()),
    })  # fmt: skip
    assert json_rows(table) == [
        {"u": "9007199254740992", "l": ["1152921504606846976"], "t": "1970-01-01T00:00:00.000Z", "v": [0.1],
         "b": "base64:AA=="},
        {"u": 2**53 - 1, "l": [1], "t": LAST_MS + 1, "v": [0.5], "b": "base64:"},
        {"u": None, "l": None, "t": None, "v": None, "b": None},
    ]  # fmt: skip
