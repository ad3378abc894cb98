"""`Graph.analytics`: one value for each node, as worked out plainly, in memory and on Spark."""

from __future__ import annotations

from itertools import product

import pytest
from net_strategies import SCHEMA, Net, found

import omnigraph as og
from omnigraph.base.errors import BadRequest, NotFound

CHOICES = [["Knows"], ["Lives"], ["Knows", "Lives"], ["Near", "Lives", "Knows"]]


@pytest.fixture(scope="module")
def nets(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nets")
    made = [Net(seed, size) for seed, size in ((1, 3), (2, 12), (3, 40))]
    return [(net, net.load(og.Graph.init(str(folder / f"g{at}"), SCHEMA))) for at, net in enumerate(made)]


@pytest.mark.parametrize("edges", CHOICES, ids=lambda edges: "-".join(edges))
def test_each_algorithm_says_what_was_worked_out_plainly(nets, edges):
    for net, graph in nets:
        assert found(graph.analytics("components", edges)) == net.components(edges)
        for direction in ("out", "in", "both"):
            assert found(graph.analytics("degree", edges, direction=direction)) == net.degrees(edges, direction)
        for damping, iterations in ((0.85, 20), (0.5, 3)):
            asked = {"damping": damping, "iterations": iterations, "tolerance": 0}
            ranks = found(graph.analytics("pagerank", edges, **asked))
            assert ranks == pytest.approx(net.ranks(edges, damping, iterations), abs=1e-12)
            assert sum(ranks.values()) == pytest.approx(1)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["pagerank", "components", "degree"])
def test_spark_agrees_with_memory(spark, nets, algorithm):
    _, graph = nets[1]
    edges, options = CHOICES[-1], {"iterations": 4} if algorithm == "pagerank" else {}
    here = graph.analytics(algorithm, edges, engine="embedded", **options)
    there = graph.analytics(algorithm, edges, engine="spark", **options)
    assert there.schema == here.schema
    if algorithm == "pagerank":
        assert found(there) == pytest.approx(found(here), abs=1e-9)
    else:
        assert found(there) == found(here)


def test_ranks_stop_moving_where_the_tolerance_says(nets):
    _, graph = nets[2]
    settled = found(graph.analytics("pagerank", "Knows", iterations=500, tolerance=1e-12))
    rough = found(graph.analytics("pagerank", "Knows", iterations=500, tolerance=1e-2))
    assert rough == pytest.approx(settled, abs=1e-2)
    assert rough != settled


def test_an_older_commit_and_a_branch_have_values_of_their_own_and_nothing_is_written(tmp_path):
    graph = og.Graph.init(str(tmp_path / "g"), SCHEMA)
    graph.mutate('query q() { insert Person { name: "a" } insert Person { name: "b" } }')
    graph.branch_create("draft")
    graph.mutate('query q() { insert Knows { from: "a", to: "b" } }', branch="draft")
    head = graph.head_commit_id_for_branch("main")
    alone, joined = {("a", "Person"): "a", ("b", "Person"): "b"}, {("a", "Person"): "a", ("b", "Person"): "a"}
    assert found(graph.analytics("components", "Knows")) == alone
    assert found(graph.analytics("components", "Knows", branch="draft")) == joined
    assert found(graph.analytics("components", "Knows", snapshot="draft~1")) == alone
    graph.mutate('query q() { delete Person where name = "a" }', branch="draft")
    assert found(graph.analytics("components", "Knows", branch="draft")) == {("b", "Person"): "b"}
    assert graph.head_commit_id_for_branch("main") == head


def test_large_edge_tables_go_to_spark_and_only_where_nobody_said_otherwise(nets, monkeypatch):
    _, graph = nets[2]
    small = og.Graph.open(graph.uri, "r", settings=og.Settings(cache_csr_bytes=16))
    monkeypatch.setattr(type(small.spark), "analytics", lambda *_: pytest.fail("asked Spark"))
    with pytest.raises(pytest.fail.Exception, match="asked Spark"):
        small.analytics("degree", "Knows")
    assert found(small.analytics("degree", "Knows", engine="embedded")) == found(graph.analytics("degree", "Knows"))


@pytest.mark.parametrize(
    ("algorithm", "edges", "options", "error", "text", "hint"),
    [
        ("pagerang", ["Knows"], {}, BadRequest, "unknown algorithm 'pagerang'", "pagerank"),
        ("degree", ["Know"], {}, NotFound, "there is no edge type 'Know'", "Knows"),
        ("degree", [], {}, BadRequest, "no edge type was named", "--edge"),
        ("degree", ["Knows"], {"direction": "up"}, BadRequest, "unknown direction 'up'", "out, in or both"),
        ("pagerank", ["Knows"], {"damping": 1.0}, BadRequest, "damping must be at least 0 and below 1, not 1.0", ""),
        ("pagerank", ["Knows"], {"iterations": 0}, BadRequest, "iterations must be at least 1, not 0", ""),
        ("pagerank", ["Knows"], {"tolerance": -1.0}, BadRequest, "tolerance must not be negative, and is -1.0", ""),
        ("degree", ["Knows"], {"engine": "duck"}, BadRequest, "unknown engine 'duck'", "auto, embedded or spark"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_computed_is_refused_with_a_reason(nets, algorithm, edges, options, error, text, hint):
    with pytest.raises(error) as told:
        nets[0][1].analytics(algorithm, edges, **options)
    assert str(told.value).startswith(text)
    assert hint in str(told.value.hint)


def test_an_empty_graph_has_no_values(tmp_path):
    graph = og.Graph.init(str(tmp_path / "g"), SCHEMA)
    for algorithm, edges in product(("pagerank", "components", "degree"), CHOICES):
        assert graph.analytics(algorithm, edges).rows == []
