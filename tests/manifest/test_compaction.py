"""Automatic compaction of the manifest: fewer fragments, and nothing else that anybody could see."""

import pytest
from manifest_helpers import SCHEMA, people, publish, raw_manifest

from omnigraph import Graph, Settings, Upsert
from omnigraph.manifest import upkeep
from omnigraph.manifest.branches import create_manifest_branch
from omnigraph.manifest.upkeep import compact_manifest
from omnigraph.storage.failures import CommitLost

pytestmark = pytest.mark.slow

LIMIT = 8


def grown(path, fragments_max: int, commits: int) -> Graph:
    graph = Graph.init(str(path / "graph"), SCHEMA, settings=Settings(manifest_compact_fragments=fragments_max))
    for number in range(commits):
        graph.write({"node:Person": Upsert(people(f"p{number}"))}, message=f"{number}")
    return graph


def fragments(graph: Graph) -> int:
    return Graph.open(graph.uri, "r").context.manifest.state().table.fragment_count()


def test_fragments_stay_bounded_while_commits_grow(tmp_path):
    graph = grown(tmp_path, LIMIT, 0)
    seen = set()
    for number in range(3 * LIMIT):
        graph.write({"node:Person": Upsert(people(f"p{number}"))})
        seen.add(fragments(graph))
    assert max(seen) < LIMIT
    assert len(graph.list_commits()) == 3 * LIMIT + 1


def test_fragments_pile_up_below_the_setting(tmp_path):
    assert fragments(grown(tmp_path, 50, 12)) == 13


def test_compaction_keeps_every_row_with_the_version_that_brought_it(tmp_path):
    graph = grown(tmp_path, 50, 12)
    before = raw_manifest(graph.uri)
    state = graph.context.manifest.state()
    assert compact_manifest(graph.context.manifest, state, LIMIT)
    assert fragments(graph) == 1
    assert sorted(raw_manifest(graph.uri), key=lambda r: r["object_id"]) == sorted(before, key=lambda r: r["object_id"])


def test_compaction_leaves_snapshots_commits_and_time_travel_as_they_were(tmp_path):
    graph = grown(tmp_path, 50, 12)
    reader = Graph.open(graph.uri, "r")
    commits, tables = reader.list_commits(), dict(reader.snapshot().tables)
    then = {v: dict(reader.snapshot_at_version(v).tables) for v in range(1, 14)}
    compact_manifest(graph.context.manifest, graph.context.manifest.state(), LIMIT)
    for handle in (graph, reader, Graph.open(graph.uri, "r")):
        assert handle.list_commits() == commits
        assert dict(handle.snapshot().tables) == tables
        assert {v: dict(handle.snapshot_at_version(v).tables) for v in then} == then


def test_versions_made_by_a_compaction_show_the_commit_before_them(tmp_path):
    graph = grown(tmp_path, LIMIT, 2 * LIMIT)
    commits = {c.manifest_version for c in graph.list_commits()}
    between = [v for v in range(1, graph.snapshot().version + 1) if v not in commits]
    assert between
    for version in between:
        before = max(v for v in commits if v < version)
        assert graph.snapshot_at_version(version).tables == graph.snapshot_at_version(before).tables
        assert graph.snapshot_at_version(version).graph_commit_id == graph.snapshot_at_version(before).graph_commit_id


def test_publisher_that_meets_a_compaction_publishes_on_the_new_head(tmp_path):
    graph = grown(tmp_path, 50, 12)
    other = Graph.open(graph.uri)
    other.snapshot()
    compact_manifest(graph.context.manifest, graph.context.manifest.state(), LIMIT)
    landed = publish(other)
    assert landed.commit.parent_commit_id == graph.list_commits()[1].graph_commit_id
    assert len({r["object_id"] for r in raw_manifest(graph.uri)}) == len(raw_manifest(graph.uri))


@pytest.mark.parametrize("outcome", [CommitLost("lost"), False])
def test_compaction_that_fails_or_loses_changes_nothing_for_the_writer(tmp_path, outcome, monkeypatch):
    def compaction(_ref):
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    graph = grown(tmp_path, LIMIT, LIMIT - 2)
    monkeypatch.setattr(upkeep, "compact_now", compaction)
    receipts = [graph.write({"node:Person": Upsert(people(f"q{i}"))}) for i in range(4)]
    monkeypatch.undo()
    assert [c.graph_commit_id for c in graph.list_commits()[:4]] == [r.graph_commit_id for r in receipts[::-1]]
    assert fragments(graph) > LIMIT
    graph.write({"node:Person": Upsert(people("last"))})
    assert fragments(graph) == 1


def test_branch_is_compacted_by_its_own_count(tmp_path):
    graph = grown(tmp_path, 50, 3)
    create_manifest_branch(graph.context.manifest, None, "draft")
    for _ in range(LIMIT):
        publish(graph, branch="draft")
    commits = graph.list_commits("draft")
    state = graph.context.manifest.state("draft")
    assert compact_manifest(graph.context.manifest, state, LIMIT)
    fresh = Graph.open(graph.uri, "r")
    assert fresh.context.manifest.state("draft").table.fragment_count() == 1
    assert fresh.list_commits("draft") == commits
    assert fragments(graph) == 4
