"""Several processes write to one branch at once: each write is told the truth, and readers see whole commits."""

from typing import Any

import pytest
from race_checks import assert_at_rest, assert_keys_once, assert_linear, assert_sound
from race_helpers import TABLES, Ground, Told, insert_same, read_at, watch_pairs, write_many

from graph_places import DISK, S3, Place

pytestmark = pytest.mark.slow
FULL = [pytest.mark.full, pytest.mark.timeout(900)]
# On a server each commit costs ten times what it costs on a disk: fewer writes meet there.
COUNTS = [(DISK, 12), (S3, 6), pytest.param(DISK, 100, marks=FULL), pytest.param(S3, 25, marks=FULL)]


def keys_of(writer: int, count: int) -> list[str]:
    return [f"w{writer}-{i}" for i in range(count)]


def everything(results: list[list[Told]]) -> list[Told]:
    return [told for of_writer in results for told in of_writer]


def orders(ground: Ground, count: int, *more: Any) -> list[tuple[Any, ...]]:
    return [(ground, w, keys_of(w, count), *more) for w in range(ground.writers)]


@pytest.mark.parametrize(("where", "count"), COUNTS)
@pytest.mark.parametrize("shape", ["one table", "own table"])
def test_every_write_is_acknowledged_or_refused_and_told_the_truth(
    arena, ground: Ground, place: Place, shape: str, count: int
):
    results, _ = arena.run(write_many, orders(ground, count, shape))
    told = everything(results)
    assert len(told) == ground.writers * count
    assert all(t.commit_id for t in told)
    assert_sound(ground, place, told)


@pytest.mark.parametrize(("where", "count"), COUNTS)
def test_reader_never_sees_half_of_a_commit_to_two_tables(arena, ground: Ground, place: Place, count: int):
    results, seen = arena.run(write_many, orders(ground, count, "two tables"), watch_pairs)
    assert seen.wrong == []
    assert seen.states > min(10, ground.writers * count // 8)
    assert_sound(ground, place, everything(results))


@pytest.mark.parametrize(("where", "count"), [(DISK, 15), (S3, 4)])
def test_writes_that_give_up_leave_no_row_behind(arena, ground: Ground, place: Place, count: int):
    results, seen = arena.run(write_many, orders(ground, count, "two tables", 50, 1), watch_pairs)
    told = everything(results)
    assert any(t.commit_id is None for t in told), "nobody lost a race"
    assert any(t.commit_id for t in told)
    assert seen.wrong == []
    assert_sound(ground, place, told)


@pytest.mark.parametrize(("where", "count"), [(DISK, 12), pytest.param(S3, 6, marks=FULL)])
def test_automatic_compaction_of_the_manifest_changes_nothing(arena, ground: Ground, place: Place, count: int):
    results, seen = arena.run(write_many, orders(ground, count, "two tables", 8), watch_pairs)
    assert seen.wrong == []
    assert_sound(ground, place, everything(results))
    graph = ground.open("r")
    assert graph.context.manifest.state().table.fragment_count() <= 8 + ground.writers
    for commit in graph.list_commits()[::20]:
        left, right = (read_at(graph, graph.snapshot_of(commit.graph_commit_id), t) for t in TABLES)
        assert left == right


@pytest.mark.parametrize(("where", "count"), [(DISK, 20), (S3, 5)])
def test_each_key_that_all_writers_insert_at_once_has_exactly_one_winner(
    arena, ground: Ground, place: Place, count: int
):
    keys = [f"k{i}" for i in range(count)]
    results, _ = arena.run(insert_same, [(ground, w, keys) for w in range(ground.writers)])
    told = everything(results)
    winners = [t.key for t in told if t.commit_id]
    assert sorted(winners) == sorted(keys)
    assert len(told) == ground.writers * len(keys)
    assert_linear(ground)
    assert_keys_once(ground)
    assert_at_rest(ground, place)
    graph = ground.open("r")
    assert read_at(graph, graph.snapshot(), "node:Left") == sorted(keys)
