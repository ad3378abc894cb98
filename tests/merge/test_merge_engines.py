"""Which engine merges, and that names which differ only in their letters' case are different properties."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from merge_scene import new_graph, people, person, rows_of, write

import omnigraph as og
from omnigraph.engine.merge.rooms import Room, Sides, choose_merge_engine, embedded_room


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    made = new_graph(tmp_path)
    people(made, None, *(person(f"p{n:03d}", a=n) for n in range(200)))
    made.branch_create("draft")
    people(made, "draft", *(person(f"p{n:03d}", a=n + 1) for n in range(20)), person("new"), delete=("p100",))
    people(made, None, person("p150", a=7))
    return made


def chosen(graph: og.Graph, engine: str = "auto", **settings: Any) -> str:
    """What is chosen for this merge under other settings; a dry run asks, and nothing is opened but this."""
    found = []

    @contextmanager
    def room(sides: Sides) -> Iterator[Room]:
        ctx = replace(sides.ctx, settings=replace(sides.ctx.settings, **settings))
        found.append(choose_merge_engine(engine, replace(sides, ctx=ctx)))
        with embedded_room(sides) as opened:
            yield opened

    asked: Any = super(og.Graph, graph)
    asked.branch_merge("draft", dry_run=True, open_room=room)
    return found[0]


def test_auto_takes_spark_from_so_many_rows_on(graph: og.Graph) -> None:
    assert chosen(graph) == "embedded"
    # 20 updated, one new and one deleted there, one updated here; an updated row is compared in both states.
    assert chosen(graph, merge_auto_spark_rows=44) == "spark"
    # The tables hold more rows than this, but no more than 44 of them are to be compared.
    assert chosen(graph, merge_auto_spark_rows=45) == "embedded"


def test_a_configured_master_or_a_clear_word_decides(graph: og.Graph) -> None:
    assert chosen(graph, spark_master="local[2]") == "spark"
    assert chosen(graph, spark_remote="sc://somewhere") == "spark"
    assert chosen(graph, "embedded", spark_master="local[2]", merge_auto_spark_rows=1) == "embedded"
    assert chosen(graph, "spark") == "spark"


def test_an_unknown_engine_is_refused_before_anything_is_read(graph: og.Graph) -> None:
    with pytest.raises(og.BadRequest, match="unknown engine 'sprak'"):
        graph.branch_merge("nowhere", engine="sprak")


def test_a_room_is_not_opened_for_nothing(graph: og.Graph) -> None:
    graph.branch_merge("draft")

    def room(sides: Sides) -> AbstractContextManager[Room]:
        raise AssertionError("nothing is left to merge")

    asked: Any = super(og.Graph, graph)
    assert asked.branch_merge("draft", open_room=room).outcome == "already_up_to_date"


def test_names_that_differ_in_case_are_merged_apart(tmp_path: Path) -> None:
    schema = "node Person { name: String @key  aB: I32?  ab: I32? }"
    graph = new_graph(tmp_path, schema)
    write(graph, None, "node:Person", [{"id": "p", "name": "p", "aB": 1, "ab": 1}])
    graph.branch_create("draft")
    write(graph, "draft", "node:Person", [{"id": "p", "name": "p", "aB": 1, "ab": 2}])
    write(graph, None, "node:Person", [{"id": "p", "name": "p", "aB": 3, "ab": 1}])
    graph.branch_merge("draft", granularity="property")
    assert rows_of(graph, "node:Person")["p"] == {"id": "p", "name": "p", "aB": 3, "ab": 2}
