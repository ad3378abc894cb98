"""Eight processes write to one branch at once: each write is told the truth, and readers see whole commits."""

import pytest
from race_checks import assert_at_rest, assert_keys_once, assert_linear, assert_sound
from race_helpers import TABLES, WRITERS, Told, insert_same, read_at, watch_pairs, write_many

from omnigraph import Graph

pytestmark = pytest.mark.slow
COUNTS = [50, pytest.param(100, marks=[pytest.mark.full, pytest.mark.timeout(900)])]


def keys_of(writer: int, count: int) -> list[str]:
    return [f"w{writer}-{i}" for i in range(count)]


def everything(results: list[list[Told]]) -> list[Told]:
    return [told for of_writer in results for told in of_writer]


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("shape", ["one table", "own table"])
def test_every_write_is_acknowledged_or_refused_and_told_the_truth(arena, graph_uri: str, shape: str, count: int):
    each = [(graph_uri, w, keys_of(w, count), shape) for w in range(WRITERS)]
    results, _ = arena.run(write_many, each)
    told = everything(results)
    assert len(told) == WRITERS * count
    assert all(t.commit_id for t in told)
    assert_sound(graph_uri, told)


@pytest.mark.parametrize("count", COUNTS)
def test_reader_never_sees_half_of_a_commit_to_two_tables(arena, graph_uri: str, count: int):
    each = [(graph_uri, w, keys_of(w, count), "two tables") for w in range(WRITERS)]
    results, seen = arena.run(write_many, each, watch_pairs, graph_uri)
    assert seen.wrong == []
    assert seen.states > 10
    assert_sound(graph_uri, everything(results))


def test_writes_that_give_up_leave_no_row_behind(arena, graph_uri: str):
    each = [(graph_uri, w, keys_of(w, 15), "two tables", 50, 1) for w in range(WRITERS)]
    results, seen = arena.run(write_many, each, watch_pairs, graph_uri)
    told = everything(results)
    assert any(t.commit_id is None for t in told), "nobody lost a race"
    assert any(t.commit_id for t in told)
    assert seen.wrong == []
    assert_sound(graph_uri, told)


def test_automatic_compaction_of_the_manifest_changes_nothing(arena, graph_uri: str):
    each = [(graph_uri, w, keys_of(w, 12), "two tables", 8) for w in range(WRITERS)]
    results, seen = arena.run(write_many, each, watch_pairs, graph_uri)
    assert seen.wrong == []
    assert_sound(graph_uri, everything(results))
    graph = Graph.open(graph_uri, "r")
    assert graph.context.manifest.state().table.fragment_count() <= 8 + WRITERS
    for commit in graph.list_commits()[::20]:
        left, right = (read_at(graph_uri, graph.snapshot_of(commit.graph_commit_id), t) for t in TABLES)
        assert left == right


def test_each_key_that_all_writers_insert_at_once_has_exactly_one_winner(arena, graph_uri: str):
    keys = [f"k{i}" for i in range(20)]
    results, _ = arena.run(insert_same, [(graph_uri, w, keys) for w in range(WRITERS)])
    told = everything(results)
    winners = [t.key for t in told if t.commit_id]
    assert sorted(winners) == sorted(keys)
    assert len(told) == WRITERS * len(keys)
    assert_linear(graph_uri)
    assert_keys_once(graph_uri)
    assert_at_rest(graph_uri)
    snapshot = Graph.open(graph_uri, "r").snapshot()
    assert read_at(graph_uri, snapshot, "node:Left") == sorted(keys)
