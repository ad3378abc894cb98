"""An index answers as a scan does, after every kind of write that follows it."""

from pathlib import Path

import pyarrow as pa
import pytest
from storage_helpers import BTREE, CASES, ID_INDEX, STAMP, START, TEXT, Case, content, land, people, rows

from omnigraph.storage.predicates import column_in
from omnigraph.storage.stage import stage_append, stage_index
from omnigraph.storage.tables import Table, open_table

pytestmark = pytest.mark.slow

FILTERS = ["n = 5", "n = 50", "n > 3", "n < 0", "n IN (1, 9, 21, 101)", "n IS NULL", "id = 'p5'", "id >= 'p4'"]
WRITES = [case for case in CASES if case.name != "index"]


@pytest.fixture(params=[None, "draft"], ids=["main", "branch"])
def indexed(request, tmp_path: Path) -> Table:
    return land(stage_index(people(tmp_path, request.param), [ID_INDEX, BTREE, TEXT], STAMP))


def answers(table: Table, where: str, *, use_index: bool) -> list[str]:
    found = table.dataset.to_table(columns=["id"], filter=where, use_scalar_index=use_index)
    return sorted(found["id"].to_pylist())


def matches(table: Table, word: str) -> list[str]:
    """Ids the full-text search gives for a word that is spelled in each row's note."""
    found = table.dataset.to_table(columns=["id"], full_text_query={"columns": ["note"], "query": word})
    return sorted(found["id"].to_pylist())


def spelled(table: Table, word: str) -> list[str]:
    stored = table.read(["id", "note"]).to_pylist()
    return sorted(r["id"] for r in stored if word in (r["note"] or "").split())


def assert_index_tells_the_truth(table: Table) -> None:
    for where in FILTERS:
        assert answers(table, where, use_index=True) == answers(table, where, use_index=False), where
    for word in ("common", "word5", "word50", "word9", "absent"):
        assert matches(table, word) == spelled(table, word), word


@pytest.mark.parametrize("case", WRITES, ids=lambda c: c.name)
def test_index_answers_as_a_scan_after(indexed: Table, case: Case):
    after = land(case.stage(indexed))
    assert content(after) == case.after
    assert_index_tells_the_truth(after)


@pytest.mark.parametrize("second", [c for c in WRITES if c.name != "append"], ids=lambda c: c.name)
def test_index_answers_as_a_scan_after_a_row_was_rewritten_and_then(indexed: Table, second: Case):
    """The second write meets fragments the index does not cover and holes in those it does."""
    first = next(case for case in CASES if case.name == "upsert")
    after = land(second.stage(land(first.stage(indexed))))
    assert_index_tells_the_truth(after)


def test_index_built_again_after_writes_covers_them(indexed: Table):
    grown = land(stage_append(indexed, rows({f"x{i}": i for i in range(20)}), STAMP))
    again = land(stage_index(grown, [ID_INDEX, BTREE, TEXT], STAMP))
    assert_index_tells_the_truth(again)
    assert sorted(i.name for i in again.dataset.describe_indices()) == ["id_btree_idx", "n_btree_idx", "note_text_idx"]


def test_look_up_by_id_finds_rows_through_the_index(indexed: Table):
    assert "ScalarIndexQuery" in indexed.dataset.scanner(filter=column_in("id", pa.array(["p3"]))).explain_plan(
        verbose=True
    )
    assert sorted(indexed.find(["p3", "p7", "nobody"], ["id"]).column("id").to_pylist()) == ["p3", "p7"]


def test_index_on_a_branch_leaves_main_without_one(tmp_path: Path):
    branch = people(tmp_path, "draft")
    land(stage_index(branch, [BTREE], STAMP))
    main = open_table(branch.ref.main, None)
    assert main.dataset.describe_indices() == []
    assert content(main) == START
