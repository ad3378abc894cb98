"""Several processes merge, revert, reset, write, make and delete the same branches at once.

Afterwards every commit of every branch is explained by what its author says it did to its parents, what was
acknowledged is in the history it was told, and nothing is in anybody's way.
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from history_workers import PASSING, SETTINGS, STAYING, Answer, enter, life_of, live
from state_model import COLUMNS, SCHEMA, Commit, Content, Line, M, Model, P, T, empty, net, three_way

import omnigraph as og
from omnigraph.manifest import store
from omnigraph.storage.tables import Table, TableRef
from processes import FORKED

pytestmark = pytest.mark.slow
WORKERS = 4
KNOWN = {
    "Conflict",
    "NotFound",
    "BadRequest",
    "MergeConflicts",
    "ExpectedVersionMismatch",
    "BranchReplaced",
    "RowLevelCasContention",
}
SEED = 'insert Person { name: "ana", age: 1 } insert Person { name: "bo" } insert Team { code: "core" }'
NEXT = 'query q() { insert Person { name: "next" } }'


def raced(uri: str, turns: int) -> list[Answer]:
    gate = FORKED.Barrier(WORKERS)
    with ProcessPoolExecutor(WORKERS, FORKED, initializer=enter, initargs=(gate,)) as pool:
        running = [pool.submit(live, uri, worker, turns) for worker in range(WORKERS)]
        return [answer for future in running for answer in future.result(timeout=600)]


def read(graph: og.Graph, commit: str) -> Content:
    view = graph.view_of(None, commit)[0]
    tables = {key: view.table(key).read(["id", *columns]).to_pylist() for key, columns in COLUMNS.items()}
    return {key: {r["id"]: tuple(r[c] for c in COLUMNS[key]) for r in rows} for key, rows in tables.items()}


def remembered(graph: og.Graph) -> tuple[Model, dict[str, og.GraphCommit]]:
    """Every live branch with every commit it can see."""
    model, known = Model(), {}
    for name in graph.branch_list():
        for commit in reversed(graph.list_commits(name)):
            id_ = commit.graph_commit_id
            if id_ not in known:
                known[id_] = commit
                parents = commit.parent_commit_id, commit.merged_parent_commit_id
                where = commit.manifest_branch or "main"
                model.commits[id_] = Commit(id_, *parents, read(graph, id_), where, commit.manifest_version)
        head = graph.head_commit_id_for_branch(name)
        assert head is not None
        model.branches[name] = Line(head)
    return model, known


def explained(model: Model, commit: og.GraphCommit, seen: Counter[str]) -> bool:
    """Whether the content of a commit is what it says it made of its parents'."""
    here = model.commits[commit.graph_commit_id]
    before = model.commits[here.parent].content if here.parent else empty()
    ours = commit.metadata.get("omnigraph") or {}
    seen[commit.kind or ""] += 1
    match commit.kind:
        case "init":
            return here.content == empty()
        case "mutation":
            return mutated(before, here.content, commit.message or "")
        case "revert":
            undone = model.commits[ours["revert"]["graph_commit_id"]]
            assert undone.parent is not None
            back = model.commits[undone.parent].content
            return three_way(undone.content, back, before, False, lambda _: None).content == here.content
        case "reset":
            return here.content == model.commits[ours["reset"]["graph_commit_id"]].content
        case "merge":
            return merged(model, here, before, ours["merge"]["strategy"], seen)
    # Whoever lost a race undid what it had done.
    return commit.is_roll_back and here.content == before


def mutated(before: Content, after: Content, message: str) -> bool:
    verb, row, *more = message.split()
    found = [(n.table_key, n.op) for n in net(before, after)]
    match verb:
        case "seed":
            return before == empty()
        case "insert":
            return (
                found == [(M, "insert"), (P, "insert"), (T, "insert")] and {row} == after[P].keys() - before[P].keys()
            )
        case "age":
            return after[P][row][0] == int(more[0]) and found in ([], [(P, "update")])
    gone = before[P].keys() - after[P].keys()
    return gone == {row} and {op for _, op in found} == {"delete"} and {key for key, _ in found} <= {M, P}


def merged(model: Model, here: Commit, before: Content, strategy: str, seen: Counter[str]) -> bool:
    assert here.parent is not None
    if here.merged not in model.commits or lost_ancestors(model, here):
        # What it was compared with went with a branch.
        seen["merge of what is gone"] += 1
        return True
    base = model.commits[model.base(here.parent, here.merged)].content
    source = model.commits[here.merged].content
    return three_way(base, source, before, False, lambda _: strategy).content == here.content


def lost_ancestors(model: Model, here: Commit) -> bool:
    waiting, known = list(here.parents), set()
    while waiting:
        at = waiting.pop()
        if at not in model.commits:
            return True
        if at not in known:
            known.add(at)
            waiting += model.commits[at].parents
    return False


def check_answers(graph: og.Graph, answers: list[Answer]) -> None:
    assert [a for a in answers if a.error and a.error not in KNOWN] == []
    histories = {
        f"{name}@{life_of(graph, name)}": {c.graph_commit_id for c in graph.list_commits(name)}
        for name in graph.branch_list()
    }
    told = [a for a in answers if a.commit and a.where in histories]
    assert [a for a in told if a.commit not in histories[a.where]] == [], "acknowledged, and not in its history"
    assert any(a.where.startswith("main@") for a in told)
    made = Counter(a.commit for a in answers if a.commit)
    assert max(made.values()) == 1


def check_at_rest(graph: og.Graph) -> None:
    status = graph.status()
    assert status.pending == ()
    assert [t.table_key for b in status.branches for t in b.tables if t.drifted] == []


def check_goes_on(graph: og.Graph) -> None:
    """Every branch takes the next write, and all can be deleted, those made last first."""
    for name in graph.branch_list():
        try:
            graph.mutate(NEXT, branch=name)
        except og.Conflict as error:
            # A fork that a lost first write left, on a branch that took another version over meanwhile.
            assert "run omnigraph cleanup" in str(error)
            graph.cleanup(keep=1_000_000, confirm=True)
            assert graph.mutate(NEXT, branch=name).commit
    check_at_rest(graph)
    for _ in range(3):
        for name in graph.branch_list()[1:]:
            try:
                graph.branch_delete(name)
            except og.Conflict as error:
                assert "still depends on it" in str(error)
    assert graph.branch_list() == ["main"]


@pytest.mark.parametrize("turns", [40, pytest.param(120, marks=[pytest.mark.full, pytest.mark.timeout(1800)])])
def test_histories_that_several_processes_make_at_once_explain_every_commit(tmp_path: Path, turns: int) -> None:
    graph = og.Graph.init(str(tmp_path / "graph"), SCHEMA, settings=SETTINGS)
    graph.mutate(f"query q() {{ {SEED} }}", message="seed it")
    for name in (*STAYING[1:], *PASSING):
        graph.branch_create(name)
    answers = raced(graph.uri, turns)

    graph = og.Graph.open(graph.uri, settings=SETTINGS)
    print(Counter((a.verb, a.error or "done") for a in answers))
    check_answers(graph, answers)
    check_at_rest(graph)
    model, known = remembered(graph)
    seen: Counter[str] = Counter()
    assert [c for c in known.values() if not explained(model, c, seen)] == []
    print(seen)
    assert seen["merge"] > seen["merge of what is gone"]
    check_goes_on(graph)


@pytest.mark.parametrize("again", [False, True], ids=["deleted", "deleted and made again"])
def test_a_branch_that_goes_while_it_is_read_is_told_as_it_is_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, again: bool
) -> None:
    graph = og.Graph.init(str(tmp_path / "graph"), SCHEMA, settings=SETTINGS)
    graph.branch_create("draft")
    graph.mutate(NEXT, branch="draft")
    reader = og.Graph.open(graph.uri, "r", settings=SETTINGS)
    plain = store.open_newest
    waiting = [graph]

    def opened_too_early(ref: TableRef, *more: str) -> Table:
        table = plain(ref, *more)
        if ref.branch == "draft" and waiting:
            other = waiting.pop()
            other.branch_delete("draft")
            if again:
                other.branch_create("draft")
        return table

    monkeypatch.setattr(store, "open_newest", opened_too_early)
    if again:
        assert reader.snapshot("draft").tables[P].row_count == 0
    else:
        with pytest.raises(og.NotFound, match="branch 'draft' not found"):
            reader.snapshot("draft")
    assert not waiting
