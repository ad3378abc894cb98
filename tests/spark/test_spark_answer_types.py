"""What Spark hands over becomes what a query in memory gives, type by type; Spark itself is not started."""

from __future__ import annotations

import pyarrow as pa
import pytest

from omnigraph.catalog.build import compile_source
from omnigraph.pipeline.query.run import fitted
from omnigraph.plan.check import compile_query
from omnigraph.plan.rules import planned
from omnigraph.plan.typed import ReadQuery

CATALOG = compile_source("node Doc { name: String @key  vec: Vector(2)?  tags: [String]?  big: U64?  at: DateTime? }")


def handed_over(columns: dict[str, pa.Array]) -> pa.Table:
    """The columns as they come out of a stream, which is not how they went in: an empty child has no buffer."""
    sink = pa.BufferOutputStream()
    table = pa.table(columns)
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return pa.ipc.open_stream(sink.getvalue()).read_all()


@pytest.mark.parametrize(
    "vectors", [[None], [None, None], [], [[1.0, 2.0], None], [None, [0.5, 0.5]]], ids=lambda vectors: str(vectors)
)
def test_vectors_are_vectors_even_where_all_of_them_are_null(vectors: list[list[float] | None]) -> None:
    query = compile_query(CATALOG, "query q() { match { $d: Doc } return { $d.vec, $d.tags, $d.big, $d.at } }")
    assert isinstance(query, ReadQuery)
    none = [None] * len(vectors)
    given = handed_over(
        {
            "d.vec": pa.array(vectors, pa.list_(pa.float32())),
            "d.tags": pa.array(none, pa.list_(pa.string())),
            "d.big": pa.array([2**64 - 1] * len(vectors), pa.decimal128(20, 0)),
            "d.at": pa.array(none, pa.timestamp("us", "UTC")),
        }
    )
    found = fitted(given, planned(query))

    assert found.column("d.vec").to_pylist() == vectors
    assert found.column("d.big").to_pylist() == [2**64 - 1] * len(vectors)
    assert found.schema.field("d.vec").type == pa.list_(pa.float32(), 2)
    found.validate(full=True)
