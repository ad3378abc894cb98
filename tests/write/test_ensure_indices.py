"""Declared indexes exist, cover every row, and change no answer."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from omnigraph.engine.write import ensure_indices as module
from omnigraph.engine.write.changes import Append, Overwrite, Upsert
from omnigraph.graph import Graph

pytestmark = pytest.mark.slow

SCHEMA = """
node Doc {
  code: String @key
  mail: String? @unique
  title: String? @index
  size: I32? @index
  v: Vector(4)? @index
  kind: enum(a, b)? @index
}
node Empty { name: String @key }
edge Cites: Doc -> Doc
"""
D, C = "node:Doc", "edge:Cites"
DECLARED = {
    "id_btree_idx",
    "mail_btree_idx",
    "title_btree_idx",
    "title_text_idx",
    "size_btree_idx",
    "v_vector_idx",
    "kind_btree_idx",
}


def docs(first: int, count: int, vectors: bool = True) -> pa.Table:
    ids = [f"d{n}" for n in range(first, first + count)]
    places = range(first, first + count)
    return pa.table(
        {
            "id": ids,
            "code": ids,
            "mail": [f"{n}@x" for n in places],
            "title": [f"word{n} common" for n in places],
            "size": pa.array(places, pa.int32()),
            "v": pa.array([[float(n), 1, 0, 2] if vectors else None for n in places], pa.list_(pa.float32(), 4)),
            "kind": ["a" if n % 2 else "b" for n in places],
        }
    )


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    made = Graph.init(str(tmp_path / "g"), SCHEMA)
    made.write({D: Append(docs(0, 300)), C: Append(pa.table({"id": ["c1"], "src": ["d1"], "dst": ["d2"]}))})
    return made


def coverage(graph: Graph, table_key: str = D, branch: str | None = None) -> dict[str, tuple[int, bool]]:
    """Segments of each index, and whether they cover every fragment."""
    table = graph.view(branch).table(table_key)
    fragments = set(table.fragment_rows())
    return {name: (s.segments, fragments <= s.fragment_ids) for name, s in table.index_states().items()}


def test_every_declared_index_is_built_in_one_commit(graph: Graph) -> None:
    before = len(graph.list_commits())
    done = graph.ensure_indices(actor="act-ana", message="indexes")
    newest = graph.list_commits()[0]
    assert len(graph.list_commits()) == before + 1
    assert (newest.kind, newest.graph_commit_id, newest.actor_id) == ("ensure_indices", done.commit, "act-ana")
    assert done.tables == (C, D)
    assert coverage(graph) == dict.fromkeys(DECLARED, (1, True))
    assert set(coverage(graph, C)) == {"id_btree_idx", "src_btree_idx", "dst_btree_idx"}


def test_with_nothing_to_do_there_is_no_commit(graph: Graph) -> None:
    graph.ensure_indices()
    head = graph.head_commit_id_for_branch()
    again = graph.ensure_indices()
    assert (again.commit, again.tables, again.pending) == (None, (), ())
    assert graph.head_commit_id_for_branch() == head


def test_rows_that_came_since_are_folded_in_and_found(graph: Graph) -> None:
    graph.ensure_indices()
    graph.write({D: Upsert(docs(298, 12))})
    assert not any(whole for _, whole in coverage(graph).values())
    graph.ensure_indices()
    assert coverage(graph) == {**dict.fromkeys(DECLARED, (2, True)), "title_text_idx": (1, True)}
    table = graph.view().table(D)
    for where, found in (("id = 'd305'", 1), ("size >= 299", 11), ("mail = '1@x'", 1), ("kind = 'a'", 155)):
        assert table.count_rows(where) == found
    assert table.count_rows() == 310


def test_a_text_that_was_replaced_is_not_found_by_its_old_words(graph: Graph) -> None:
    graph.ensure_indices()
    graph.write({D: Upsert(docs(7, 1).set_column(3, "title", pa.array(["another"])))})
    graph.ensure_indices()
    asked = "query q($t: String) { match { $d: Doc search($d.title, $t) } return { $d.code } }"
    assert [row["d.code"] for row in graph.query(asked, {"t": "word7"}).rows] == []
    assert [row["d.code"] for row in graph.query(asked, {"t": "another"}).rows] == ["d7"]
    assert graph.query(asked, {"t": "common"}).row_count == 299
    ranked = 'query q() { match { $d: Doc } return { $d.code } order { bm25($d.title, "word7") desc } limit 1 }'
    assert [row["d.code"] for row in graph.query(ranked).rows] != ["d7"]


def test_texts_that_are_only_added_get_a_further_part_of_the_index(graph: Graph) -> None:
    graph.ensure_indices()
    graph.write({D: Append(docs(400, 3))})
    graph.ensure_indices()
    assert coverage(graph)["title_text_idx"] == (2, True)


def test_an_index_in_many_pieces_or_mostly_new_is_built_again_whole(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SEGMENTS_MAX", 3)
    graph.ensure_indices()
    for turn in range(3):
        graph.write({D: Append(docs(1000 + turn, 1))})
        graph.ensure_indices()
    assert coverage(graph)["id_btree_idx"] == (1, True)
    graph.write({D: Append(docs(2000, 500))})
    graph.ensure_indices()
    assert coverage(graph)["size_btree_idx"] == (1, True)


def test_a_vector_index_waits_for_a_vector_and_is_reported_pending(tmp_path: Path) -> None:
    graph = Graph.init(str(tmp_path / "g"), SCHEMA)
    graph.write({D: Append(docs(0, 5, vectors=False))})
    done = graph.ensure_indices()
    assert [p.to_json() for p in done.pending] == [{"table_key": D, "property": "v", "reason": "no vectors yet"}]
    assert set(coverage(graph)) == DECLARED - {"v_vector_idx"}
    again = graph.ensure_indices()
    assert (again.commit, len(again.pending)) == (None, 1)
    graph.write({D: Append(docs(5, 5))})
    assert graph.ensure_indices().pending == ()
    assert coverage(graph)["v_vector_idx"] == (1, True)


@pytest.mark.parametrize(("directions", "reason"), [(0, "no vectors yet"), (1, "most vectors have no length")])
def test_vectors_without_length_make_no_index_and_no_failure(tmp_path: Path, directions: int, reason: str) -> None:
    graph = Graph.init(str(tmp_path / "g"), SCHEMA)
    zeros = [[float(n < directions), 0, 0, 0] for n in range(600)]
    table = docs(0, 600).set_column(5, "v", pa.array(zeros, pa.list_(pa.float32(), 4)))
    graph.write({D: Append(table)})
    for _ in range(2):
        assert [p.to_json() for p in graph.ensure_indices().pending] == [
            {"table_key": D, "property": "v", "reason": reason}
        ]
    graph.write({D: Append(docs(600, 900))})
    assert graph.ensure_indices().pending == ()
    assert coverage(graph)["v_vector_idx"] == (1, True)


def test_empty_tables_are_skipped_and_emptied_ones_too(graph: Graph) -> None:
    graph.write({D: Overwrite(docs(0, 0)), C: Overwrite(pa.table({"id": [], "src": [], "dst": []}))})
    done = graph.ensure_indices()
    assert (done.commit, done.pending) == (None, ())


def test_a_table_the_branch_only_inherits_is_not_forked_for_it(graph: Graph) -> None:
    graph.branch_create("draft")
    assert graph.ensure_indices("draft").commit is None
    graph.write({C: Append(pa.table({"id": ["c2"], "src": ["d3"], "dst": ["d4"]}))}, branch="draft")
    done = graph.ensure_indices("draft")
    assert done.tables == (C,)
    entries = graph.snapshot("draft").tables
    assert (entries[C].table_branch, entries[D].table_branch) == ("draft", None)
    assert all(whole for _, whole in coverage(graph, C, "draft").values())
    assert coverage(graph, C) == {}


def test_a_read_only_graph_builds_nothing(graph: Graph) -> None:
    with pytest.raises(Exception, match="read-only"):
        Graph.open(graph.uri, "r").ensure_indices()
