"""Spark reads the same moments as everything else does."""

from __future__ import annotations

from typing import Any

import pytest
from travel_scene import NAMES, Past, add, clean

import omnigraph as og
from omnigraph.base.clock import iso_us
from omnigraph.pipeline.frames_api import SparkGraph

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def names(frame: Any) -> list[str]:
    return sorted(row["name"] for row in frame.select("name").collect())


def test_frames_queries_and_options_take_tags_steps_and_times(past: Past, spark: Any) -> None:
    graph, frames = past.graph, SparkGraph(past.graph, spark)
    graph.tag_create("team/v1", "main~1")
    then = iso_us(graph.get_commit(past.ids["di"]).created_at)
    for target, shows in (({"snapshot": "team/v1~1"}, "ana"), ({"branch": "draft", "as_of": then}, "di")):
        assert names(frames.nodes("Person", **target)) == past.shown[shows]
        assert [r["p.name"] for r in frames.answer(NAMES, **target).rows] == past.shown[shows]
        options = {"type": "Person", **target}
        assert names(spark.read.format("omnigraph").options(**options).load(graph.uri)) == past.shown[shows]
    told = frames.answer(NAMES, branch="draft", as_of=then)
    assert told.target == {"snapshot": past.ids["di"]}


def test_two_moments_and_what_was_collected_are_refused_before_spark_is_asked(past: Past, spark: Any) -> None:
    frames = SparkGraph(past.graph, spark)
    for both in ({"snapshot": "main", "as_of": 1}, {"version": 2, "as_of": 1}):
        with pytest.raises(og.BadRequest):
            frames.nodes("Person", **both)
    add(past.graph, "zoe")
    clean(past.graph)
    with pytest.raises(og.Reclaimed):
        SparkGraph(og.Graph.open(past.graph.uri, "r"), spark).nodes("Person", snapshot=past.ids["ana"])
