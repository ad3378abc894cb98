"""What cleanup took is told as such by every way of reading, and never answered with other rows."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from travel_scene import NAMES, SQL, Past, add, clean, people

import omnigraph as og

pytestmark = pytest.mark.slow

Read = Callable[[og.Graph, str, int], object]
READS: dict[str, Read] = {
    "query": lambda graph, commit, _: graph.query(NAMES, snapshot=commit).rows,
    "sql": lambda graph, commit, _: graph.sql(SQL, snapshot=commit).rows,
    "export": lambda graph, commit, _: b"".join(graph.export(snapshot=commit)),
    "entity": lambda graph, _, version: graph.entity_at("node:Person", "ana", version),
    "as_of": lambda graph, commit, _: graph.query(NAMES, as_of=graph.get_commit(commit).created_at).rows,
    "table": lambda graph, commit, _: graph.view_of(None, commit)[0].table("node:Person"),
}


@pytest.fixture
def cleaned(past: Past) -> Past:
    """Only the newest commit of each branch, and the one draft began at, can still be read."""
    add(past.graph, "zoe")
    assert clean(past.graph) > 0
    return past


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_a_collected_commit_is_refused_by_every_way_of_reading(cleaned: Past, read: Read) -> None:
    version = cleaned.graph.get_commit(cleaned.ids["ana"]).manifest_version
    for mode in ("r", "rw"):
        with pytest.raises(og.Reclaimed) as found:
            read(og.Graph.open(cleaned.graph.uri, mode), cleaned.ids["ana"], version)
        assert str(found.value) == f"historical version {found.value.version} of node:Person was reclaimed"


def test_its_commit_stays_listed_and_tells_what_it_pinned(cleaned: Past) -> None:
    commit = cleaned.graph.get_commit(cleaned.ids["ana"])
    assert commit in cleaned.graph.list_commits()
    assert cleaned.graph.snapshot_of(cleaned.ids["ana"]).tables["node:Person"].row_count == 1


def test_what_was_kept_reads_as_before(cleaned: Past) -> None:
    for name in ("bo", "ed"):
        assert people(og.Graph.open(cleaned.graph.uri, "r"), snapshot=cleaned.ids[name]) == cleaned.shown[name]


def test_a_handle_that_had_it_in_memory_answers_its_rows_or_refuses(past: Past) -> None:
    graph = past.graph
    for commit in past.ids.values():
        graph.query(NAMES, snapshot=commit)
    for name in ("p", "q", "r"):
        add(graph, name)
    assert clean(graph) > 0
    for name, commit in past.ids.items():
        try:
            assert people(graph, snapshot=commit) == past.shown[name]
        except og.Reclaimed:
            continue


def test_an_export_under_way_gives_whole_lines_of_its_snapshot_or_refuses(past: Past) -> None:
    started = past.graph.export(snapshot="main~2")
    add(past.graph, "zoe")
    clean(past.graph)
    with pytest.raises(og.Reclaimed):
        list(started)


def test_a_view_knows_whether_it_can_still_be_read(past: Past) -> None:
    old, _ = past.graph.view_of(None, "main~2")
    now = past.graph.view()
    add(past.graph, "zoe")
    old.refuse_reclaimed()
    clean(past.graph)
    past.graph.view().refuse_reclaimed()
    for view in (old, now):
        with pytest.raises(og.Reclaimed):
            view.refuse_reclaimed()
