"""Stored columns under the names of today: found by what they are, not by what they were called."""

from __future__ import annotations

import pickle
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import omnigraph as og
from omnigraph.base.columns import PROPERTY_ID
from omnigraph.storage.shapes import Shape, ShapedDataset, shape_of
from omnigraph.storage.tables import open_table


def column(name: str, type_: pa.DataType, id: int | None = None, *, nullable: bool = True) -> pa.Field:
    metadata = None if id is None else {PROPERTY_ID: str(id)}
    return pa.field(name, type_, nullable, metadata)


ID = column("id", pa.string(), nullable=False)
STORED = pa.schema([ID, column("age", pa.int32(), 7), column("bio", pa.string(), 8), column("gone", pa.string(), 9)])
ROWS = {"id": ["a", "b"], "age": [1, 2], "bio": ["it's `years`", "y"], "gone": ["p", "q"]}
DECLARED = pa.schema(
    [
        ID,
        column("years", pa.int32(), 7),
        column("about", pa.string(), 8),
        column("age", pa.int32(), 20),
        column("gone", pa.int64(), 21, nullable=False),
        column("on", pa.bool_(), 22),
        column("face", pa.list_(pa.float32(), 3), 23),
        column("tags", pa.list_(pa.string()), 24),
        column("ratio", pa.float32(), 25),
        column("seen", pa.timestamp("ms", tz="UTC"), 26),
        column("born", pa.date32(), 27),
        column("big", pa.uint64(), 28),
        column("photo", pa.large_binary(), 29),
    ]
)


def shape() -> Shape:
    found = shape_of(STORED, DECLARED)
    assert found is not None
    return found


@pytest.fixture
def dataset(tmp_path: Path) -> ShapedDataset:
    table = pa.table(ROWS, schema=STORED)
    return ShapedDataset(lance.write_dataset(table, str(tmp_path / "t"), enable_stable_row_ids=True), shape())


def test_columns_are_found_by_their_property_and_never_by_the_name_of_another() -> None:
    known = {name: stored for name, stored in shape().by_name.items() if stored is not None}
    assert known == {"id": "id", "years": "age", "about": "bio"}


def test_a_column_without_an_id_is_found_by_its_name() -> None:
    plain = pa.schema([field.remove_metadata() for field in STORED])
    assert shape_of(plain, STORED) is None
    assert shape_of(STORED, plain) is None
    found = shape_of(plain, pa.schema([ID, column("age", pa.int32(), 7), column("new", pa.string(), 30)]))
    assert found is not None
    assert found.by_name == {"id": "id", "age": "age", "new": None}


@given(st.permutations(list(STORED)))
def test_the_order_of_columns_makes_no_shape(fields: list[pa.Field]) -> None:
    assert shape_of(pa.schema(fields), STORED) is None


def test_what_is_not_stored_is_null_and_may_be_though_the_schema_requires_it() -> None:
    assert shape().schema.field("gone").nullable
    assert not shape().schema.field("id").nullable


def test_rows_are_shown_under_the_declared_names(dataset: ShapedDataset) -> None:
    found = dataset.to_table()
    assert found.schema.names == DECLARED.names
    assert found.select(["id", "years", "about", "age", "face"]).to_pylist() == [
        {"id": "a", "years": 1, "about": "it's `years`", "age": None, "face": None},
        {"id": "b", "years": 2, "about": "y", "age": None, "face": None},
    ]
    read = dataset.scanner(["face", "_rowid"]).to_reader().read_all()
    assert read.to_pylist() == [{"face": None, "_rowid": 0}, {"face": None, "_rowid": 1}]
    assert dataset._take_rows([1, 0], ["face", "years"]).to_pylist() == [
        {"face": None, "years": 2},
        {"face": None, "years": 1},
    ]


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ("`about` = 'it''s `years`'", ["a"]),
        ("`years` IN (2)", ["b"]),
        ("`age` = 1", []),
        ("`age` IS NULL", ["a", "b"]),
        ("(NOT (`age` > 3)) OR `years` = 1", ["a"]),
        ("`on`", []),
        ("NOT `on`", []),
        ("`about` LIKE 'y%'", ["b"]),
        ("`face` IS NULL", ["a", "b"]),
        ("`tags` IS NOT NULL", []),
        ("`photo` IS NOT NULL", []),
        ("CAST(`ratio` AS DOUBLE) > 1.5", []),
        ("`seen` > TIMESTAMP '2020-01-01 00:00:00.000'", []),
        ("`born` = DATE '2020-01-01'", []),
        ("`big` >= 18446744073709551615", []),
        ("`gone` < 3", []),
        ("_rowaddr IN (1)", ["b"]),
    ],
)
def test_filters_mean_what_they_would_if_columns_were_stored_as_declared(
    dataset: ShapedDataset, where: str, ids: list[str]
) -> None:
    assert dataset.to_table(["id"], where).column("id").to_pylist() == ids
    assert dataset.count_rows(where) == len(ids)


def test_indexes_go_by_the_declared_names_and_those_of_hidden_columns_are_not_there(dataset: ShapedDataset) -> None:
    for name in ("age", "gone"):
        dataset.stored.create_scalar_index(name, "BTREE")
    assert [index.field_names for index in dataset.describe_indices()] == [["years"]]
    assert dataset.to_table(["id"], "`years` = 2").column("id").to_pylist() == ["b"]
    assert dataset.to_table(["id"], "`gone` = 3").num_rows == 0


def test_a_shape_travels_to_another_process() -> None:
    assert pickle.loads(pickle.dumps(shape())).by_name == shape().by_name


def test_every_way_of_writing_keeps_which_property_a_column_is(tmp_path: Path) -> None:
    graph = og.Graph.init(
        str(tmp_path / "g"), "node P { name: String @key  age: I32?  face: Vector(2)?  tags: [String]? }"
    )
    key = "node:P"
    declared = graph.catalog.arrow_schema(key)
    assert len({field.metadata[PROPERTY_ID.encode()] for field in declared if field.metadata}) == 4

    def rows(*names: str) -> pa.Table:
        return pa.table({"id": list(names), "name": list(names)})

    def kept(branch: str = "main") -> bool:
        entry = graph.snapshot(branch).tables[key]
        ref = graph.context.ref(entry.location, entry.table_branch)
        return bool(open_table(ref, entry.table_version).schema.equals(declared, check_metadata=True))

    assert kept()
    changes = [
        og.Append(rows("a", "b")),
        og.Upsert(rows("b", "c")),
        og.Delete(("a",)),
        og.Compact(),
        og.Overwrite(rows("x")),
        og.Overwrite(rows()),
    ]
    for change in changes:
        graph.write({key: change})
        assert kept(), change
    graph.branch_create("side")
    graph.write({key: og.Append(rows("z"))}, branch="side")
    assert kept("side")
    graph.branch_merge("side")
    graph.ensure_indices()
    graph.optimize()
    assert kept()
