"""The rules across rows are one text for both engines, and both answer it alike."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from omnigraph.engine.write.validate import rules
from omnigraph.engine.write.validate.rules import Rule
from omnigraph.sets.scratch import Relation, Scratch
from omnigraph.settings import Settings

pytestmark = [pytest.mark.spark, pytest.mark.slow]

IDS = pa.table({"id": ["a", "b", "a", "c"], "position": [1, 2, 3, 4]})
EDGES = pa.table({"id": ["e1", "e2", "e3"], "position": [1, 2, None], "endpoint": ["a", "z", "y"]})
NAMED = pa.table({"id": ["s1", "s2"], "v0": ["x", None], "v1": [1, 2]})
VALUES = pa.table({"id": ["n1", "n2", "n3"], "position": [1, 2, 3], "v0": ["x", "y", "y"], "v1": [1, 2, 2]})


def ids(*values: str) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.string())})


def sources(*values: str) -> pa.Table:
    return pa.table({"source": pa.array(values, pa.string()), "position": range(len(values))})


CASES: dict[str, tuple[Rule, Mapping[str, pa.Table]]] = {
    "repeated ids": (rules.REPEATED_IDS, {"input": IDS}),
    "superseded": (rules.SUPERSEDED, {"input": IDS}),
    "stored ids": (rules.STORED_IDS, {"input": IDS, "stored": ids("c", "x")}),
    "missing endpoints": (
        rules.MISSING_ENDPOINTS,
        {"edges": EDGES, "fresh_nodes": ids("f"), "stored_nodes": ids("a", "y"), "deleted_nodes": ids("y")},
    ),
    "refused endpoints": (rules.REFUSED_ENDPOINTS, {"missing": EDGES, "refused": IDS}),
    "surviving": (rules.surviving(["id", "v0"]), {"stored": NAMED, "gone": ids("s1")}),
    "lost": (rules.surviving(["id", "v0"], survives=False), {"stored": NAMED, "gone": ids("s1")}),
    "clashing values": (rules.clashing_values(2), {"input": VALUES, "stored": NAMED}),
    "clashing rows": (
        rules.clashing_rows(2),
        {"input": VALUES, "stored": NAMED, "clashing": pa.table({"v0": ["x", "y"], "v1": [1, 2]})},
    ),
    "cardinality": (
        rules.cardinality(1, 1),
        {"input": sources("a", "b"), "kept": sources("b", "d"), "lost": sources("c", "d")},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_both_engines_answer_a_rule_alike(spark: SparkSession, name: str) -> None:
    rule, tables = CASES[name]
    with Scratch(Settings.resolve()) as scratch:
        answer = scratch.rows(rule.sql, {key: Relation.of(table) for key, table in tables.items()})
    for key, table in tables.items():
        spark.createDataFrame(table.to_pylist(), schema=_columns(table)).createOrReplaceTempView(key)
    found = [tuple(row) for row in spark.sql(rule.sql).collect()]
    assert answer.num_rows > 0
    assert sorted(map(repr, found)) == sorted(repr(tuple(row.values())) for row in answer.to_pylist())


def _columns(table: pa.Table) -> str:
    kinds = {pa.string(): "string", pa.int64(): "bigint"}
    return ", ".join(f"{field.name} {kinds[field.type]}" for field in table.schema)
