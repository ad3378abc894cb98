"""Several processes use the verbs on one graph at once: what each was told stays true, and nothing is torn."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from race_checks import assert_at_rest, assert_keys_once, assert_linear
from race_helpers import CREWS, Ground
from verb_workers import (
    OTHER,
    PAIR,
    TOWN,
    Answer,
    append_the_same,
    inserted,
    join_or_delete,
    live_on_branches,
    load_onto_new_branches,
    mutate,
    write_once_prepared,
    write_or_index,
    write_pairs,
)

import omnigraph as og
from graph_places import DISK, S3, Place

pytestmark = pytest.mark.slow
FULL = [pytest.mark.full, pytest.mark.timeout(900)]


def counts(disk: int, s3: int, more: int = 6) -> Any:
    """How often each writer acts; on a server each act costs ten times what it costs on a disk."""
    longer = [pytest.param(w, n * more, marks=FULL) for w, n in ((DISK, disk), (S3, s3))]
    return pytest.mark.parametrize(("where", "count"), [(DISK, disk), (S3, s3), *longer])


@pytest.fixture
def town(where: str, place: Place) -> Iterator[Ground]:
    found = Ground(place.fresh(), place.settings, CREWS[where])
    found.init(TOWN).close()
    yield found
    place.remove(found.uri)


def race(arena: Any, town: Ground, worker: Callable[..., list[Answer]], *more: Any) -> list[Answer]:
    results, _ = arena.run(worker, [(town, writer, *more) for writer in range(town.writers)])
    return [answer for of_writer in results for answer in of_writer]


def people(graph: og.Graph, branch: str | None = None) -> dict[str, int | None]:
    rows = graph.view(branch).table("node:Person").read(["id", "age"]).to_pylist()
    assert len({row["id"] for row in rows}) == len(rows), "no id occurs twice"
    return {row["id"]: row["age"] for row in rows}


def assert_whole(town: Ground, place: Place) -> None:
    assert_linear(town)
    assert_keys_once(town)
    assert_at_rest(town, place)


def at_each_commit(graph: og.Graph) -> Iterator[tuple[og.GraphCommit, dict[str, list[dict[str, Any]]]]]:
    """Every commit of main with the rows of then, read at its own pins."""
    for commit in graph.list_commits():
        lines = b"".join(graph.export(snapshot=graph.snapshot_of(commit.graph_commit_id))).splitlines()
        rows: dict[str, list[dict[str, Any]]] = {"type": [], "edge": []}
        for row in map(json.loads, lines):
            rows["edge" if "edge" in row else "type"].append(row)
        yield commit, rows


@counts(8, 3)
def test_of_processes_that_append_the_same_keys_at_once_exactly_one_wins(
    arena: Any, town: Ground, place: Place, count: int
) -> None:
    answers = race(arena, town, append_the_same, count)
    graph = town.open("r")
    stored, commits = people(graph), {c.graph_commit_id for c in graph.list_commits()}
    assert len(stored) == 3 * count
    for number in range(count):
        of_round = [a for a in answers if a.about == f"r{number}"]
        assert Counter(a.error for a in of_round) == {"": 1, "KeyConflict": town.writers - 1}
        assert {a.commit for a in of_round if a.commit} <= commits
        (winner,) = (writer for writer, a in enumerate(of_round) if a.commit)
        assert [stored[f"r{number}-{k}"] for k in range(3)] == [winner] * 3, "a load is one file or nothing of it"
    assert_whole(town, place)


@counts(4, 2)
@pytest.mark.parametrize("verb", ["insert", "append", "merge"])
def test_without_retries_one_writer_succeeds_and_every_other_is_told_which_version_it_missed(
    arena: Any, town: Ground, place: Place, verb: str, count: int
) -> None:
    answers = race(arena, town, write_once_prepared, count, verb)
    for number in range(count):
        of_round = Counter(a.error for a in answers if a.about == f"r{number}")
        assert of_round == {"": 1, "ExpectedVersionMismatch": town.writers - 1}
    assert len(people(town.open("r"))) == count
    assert_whole(town, place)


@counts(8, 4)
def test_no_edge_survives_its_ends_while_other_processes_delete_them(
    arena: Any, town: Ground, place: Place, count: int
) -> None:
    mutate(town.open(), inserted(OTHER))
    answers = race(arena, town, join_or_delete, count)
    graph = town.open("r")
    for commit, rows in at_each_commit(graph):
        ends = {row[end] for row in rows["edge"] for end in ("from", "to")}
        missing = ends - {row["data"]["name"] for row in rows["type"]}
        assert not missing, f"commit {commit.graph_commit_id}: edges of {missing}"
    assert {a.commit for a in answers if a.commit} <= {c.graph_commit_id for c in graph.list_commits()}
    stored = people(graph)
    for number in range(count):
        of_round = [(a.about.split()[0], a) for a in answers if a.about.split()[1] == f"r{number}"]
        deleted = [a for verb, a in of_round if verb == "delete"]
        joined = [a for verb, a in of_round if verb != "delete"]
        assert {a.error for a in deleted} <= {"", "ExpectedVersionMismatch"}
        assert {a.error for a in joined} <= {"", "InvalidData"}
        # Whoever was first decided for all: the person is gone and nobody joined it, or it is there with every edge.
        first_deleted = f"r{number}" not in stored
        assert sum(bool(a.commit) for a in deleted) == first_deleted
        assert all(bool(a.commit) != first_deleted for a in joined)
    assert_whole(town, place)


@counts(9, 3)
def test_building_indexes_meanwhile_loses_no_row_and_fails_no_writer(
    arena: Any, town: Ground, place: Place, count: int
) -> None:
    answers = race(arena, town, write_or_index, count)
    assert [a for a in answers if a.error] == []
    written = {a.about.split()[1] for a in answers if not a.about.startswith("index")}
    graph = town.open()
    stored = people(graph)
    assert set(stored) == written
    assert all(a.commit for a in answers if not a.about.startswith("index"))
    graph.ensure_indices()
    for age in range(count):
        found = mutate(graph, f"update Person set {{ age: {age} }} where age = {age}").affected_nodes
        assert found == sum(held == age for held in stored.values()), "an index does not know every row"
    assert_whole(town, place)


@counts(9, 3)
def test_merges_and_mutations_of_the_same_rows_take_effect_one_after_the_other(
    arena: Any, town: Ground, place: Place, count: int
) -> None:
    town.open().mutate(f"query q() {{ {' '.join(inserted(name, 0) for name in PAIR)} }}", message="0")
    answers = race(arena, town, write_pairs, count)
    refused = [a for a in answers if a.error]
    assert {(a.about.split()[0], a.error) for a in refused} <= {("update", "ExpectedVersionMismatch")}
    ages = {a.commit: a.about.split()[1] for a in answers if a.commit}
    assert len(ages) == len(answers) - len(refused)
    graph = town.open("r")
    told = {c.graph_commit_id: c.message for c in graph.list_commits() if c.message not in (None, "0")}
    assert told == ages
    for commit, rows in at_each_commit(graph):
        held = {row["data"]["name"]: str(row["data"]["age"]) for row in rows["type"]}
        assert held == ({} if commit.parent_commit_id is None else dict.fromkeys(PAIR, commit.message))
    assert_whole(town, place)


KNOWN = {"", "Conflict", "NotFound", "ExpectedVersionMismatch", "BranchReplaced", "RowLevelCasContention"}


@counts(25, 8)
def test_first_writes_racing_with_branches_made_and_deleted_are_whole_on_the_branch_they_were_told(
    arena: Any, town: Ground, place: Place, count: int
) -> None:
    answers = race(arena, town, live_on_branches, count)
    assert [a for a in answers if a.error not in KNOWN] == []
    rows_of = {a.commit: a.about for a in answers if a.commit}
    assert rows_of, "nobody wrote anything"
    graph = town.open()
    live = graph.branch_list()[1:]
    assert not [n for n in live for m in live if n != m and n.startswith(f"{m}/")]
    for name in live:
        view = graph.view(name)
        left, right = (sorted(view.table(t).read(["id"])["id"].to_pylist()) for t in ("node:Person", "node:City"))
        history = [c.graph_commit_id for c in graph.list_commits(name)]
        assert left == right == sorted(rows_of[commit] for commit in history if commit in rows_of)
        assert {a.about for a in answers if a.commit and a.where == f"{name}@{view.incarnation}"} <= set(left)
    assert people(graph) == {}
    assert_whole(town, place)
    for name in live:
        graph.branch_delete(name)
    assert graph.branch_list() == ["main"]


@counts(4, 2)
def test_loads_that_make_the_same_branch_at_once_all_land_on_it(
    arena: Any, town: Ground, place: Place, count: int
) -> None:
    answers = race(arena, town, load_onto_new_branches, count)
    assert [a for a in answers if a.error] == []
    graph = town.open()
    for number in range(count):
        of_branch = [a for a in answers if a.where == f"new{number}"]
        assert sum(a.told == "made" for a in of_branch) == 1
        assert set(people(graph, f"new{number}")) == {f"w{writer}" for writer in range(town.writers)}
    assert people(graph) == {}
    assert_at_rest(town, place)
