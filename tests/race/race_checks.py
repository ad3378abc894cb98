"""What must hold of a graph after any race, judged from storage and from what the writers were told."""

import itertools
from collections import Counter
from collections.abc import Iterable

import lance
import orjson
from race_helpers import Told, read_at

from graph_places import Home, Place, sidecars


def assert_told_is_true(home: Home, told: Iterable[Told]) -> None:
    """Acknowledged rows and commits are there, refused ones are not, and nothing is there twice."""
    graph = home.open("r")
    answers = list(told)
    snapshot = graph.snapshot()
    commits = {c.graph_commit_id: c for c in graph.list_commits()}
    for table in {t for answer in answers for t in answer.tables}:
        stored = read_at(graph, snapshot, table)
        assert len(stored) == len(set(stored)), f"{table} holds an id twice"
        acknowledged = {a.key for a in answers if a.commit_id and table in a.tables}
        assert set(stored) == acknowledged
        assert snapshot.tables[table].row_count == len(stored)
    for answer in answers:
        if answer.commit_id:
            commit = commits[answer.commit_id]
            assert (commit.message, commit.manifest_version) == (answer.key, answer.version)
    assert len({a.commit_id for a in answers if a.commit_id}) == sum(1 for a in answers if a.commit_id)


def assert_linear(home: Home) -> None:
    """Each commit follows the one before: parent, time and version."""
    oldest_first = home.open("r").list_commits()[::-1]
    assert oldest_first[0].parent_commit_id is None
    for before, after in itertools.pairwise(oldest_first):
        assert after.parent_commit_id == before.graph_commit_id
        assert after.created_at > before.created_at
        assert after.manifest_version > before.manifest_version


def assert_keys_once(home: Home) -> None:
    """No manifest key, and so no `graph_commit:after:` key, was ever inserted twice."""
    options = home.open("r").context.root.storage_options
    dataset = lance.dataset(f"{home.uri}/__manifest", storage_options=options and dict(options))
    keys = Counter(dataset.to_table(columns=["object_id"])["object_id"].to_pylist())
    assert [key for key, count in keys.items() if count > 1] == []
    stamps = dataset.to_table(columns=["metadata"], filter="object_type = 'graph_commit'")["metadata"].to_pylist()
    ids = Counter(orjson.loads(text)["graph_commit_id"] for text in stamps)
    assert max(ids.values()) == 1


def assert_at_rest(home: Home, place: Place) -> None:
    """Every table's head is its pin and no sidecar waits."""
    status = home.open("r").status()
    drifted = [t.table_key for b in status.branches for t in b.tables if t.drifted]
    assert drifted == []
    assert status.pending == ()
    assert sidecars(place, home.uri) == []


def assert_sound(home: Home, place: Place, told: Iterable[Told]) -> None:
    assert_told_is_true(home, told)
    assert_linear(home)
    assert_keys_once(home)
    assert_at_rest(home, place)
