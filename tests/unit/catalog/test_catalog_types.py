"""How each property type is stored and written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from catalog_sources import LIBRARY, edge_of, node_of

from omnigraph import catalog
from omnigraph.catalog.build import compile_source


@pytest.mark.parametrize(
    ("written", "arrow"),
    [
        ("String", pa.string()), ("Bool", pa.bool_()), ("I32", pa.int32()), ("I64", pa.int64()), ("U32", pa.uint32()),
        ("U64", pa.uint64()), ("F32", pa.float32()), ("F64", pa.float64()), ("Date", pa.date32()),
        ("DateTime", pa.timestamp("ms", tz="UTC")), ("Blob", pa.large_binary()),
        ("Vector(8)", pa.list_(pa.float32(), 8)),
        ("Vector(2147483647)", pa.list_(pa.float32(), 2147483647)), ("enum(a, b)", pa.string()),
        ("[String]", pa.list_(pa.string())), ("[DateTime]", pa.list_(pa.timestamp("ms", tz="UTC"))),
    ],
)  # fmt: skip
def test_each_type_has_its_column_type_and_nullability(written: str, arrow: pa.DataType) -> None:
    node = node_of(f"a: {written}  b: {written}?")
    assert node.arrow_schema.field("a") == pa.field("a", arrow, nullable=False)
    assert node.arrow_schema.field("b") == pa.field("b", arrow, nullable=True)


@pytest.mark.parametrize("written", ["String", "[U64]?", "Vector(3)?", "enum(a, b)", "enum(a)?", "Blob?", "DateTime"])
def test_a_type_prints_as_it_is_written(written: str) -> None:
    declared = node_of(f"x: {written}").properties[0]
    assert str(declared.type) == written


def test_enum_values_are_stored_sorted() -> None:
    assert node_of("x: enum(b, 10, a, 2)").properties[0].type.enum_values == ("10", "2", "a", "b")


def test_node_columns_are_the_id_and_then_properties_by_name() -> None:
    node = node_of("zeta: I32 _a: I32 alpha: I32 aB: I32")
    assert node.arrow_schema.names == ["id", "_a", "aB", "alpha", "zeta"]
    assert node.arrow_schema.field("id") == pa.field("id", pa.string(), nullable=False)


def test_edge_columns_are_id_and_endpoints_and_then_properties_by_name() -> None:
    edge = edge_of("b: I32 a: I32?")
    assert edge.arrow_schema.names == ["id", "src", "dst", "a", "b"]
    assert [edge.arrow_schema.field(name).nullable for name in ("id", "src", "dst")] == [False, False, False]


def test_tables_are_sorted_by_key_and_hold_no_interfaces() -> None:
    library = compile_source(LIBRARY)
    assert [table.table_key for table in library.tables()] == ["edge:Wrote", "node:Author", "node:Book"]
    assert [table.kind for table in library.tables()] == ["edge", "node", "node"]
    assert all(library.arrow_schema(table.table_key) == table.arrow_schema for table in library.tables())


ALONE = """
import sys, types
package = types.ModuleType("omnigraph")
package.__path__ = [sys.argv[1]]
sys.modules["omnigraph"] = package
from omnigraph.catalog.contract import accept
accept('node A { s: String @key @check(s, "a") }', "domain")
print(sorted(set(sys.modules) & {"lance", "pyspark", "duckdb", "pandas"}))
"""


def test_compiling_a_schema_loads_no_engine() -> None:
    # The package itself may import more; what counts here is what these two rooms ask for.
    room = str(Path(catalog.__file__).parent.parent)
    ran = subprocess.run([sys.executable, "-c", ALONE, room], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
