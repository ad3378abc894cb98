"""Which physical indexes a declaration asks for."""

from __future__ import annotations

import pytest
from catalog_sources import edge_of, node_of

from omnigraph.catalog.catalog import DeclaredIndex, TableType, declared_indexes


def beyond_own(table: TableType) -> list[tuple[str, str]]:
    own = {"id", "src", "dst"}
    return [(index.column, index.kind) for index in declared_indexes(table) if index.column not in own]


def test_every_node_table_indexes_its_id() -> None:
    assert declared_indexes(node_of("")) == (DeclaredIndex("id", "btree"),)


def test_every_edge_table_indexes_its_id_and_endpoints() -> None:
    found = declared_indexes(edge_of("@unique(src) @unique(src, dst)"))
    assert found == tuple(DeclaredIndex(column, "btree") for column in ("id", "src", "dst"))


@pytest.mark.parametrize("mark", ["@index", "@key", "@unique"])
@pytest.mark.parametrize("type_", ["I32", "U64", "F32", "Bool", "Date", "DateTime", "enum(a)"])
def test_a_single_number_time_or_enum_gets_a_btree(type_: str, mark: str) -> None:
    assert beyond_own(node_of(f"x: {type_} {mark}")) == [("x", "btree")]


def test_an_indexed_text_gets_a_btree_and_full_text() -> None:
    assert beyond_own(node_of("x: String? @index")) == [("x", "btree"), ("x", "fulltext")]


def test_a_unique_text_gets_a_btree() -> None:
    assert beyond_own(node_of("x: String @unique")) == [("x", "btree")]


def test_a_text_key_needs_no_index_of_its_own() -> None:
    assert beyond_own(node_of("x: String @key")) == []


def test_a_text_that_is_unique_and_indexed_gets_each_index_once() -> None:
    assert beyond_own(node_of("x: String @unique @index")) == [("x", "btree"), ("x", "fulltext")]


def test_an_indexed_vector_gets_a_vector_index() -> None:
    assert beyond_own(node_of("x: Vector(4) @index")) == [("x", "vector")]


def test_several_columns_together_build_nothing() -> None:
    assert beyond_own(node_of("a: I32 b: String @key(a, b) @unique(a, b) @index(a, b)")) == []


def test_edge_properties_are_indexed_too() -> None:
    assert beyond_own(edge_of("year: I32 @index")) == [("year", "btree")]
