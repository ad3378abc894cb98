"""The commit tables: they may lag or be lost, they catch up in batches, and they decide nothing."""

import shutil
from pathlib import Path

import lance
import pytest
from manifest_helpers import SCHEMA, commit_ids, people
from projection_children import open_and_close

from omnigraph import Graph, Settings, Unavailable, Upsert
from omnigraph.manifest import projections
from processes import FORKED

pytestmark = pytest.mark.slow

COMMITS, ACTORS = "_graph_commits.lance", "_graph_commit_actors.lance"


@pytest.fixture
def graph(tmp_path) -> Graph:
    return Graph.init(str(tmp_path / "graph"), SCHEMA, settings=Settings(projections_max_lag=4))


def write(graph: Graph, *names: str, actor: str | None = None) -> list[str]:
    return [graph.write({"node:Person": Upsert(people(n))}, actor=actor).graph_commit_id for n in names]


def projected(graph: Graph) -> list[dict]:
    return lance.dataset(f"{graph.uri}/{COMMITS}").to_table().to_pylist()


def projected_ids(graph: Graph) -> list[str]:
    return [row["graph_commit_id"] for row in projected(graph)]


def acting(graph: Graph) -> list[tuple[str, str]]:
    return [tuple(row.values()) for row in lance.dataset(f"{graph.uri}/{ACTORS}").to_table().to_pylist()]


def lag(graph: Graph) -> int:
    return graph.status().branches[0].projection_lag


def test_commit_tables_lag_behind_and_catch_up_in_one_batch_at_the_limit(graph: Graph):
    start = lance.dataset(f"{graph.uri}/{COMMITS}").version
    lags = []
    for name in "abcdefgh":
        write(graph, name)
        lags.append(lag(graph))
    assert lags == [1, 2, 3, 0, 1, 2, 3, 0]
    assert lance.dataset(f"{graph.uri}/{COMMITS}").version == start + 2


def test_list_of_commits_never_misses_what_the_commit_tables_lack(graph: Graph):
    made = write(graph, "a", "b")
    assert set(projected_ids(graph)).isdisjoint(made)
    for handle in (graph, Graph.open(graph.uri, "r")):
        assert commit_ids(handle)[:2] == made[::-1]
        assert handle.get_commit(made[0]).graph_commit_id == made[0]


@pytest.mark.parametrize("how", ["close", "open", "refresh"])
def test_close_open_and_refresh_bring_them_up_to_date(graph: Graph, how: str):
    write(graph, "a", "b")
    match how:
        case "close":
            graph.close()
        case "open":
            Graph.open(graph.uri)
        case "refresh":
            graph.refresh()
    assert projected_ids(graph) == commit_ids(graph)[::-1]


def test_read_only_handle_never_writes_them(graph: Graph):
    write(graph, "a")
    before = lance.dataset(f"{graph.uri}/{COMMITS}").version
    with Graph.open(graph.uri, "r") as reader:
        reader.refresh()
        reader.list_commits()
    assert lance.dataset(f"{graph.uri}/{COMMITS}").version == before


def test_rows_of_the_commit_table_say_what_the_manifest_says(graph: Graph):
    write(graph, "a", "b", actor="ana")
    graph.close()
    told = [
        {
            "graph_commit_id": c.graph_commit_id,
            "manifest_branch": None,
            "manifest_version": c.manifest_version,
            "parent_commit_id": c.parent_commit_id,
            "merged_parent_commit_id": None,
            "created_at": c.created_at,
        }
        for c in graph.list_commits()[::-1]
    ]
    assert projected(graph) == told


def test_actor_table_is_made_with_the_first_acting_commit_and_holds_only_those(graph: Graph):
    write(graph, "a")
    graph.close()
    assert not Path(graph.uri, ACTORS).exists()
    by_ana = write(graph, "b", actor="ana")
    write(graph, "c")
    graph.close()
    assert acting(graph) == [(by_ana[0], "ana")]


@pytest.mark.parametrize("lost", [COMMITS, ACTORS])
def test_deleted_commit_table_is_made_again_whole(graph: Graph, lost: str):
    made = write(graph, "a", "b", actor="ana")
    graph.close()
    shutil.rmtree(Path(graph.uri, lost))
    assert commit_ids(Graph.open(graph.uri, "r"))[:2] == made[::-1]
    healed = Graph.open(graph.uri)
    assert projected_ids(healed) == commit_ids(healed)[::-1]
    assert acting(healed) == [(commit, "ana") for commit in made]


def test_write_succeeds_though_the_commit_tables_are_torn(graph: Graph):
    write(graph, "a")
    graph.close()
    for version in Path(graph.uri, COMMITS, "_versions").glob("*.manifest"):
        version.write_bytes(b"torn")
    made = write(graph, *"bcdefgh")
    graph.close()
    assert commit_ids(graph)[:7] == made[::-1]


def test_failure_of_the_commit_tables_never_decides_a_write(graph: Graph, monkeypatch):
    def broken(*_):
        raise Unavailable("no room", what="disk")

    monkeypatch.setattr(projections, "append_if_head", broken)
    made = write(graph, *"abcdefgh")
    graph.close()
    monkeypatch.undo()
    assert commit_ids(graph)[:8] == made[::-1]
    graph.close()
    assert projected_ids(graph) == commit_ids(graph)[::-1]


def test_rows_nobody_knows_are_kept(graph: Graph):
    """Catching up adds rows and never removes any."""
    graph.close()
    stranger = {**projected(graph)[0], "graph_commit_id": "01HZZZZZZZZZZZZZZZZZZZZZZX"}
    dataset = lance.dataset(f"{graph.uri}/{COMMITS}")
    row = dataset.to_table().slice(0, 0).from_pylist([stranger], dataset.schema)
    lance.write_dataset(row, dataset.uri, mode="append")
    made = write(graph, "a", "b")
    graph.close()
    assert set(projected_ids(graph)) == {stranger["graph_commit_id"], *commit_ids(graph)}
    assert commit_ids(graph)[:2] == made[::-1]
    assert stranger["graph_commit_id"] not in commit_ids(graph)


def test_handles_that_catch_up_at_one_moment_add_each_commit_once(graph: Graph):
    write(graph, "a", "b", "c")
    start = FORKED.Barrier(4)
    others = [FORKED.Process(target=open_and_close, args=(graph.uri, start)) for _ in range(4)]
    for other in others:
        other.start()
    for other in others:
        other.join(60)
        assert other.exitcode == 0
    assert sorted(projected_ids(graph)) == sorted(commit_ids(graph))
