"""What a dropped property stored: optimize leaves it out, and cleanup takes the files that still hold it."""

from __future__ import annotations

from pathlib import Path

import pytest
from optimize_scene import SCHEMA, P, exported, fragments, load, person, stored

import omnigraph as og
from index_answers import disagreements
from omnigraph.engine.upkeep import groups

pytestmark = pytest.mark.slow

SECRET = "TOPSECRET"
WITH_NOTE = SCHEMA.replace("  photo: Blob?", "  photo: Blob?\n  note: String?")


@pytest.fixture
def noted(tmp_path: Path) -> og.Graph:
    """People with a note, of whom one was deleted, in one fragment that every index covers."""
    graph = og.Graph.init(str(tmp_path / "noted"), WITH_NOTE)
    people = [person(f"p{n}", n) for n in range(40)]
    for one in people:
        one["data"]["note"] = f"{SECRET}-{one['data']['name']}"
    load(graph, tmp_path, people, index=True)
    graph.mutate('query q() { delete Person where name = "p7" }')
    assert fragments(graph)[P] == 1
    return graph


def telling(graph: og.Graph) -> list[str]:
    """Files of the graph's tables that hold a note."""
    folders = [Path(graph.uri, name) for name in ("nodes", "edges")]
    return [
        p.name
        for folder in folders
        for p in folder.rglob("*.lance")
        if p.is_file() and SECRET.encode() in p.read_bytes()
    ]


@pytest.mark.parametrize("hard", [False, True], ids=["soft", "hard"])
def test_no_byte_of_a_dropped_property_is_left_after_optimize_and_cleanup(noted: og.Graph, hard: bool) -> None:
    assert noted.schema_apply(SCHEMA, allow_data_loss=hard).applied
    assert telling(noted)
    before, told = stored(noted), exported(noted)
    result = noted.optimize()
    assert {t.table_key for t in result.tables if t.committed and t.table_key.startswith("node")} == {P}
    assert (stored(noted), exported(noted)) == (before, told)
    noted.cleanup(1, confirm=True)
    assert telling(noted) == []
    now = og.Graph.open(noted.uri)
    assert (stored(now), exported(now)) == (before, told)
    assert disagreements(now) == []
    assert og.verify(noted.uri).findings == ()
    assert now.optimize().commit is None


@pytest.mark.parametrize("deleted", [False, True])
def test_large_tables_lose_it_too_and_their_costly_indexes_answer_right(
    noted: og.Graph, monkeypatch: pytest.MonkeyPatch, deleted: bool
) -> None:
    if not deleted:
        with monkeypatch.context() as once:
            once.setattr(groups, "DELETED_SHARE_MAX", 0)
            noted.optimize()
    monkeypatch.setattr(groups, "REBUILT_ROWS_MAX", 0)
    noted.schema_apply(SCHEMA, allow_data_loss=True)
    before = stored(noted)
    noted.optimize()
    noted.cleanup(1, confirm=True)
    assert (telling(noted), stored(noted)) == ([], before)
    assert disagreements(og.Graph.open(noted.uri)) == []
    assert not any(t.unindexed_rows for b in noted.status().branches for t in b.tables)
    assert noted.optimize().commit is None


def test_a_commit_before_the_drop_is_what_it_was_after_optimize(noted: og.Graph) -> None:
    old = noted.head_commit_id_for_branch()
    noted.schema_apply(SCHEMA)
    before = exported(noted, snapshot=old)
    noted.optimize()
    assert exported(noted, snapshot=old) == before
    # The property comes back as a new one, and the old notes do not.
    noted.schema_apply(WITH_NOTE)
    asked = "query q() { match { $p: Person } return { $p.note } }"
    assert {row["p.note"] for row in noted.query(asked).rows} == {None}
    assert noted.optimize().commit is None


def test_columns_that_were_only_added_or_renamed_are_no_reason_to_rewrite(noted: og.Graph) -> None:
    noted.optimize()
    noted.schema_apply(
        WITH_NOTE.replace("note: String?", 'remark: String? @rename_from("note")\n  more: I32 @default(3)')
    )
    assert noted.optimize().commit is None
