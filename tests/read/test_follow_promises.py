"""What a handle keeps in memory follows every commit of every branch, and never shows that it was there."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.settings import Settings

pytestmark = pytest.mark.slow

SCHEMA = """
node Person { name: String @key  age: I32?  city: String? @index  vec: Vector(2)? @index }
node Team { code: String @key }
edge Follows: Person -> Person { weight: F64? }
edge MemberOf: Person -> Team
"""
ASKED = (
    'query a() { match { $p: Person { name: "p3" } } return { $p.name, $p.age, $p.city } }',
    "query b() { match { $p: Person $p.age >= 3 } return { $p.name, $p.city } order { $p.name } }",
    "query c() { match { $p: Person $p $w:follows $q } return { $p.name, $q.name, $w.weight } "
    "order { $p.name, $q.name, $w.weight } }",
    'query d() { match { $p: Person { name: "p1" } $p follows{1,3} $q } return { $q.name, $q.age } order { $q.name } }',
    "query e() { match { $p: Person not { $p memberOf $_ } } return { $p.name } order { $p.name } }",
    "query f() { match { $q <follows> $p } return { $p.city, count($q) as n, max($q.age) as top } order { n, top } }",
    "query g() { match { $p: Person } return { $p.name, nearest($p.vec, [1.0, 0.5]) as far } order { far } limit 4 }",
    'query h() { match { $p: Person search($p.city, "fox") } return { $p.name } order { $p.name } }',
    'query i() { match { $p: Person $p follows $q } return { $q.name, bm25($p.city, "red fox") as s } order { s } }',
)
CITIES = ("red fox", "foxes", "blue")
BRANCHES = ("main", "draft")


def changed(graph: og.Graph, choose: random.Random, step: int) -> None:
    """One commit of some kind on some branch."""
    branch = choose.choice(BRANCHES)
    one, other = (f"p{choose.randrange(8)}" for _ in range(2))
    person = f'name: "{one}" age: {step} city: "{CITIES[step % 3]}" vec: [1.0, {step}.5]'
    acts: list[Callable[[], Any]] = [
        lambda: graph.mutate(f"query m() {{ insert Person {{ {person} }} }}", branch=branch),
        lambda: graph.mutate(
            f'query m() {{ update Person set {{ age: {step} }} where name = "{one}" }}', branch=branch
        ),
        lambda: graph.mutate(f'query m() {{ delete Person where name = "{one}" }}', branch=branch),
        lambda: graph.mutate(
            f'query m() {{ insert Follows {{ from: "{one}" to: "{other}" weight: {step}.5 }} }}', branch=branch
        ),
        lambda: graph.mutate(f'query m() {{ delete Follows where from = "{one}" }}', branch=branch),
        lambda: graph.mutate(f'query m() {{ insert MemberOf {{ from: "{one}" to: "t" }} }}', branch=branch),
        lambda: graph.write({"node:Person": og.Compact(), "edge:Follows": og.Compact()}, branch=branch),
        lambda: graph.ensure_indices(branch),
    ]
    try:
        choose.choices(acts, weights=[4, 4, 2, 8, 1, 2, 1, 1])[0]()
    except (og.NotFound, og.KeyConflict, og.InvalidData, og.BadRequest):
        # An edge without its ends or a person who is there already is no commit, which is as good.
        return


@pytest.mark.parametrize(
    ("mode", "seed", "steps"),
    [
        ("auto", 11, 12),
        ("csr", 12, 12),
        *(pytest.param("auto", seed, 60, marks=[pytest.mark.full, pytest.mark.slow]) for seed in range(20, 30)),
    ],
)
def test_a_handle_that_follows_every_commit_gives_what_a_fresh_one_reads(
    tmp_path: Path, mode: str, seed: int, steps: int
) -> None:
    graph = og.Graph.init(str(tmp_path / "graph"), SCHEMA, settings=Settings(storage_durability="os"))
    seven = " ".join(f'insert Person {{ name: "p{n}" age: {n} vec: [{n}.0, 1.0] }}' for n in range(7))
    ring = " ".join(f'insert Follows {{ from: "p{n}" to: "p{(n + 1) % 7}" weight: 0.{n} }}' for n in range(7))
    graph.mutate(f'query m() {{ {seven} insert Team {{ code: "t" }} {ring} }}')
    graph.branch_create("draft")
    follower = og.Graph.open(graph.uri, "r", settings=Settings(read_traversal_mode=mode))
    old = graph.head_commit_id_for_branch() or ""
    first = [follower.query(source).rows for source in ASKED]
    choose = random.Random(seed)

    for step in range(steps):
        changed(graph, choose, step)
        fresh = og.Graph.open(graph.uri, "r", settings=Settings(read_traversal_mode="indexed"))
        for branch in BRANCHES:
            for source in ASKED:
                found = follower.query(source, branch=branch).rows
                assert found == fresh.query(source, branch=branch).rows, f"step {step} on {branch}: {source}"

    assert len(graph.list_commits()) + len(graph.list_commits("draft")) >= steps // 2
    assert [follower.query(source, snapshot=old).rows for source in ASKED] == first, "an old commit stays as it was"
    assert [follower.query(source).rows for source in ASKED] != first


def test_a_branch_that_was_made_anew_shows_nothing_of_its_namesake(tmp_path: Path) -> None:
    graph = og.Graph.init(str(tmp_path / "graph"), SCHEMA, settings=Settings(storage_durability="os"))
    graph.mutate('query m() { insert Person { name: "p1" age: 1 } insert Person { name: "p3" age: 1 } }')
    follower = og.Graph.open(graph.uri, "r", settings=Settings(read_traversal_mode="csr"))
    for life in range(3):
        graph.branch_create("draft")
        graph.mutate(f'query m() {{ update Person set {{ age: {life + 10} }} where name = "p3" }}', branch="draft")
        if life != 1:
            graph.mutate('query m() { insert Follows { from: "p1" to: "p3" } }', branch="draft")
        age, walk = (follower.query(ASKED[n], branch="draft").rows for n in (0, 3))

        assert [row["p.age"] for row in age] == [life + 10]
        assert [row["q.age"] for row in walk] == ([] if life == 1 else [life + 10])
        graph.branch_delete("draft")
        with pytest.raises(og.NotFound, match="branch 'draft' not found"):
            follower.query(ASKED[0], branch="draft")
