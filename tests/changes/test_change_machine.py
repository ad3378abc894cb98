"""Diffs, blocks, histories and feeds agree with a plain record of every commit, whatever was done in which order."""

from __future__ import annotations

import itertools
from contextlib import suppress
from typing import Any

import pytest
from changes_scene import SCHEMA, K, P, Told, edges, op_of, people, stored
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import omnigraph as og
from omnigraph.engine.changes.model import Block

_ids = st.sampled_from(["a", "b", "c", "d", "é", "z" * 300, "z" * 300 + "y"])
_people = st.lists(
    st.fixed_dictionaries({"id": _ids, "age": st.integers(0, 2)}), min_size=1, max_size=4, unique_by=lambda r: r["id"]
)
_edges = st.lists(
    st.fixed_dictionaries({"id": _ids, "src": _ids, "dst": _ids, "since": st.none() | st.integers(0, 1)}),
    min_size=1,
    max_size=3,
    unique_by=lambda r: r["id"],
)
_gone = st.lists(_ids, min_size=1, max_size=3, unique=True)
_steps = st.one_of(
    st.fixed_dictionaries({"put": _people}),
    st.fixed_dictionaries({"put": _people, "link": _edges}),
    st.fixed_dictionaries({"drop": _gone, "cut": _gone}),
    st.fixed_dictionaries({"compact": st.just(True)}),
    st.fixed_dictionaries({"index": st.just(True)}),
    st.fixed_dictionaries({"merge": st.sampled_from(["main", "b1", "b2"])}),
    st.fixed_dictionaries({"back": st.integers(0, 3)}),
)
_branches = st.sampled_from(["main", "main", "b1", "b2"])


def act(graph: og.Graph, branch: str, step: dict[str, Any]) -> None:
    if "index" in step:
        graph.ensure_indices(branch)
        return
    if "merge" in step:
        if step["merge"] != branch and step["merge"] in graph.branch_list():
            # Edges may lose their ends in a merge, which refuses it: then nothing was committed.
            with suppress(og.MergeConflicts):
                graph.branch_merge(step["merge"], branch, strategy="theirs")
        return
    if "back" in step:
        chain = graph.list_commits(branch)
        with suppress(og.MergeConflicts):
            graph.branch_reset(branch, chain[min(step["back"], len(chain) - 1)].graph_commit_id)
        return
    changes: dict[str, Any] = {}
    if "compact" in step:
        changes = {P: og.Compact()}
    if "put" in step:
        changes[P] = og.Upsert(people(graph, step["put"]))
    if "link" in step:
        changes[K] = og.Upsert(edges(graph, step["link"]))
    for key, ids in ((P, step.get("drop", ())), (K, step.get("cut", ()))):
        here = tuple(name for name in ids if name in stored(graph, branch, key))
        if here:
            changes[key] = og.Delete(here)
    if changes:
        graph.write(changes, branch=branch, message=f"on {branch}", actor="act-ana")


def grown(graph: og.Graph, steps: list[tuple[str, dict[str, Any]]]) -> Told:
    told = Told()
    told.note(graph, "main")
    for branch, step in steps:
        if branch not in told.heads:
            source = "b1" if branch == "b2" and "b1" in told.heads else "main"
            graph.branch_create_from(source, branch)
            told.heads[branch] = told.heads[source]
        act(graph, branch, step)
        told.note(graph, branch)
    return told


def flat(changes: Any) -> list[tuple[str, str, str, dict[str, Any] | None, dict[str, Any] | None]]:
    """What was told, in the order it was told: table, id, op, and the ages or years of both images."""
    return [(c.table_key, c.id, c.op, _values(c.before), _values(c.after)) for c in changes]


def _values(image: Any) -> dict[str, Any] | None:
    return (
        None if image is None else {"ends": image.endpoints, **{n: image.properties.get(n) for n in ("age", "since")}}
    )


def wanted(told: Told, one: str, two: str) -> list[tuple[str, str, str, Any, Any]]:
    net = told.net(one, two)
    return [(key, name, op_of(pair), _row(key, pair[0]), _row(key, pair[1])) for (key, name), pair in net.items()]


def _row(key: str, row: dict[str, Any] | None) -> dict[str, Any] | None:
    if row is None:
        return None
    ends = (row["src"], row["dst"]) if key == K else None
    return {"ends": ends, "age": row.get("age"), "since": row.get("since")}


def check_diffs(graph: og.Graph, told: Told) -> None:
    targets = sorted(told.states)
    for at, one in enumerate(targets):
        two = targets[(at * 3 + 1) % len(targets)]
        found = graph.diff(one, two)
        assert flat(found.changes) == sorted(wanted(told, one, two), key=lambda c: (c[0], c[1].encode()))
        assert graph.diff(one, two, stats_only=True).stats.to_json() == found.stats.to_json()
        ops = [change.op for change in found.changes]
        counts = {"inserts": ops.count("insert"), "updates": ops.count("update"), "deletes": ops.count("delete")}
        types = sorted({c.type_name for c in found.changes})
        assert found.stats.to_json() == {**counts, "types_affected": types}


def pages(graph: og.Graph, commit_id: str, limit: int) -> list[Any]:
    block = graph.commit_changes(commit_id, limit=limit)
    found = list(block.changes)
    while block.next_page_token is not None:
        block = graph.commit_changes(commit_id, limit=limit, page_token=block.next_page_token)
        assert block.changes
        found += block.changes
    return found


def check_blocks(graph: og.Graph, told: Told, branch: str) -> None:
    chain = told.chain(branch)
    for parent, commit in itertools.pairwise(chain):
        assert flat(pages(graph, commit, 2)) == wanted(told, parent, commit)


def check_feed(graph: og.Graph, told: Told, branch: str, limit: int, commits: int) -> None:
    chain = told.chain(branch)
    page = graph.changes_poll(branch=branch, start="beginning", limit=limit, commits=commits)
    blocks: list[Block] = list(page.blocks)
    for _ in range(500):
        if page.next_page_token is not None:
            page = graph.changes_poll(branch=branch, page_token=page.next_page_token, limit=limit, commits=commits)
        elif not page.caught_up:
            page = graph.changes_poll(branch=branch, cursor=page.cursor, limit=limit, commits=commits)
        else:
            break
        blocks += page.blocks
    seen: dict[str, list[Any]] = {}
    for block in blocks:
        seen.setdefault(block.cause.graph_commit_id, []).extend(block.changes)
    assert list(seen) == chain[1:]
    for parent, commit in itertools.pairwise(chain):
        assert flat(seen[commit]) == wanted(told, parent, commit)


def check_histories(graph: og.Graph, told: Told, branch: str) -> None:
    chain = told.chain(branch)
    expected: dict[tuple[str, str], list[Any]] = {}
    for parent, commit in itertools.pairwise(chain):
        for key, name, op, before, after in wanted(told, parent, commit):
            expected.setdefault((key, name), []).insert(0, (commit, op, before, after))
    for (key, name), lives in expected.items():
        found = graph.history(key, name, branch=branch)
        assert [(p.cause.graph_commit_id, p.op, _values(p.before), _values(p.after)) for p in found if p.cause] == lives
        assert not any(past.reclaimed for past in found)


@pytest.mark.slow
@settings(max_examples=12, deadline=None, phases=[Phase.generate], database=None)
@given(steps=st.lists(st.tuples(_branches, _steps), min_size=3, max_size=10), limit=st.integers(1, 5))
def test_every_view_of_the_past_tells_what_was_committed(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, dict[str, Any]]], limit: int
) -> None:
    graph = og.Graph.init(str(tmp_path_factory.mktemp("any") / "graph"), SCHEMA)
    told = grown(graph, steps)
    check_diffs(graph, told)
    for branch in told.heads:
        check_blocks(graph, told, branch)
        check_feed(graph, told, branch, limit, commits=1 + limit % 3)
        check_histories(graph, told, branch)
