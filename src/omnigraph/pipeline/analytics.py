"""The same algorithms as DataFrames, for graphs that do not fit one machine."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from omnigraph.engine.analytics.call import Asked, Scope
from omnigraph.pipeline.query.frames import Reader


def values_frame(read: Reader, scope: Scope, asked: Asked) -> DataFrame:
    """`id`, `type` and `value` of every node; nodes are told apart by `key`, the pair of the two."""
    nodes = _union([_nodes(read, node.table_key, node.name) for node in scope.nodes]).localCheckpoint()
    edges = _union([_edges(read, edge.table_key, edge.src_type, edge.dst_type) for edge in scope.edges])
    there = nodes.select("key")
    edges = (
        edges.join(there.withColumnRenamed("key", "src"), "src", "left_semi")
        .join(there.withColumnRenamed("key", "dst"), "dst", "left_semi")
        .localCheckpoint()
    )
    match asked.algorithm:
        case "pagerank":
            found = _ranks(nodes, edges, asked)
        case "components":
            found = _components(nodes, edges)
        case _:
            found = _degrees(nodes, edges, asked.direction)
    return found.select(sf.col("key.id").alias("id"), sf.col("key.type").alias("type"), "value").orderBy("id", "type")


def _nodes(read: Reader, table_key: str, type_name: str) -> DataFrame:
    return read(table_key, ["id"]).select(_key("id", type_name).alias("key"))


def _edges(read: Reader, table_key: str, src_type: str, dst_type: str) -> DataFrame:
    frame = read(table_key, ["src", "dst"])
    return frame.select(_key("src", src_type).alias("src"), _key("dst", dst_type).alias("dst"))


def _key(column: str, type_name: str) -> Column:
    return sf.struct(sf.col(column).alias("id"), sf.lit(type_name).alias("type"))


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    return reduce(DataFrame.unionAll, frames)


def _degrees(nodes: DataFrame, edges: DataFrame, direction: str) -> DataFrame:
    sides = {"out": ["src"], "in": ["dst"], "both": ["src", "dst"]}[direction]
    ends = _union([edges.select(sf.col(side).alias("key")) for side in sides])
    counted = ends.groupBy("key").agg(sf.count(sf.lit(1)).alias("n"))
    return nodes.join(counted, "key", "left").select("key", sf.coalesce("n", sf.lit(0)).alias("value"))


def _ranks(nodes: DataFrame, edges: DataFrame, asked: Asked) -> DataFrame:
    count = nodes.count()
    if not count:
        return nodes.select("key", sf.lit(0.0).alias("value"))
    out = edges.groupBy(sf.col("src").alias("key")).agg(sf.count(sf.lit(1)).alias("out"))
    ranked = nodes.join(out, "key", "left").select("key", "out", sf.lit(1 / count).alias("rank")).localCheckpoint()
    for _ in range(asked.iterations):
        stranded = ranked.where(sf.col("out").isNull()).agg(sf.sum("rank")).first()
        even = (1 - asked.damping) / count + asked.damping * ((stranded and stranded[0]) or 0.0) / count
        shares = ranked.where(sf.col("out").isNotNull()).select(
            sf.col("key").alias("src"), (sf.col("rank") / sf.col("out")).alias("share")
        )
        given = edges.join(shares, "src").groupBy(sf.col("dst").alias("key")).agg(sf.sum("share").alias("given"))
        after = sf.lit(even) + sf.lit(asked.damping) * sf.coalesce("given", sf.lit(0.0))
        moved = (
            ranked.join(given, "key", "left")
            .select("key", "out", sf.col("rank").alias("before"), after.alias("rank"))
            .localCheckpoint()
        )
        change = moved.agg(sf.sum(sf.abs(sf.col("rank") - sf.col("before")))).first()
        ranked = moved.select("key", "out", "rank")
        if change is not None and change[0] < asked.tolerance:
            break
    return ranked.select("key", sf.col("rank").alias("value"))


def _components(nodes: DataFrame, edges: DataFrame) -> DataFrame:
    """Each node takes the least of its own label and its neighbours', then the label of the node it took it from."""
    both = _union([edges.select("src", "dst"), edges.select(sf.col("dst").alias("src"), sf.col("src").alias("dst"))])
    labels = nodes.select("key", sf.col("key").alias("label")).localCheckpoint()
    while True:
        near = (
            both.join(labels.withColumnRenamed("key", "dst"), "dst")
            .groupBy(sf.col("src").alias("key"))
            .agg(sf.min("label").alias("near"))
        )
        lower = labels.join(near, "key", "left").select("key", "label", sf.least("label", "near").alias("least"))
        owners = labels.select(sf.col("key").alias("least"), sf.col("label").alias("owner"))
        owned = lower.join(owners, "least")
        after = owned.select("key", "label", sf.least("least", "owner").alias("after")).localCheckpoint()
        is_done = after.where(sf.col("label") != sf.col("after")).isEmpty()
        labels = after.select("key", sf.col("after").alias("label"))
        if is_done:
            return labels.select("key", sf.col("label.id").alias("value"))
