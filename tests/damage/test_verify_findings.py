"""Every way a graph can be harmed is found by verify, and previews of its repair change nothing on disk."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from damage_scene import (
    CITY,
    KNOWS,
    LIVES,
    PERSON,
    SCHEMA,
    contents,
    copy_of,
    insert,
    kinds,
    lose,
    pinned,
    ref_of,
    reopened,
    repair,
    verify,
)
from harms import (
    broken_sidecar,
    cut_data_file,
    dangling_edge,
    dead_load,
    dropped_index,
    edited_schema,
    foreign_append,
    foreign_compaction,
    foreign_compaction_of_a_fork,
    foreign_delete,
    foreign_key,
    garbled_state,
    garbled_tag,
    invented_commit,
    late_effect,
    lost_data_file,
    lost_deletion_file,
    lost_index_file,
    lost_index_folder,
    lost_manifest_file,
    lost_pin,
    lost_schema,
    newer_stamp,
    not_unique,
    out_of_range,
    pending_sidecar,
    repeated_id,
    stray_folder,
    stray_fork,
    swapped_index,
    tag_of_nothing,
    too_many,
    torn_above,
    torn_manifest,
    torn_manifest_head,
    torn_pin,
    unreadable_history,
    wrong_count,
)

import omnigraph as og
from omnigraph.manifest import layout
from omnigraph.storage.inventory import RecordedFile, recorded_files

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Case:
    harm: Callable[[og.Graph], None]
    finding: str
    table_key: str | None
    says: str
    branch: str = "main"


CASES = [
    Case(lost_data_file, "missing_data_file", PERSON, "which is missing"),
    Case(cut_data_file, "missing_data_file", PERSON, "bytes, recorded are"),
    Case(lost_deletion_file, "missing_data_file", KNOWS, "_deletions/"),
    Case(lost_index_file, "missing_index", PERSON, "id_btree_idx"),
    Case(lost_index_folder, "missing_index", PERSON, "bio_text_idx"),
    Case(dropped_index, "missing_index", PERSON, "id_btree_idx"),
    Case(swapped_index, "index_mismatch", KNOWS, "answers otherwise than the rows"),
    Case(torn_above, "unreadable_above_pin", PERSON, "torn"),
    Case(torn_pin, "pin_unreadable", PERSON, "torn"),
    Case(lost_pin, "pin_unreadable", PERSON, "cannot be opened"),
    Case(torn_manifest_head, "unreadable_above_pin", "__manifest", "torn"),
    Case(torn_manifest, "manifest_unreadable", "__manifest", "cannot be"),
    Case(lost_manifest_file, "manifest_unreadable", "__manifest", "cannot be read"),
    Case(newer_stamp, "manifest_unreadable", "__manifest", "upgrade omnigraph first"),
    Case(foreign_append, "drift_data", PERSON, "(Append)"),
    Case(foreign_delete, "drift_data", PERSON, "(Delete)"),
    Case(foreign_compaction, "drift_maintenance", PERSON, "Rewrite"),
    Case(foreign_compaction_of_a_fork, "drift_maintenance", PERSON, "Rewrite", "draft"),
    Case(unreadable_history, "drift_unverifiable", PERSON, "cannot be read"),
    Case(late_effect, "late_effects", PERSON, "landed late"),
    Case(wrong_count, "content_mismatch", PERSON, "the manifest says 5"),
    Case(repeated_id, "content_mismatch", PERSON, "'p01' occurs 2 times"),
    Case(dangling_edge, "dangling_edge", KNOWS, "'nobody' not found in Person"),
    Case(out_of_range, "constraint_violation", PERSON, "value 500 > max 150"),
    Case(not_unique, "constraint_violation", CITY, "held by"),
    Case(too_many, "constraint_violation", LIVES, "source 'p01' has 2 edges (max 1)"),
    Case(foreign_key, "constraint_violation", PERSON, "has a key that makes the id"),
    Case(stray_folder, "orphan_table", None, "nodes/0123456789abcdef"),
    Case(pending_sidecar, "recovery_pending", None, "was interrupted"),
    Case(broken_sidecar, "recovery_pending", None, "not valid JSON"),
    Case(edited_schema, "schema_contract", None, "no longer matches"),
    Case(lost_schema, "schema_contract", None, "incomplete"),
    Case(garbled_state, "schema_contract", None, "invalid"),
    Case(garbled_tag, "broken_tag", None, "cannot be read"),
    Case(tag_of_nothing, "broken_tag", None, "which no branch has"),
    Case(dead_load, "dead_heartbeat", None, "sign of life"),
    Case(invented_commit, "projection_mismatch", layout.COMMITS, "does not know"),
    Case(stray_fork, "orphan_fork", PERSON, "'gone'", "gone"),
]
NAMES = [case.harm.__name__ for case in CASES]
FEW = [lost_data_file, lost_index_file, torn_above, foreign_append, torn_manifest_head, stray_folder, dangling_edge]


def check(graph: og.Graph, case: Case) -> None:
    case.harm(graph)
    before = contents(graph)
    result = verify(graph)
    found = [
        f for f in result.findings if (f.finding, f.table_key, f.branch) == (case.finding, case.table_key, case.branch)
    ]
    assert found, result.findings
    assert case.says in " ".join(f.message for f in found)
    assert all(f.repair for f in result.findings)
    assert not result.is_whole
    repair(graph)
    assert contents(graph) == before


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_each_harm_is_found_and_looking_at_it_changes_no_file(graph: og.Graph, case: Case) -> None:
    check(graph, case)


@pytest.mark.slow
@pytest.mark.parametrize("case", [c for c in CASES if c.harm in FEW], ids=[f.__name__ for f in FEW])
def test_each_harm_is_found_on_an_object_store_too(anywhere: og.Graph, case: Case) -> None:
    check(anywhere, case)


def test_a_graph_that_was_only_used_is_whole(anywhere: og.Graph) -> None:
    anywhere.branch_create("draft")
    insert(anywhere, "mine", "draft")
    anywhere.tag_create("then")
    anywhere.mutate('query gone() { delete Person where name = "later" }')
    anywhere.branch_merge("draft")
    before = contents(anywhere)
    result = verify(anywhere)
    assert kinds(result) == []
    assert (result.branches, result.tables_checked) == (("main", "draft"), 5)
    assert contents(anywhere) == before
    assert anywhere.verify().is_whole


def test_one_harm_is_one_finding(graph: og.Graph) -> None:
    """What follows from a harm is not told as a second one."""
    lost_data_file(graph)
    assert kinds(verify(graph)) == [("missing_data_file", "main", PERSON)]


def test_nobody_is_told_to_restore_a_graph_that_a_newer_omnigraph_wrote(graph: og.Graph) -> None:
    newer_stamp(graph)
    assert [f.repair for f in verify(graph).findings] == ["look again with a newer omnigraph; the graph may be whole"]


def test_a_graph_that_was_moved_has_branches_that_point_elsewhere(graph: og.Graph, tmp_path: Path) -> None:
    graph.branch_create("draft")
    insert(graph, "mine", "draft")
    shutil.move(graph.uri, tmp_path / "there")
    result = og.verify(str(tmp_path / "there"))
    assert kinds(result) == [("moved_base", "draft", "__manifest")]
    assert result.findings[0].repair == "omnigraph clone"
    assert og.verify(str(tmp_path / "there"), "main").is_whole


def test_only_the_branches_that_were_asked_for_are_told(graph: og.Graph) -> None:
    graph.branch_create("draft")
    insert(graph, "mine", "draft")
    lose(graph, data_file_of_draft(graph))
    assert kinds(verify(graph, "main")) == []
    assert kinds(verify(graph, "draft")) == [("missing_data_file", "draft", PERSON)]
    with pytest.raises(og.NotFound, match="branch 'nobody' not found"):
        verify(graph, "nobody")


def data_file_of_draft(graph: og.Graph) -> str:
    folder = f"{ref_of(graph, PERSON, 'draft').path}/data"
    return next(file.key for file in graph.context.objects.walk(folder))


def test_lost_data_is_told_with_the_newest_commit_that_is_whole(graph: og.Graph) -> None:
    whole = graph.list_commits()[0].graph_commit_id
    insert(graph, "newest")
    known = {file for file in contents(graph) if "/data/" in file}
    insert(graph, "newer still")
    fresh = sorted(file for file in contents(graph) if "/data/" in file and "__manifest" not in file)
    lost = [file for file in fresh if file not in known and "/nodes/" in file]
    insert(graph, "after it")
    os.unlink(lost[0])
    found = verify(graph).findings
    assert [f.finding for f in found] == ["missing_data_file"]
    second = graph.list_commits()[2].graph_commit_id
    assert f"the newest whole commit is {second}" in found[0].message
    assert second != whole
    reader = reopened(graph, "r")
    assert reader.query("query n() { match { $p: Person } return { $p.name } }", snapshot=second).row_count > 0


def test_a_file_that_only_the_past_needs_is_missed_too(graph: og.Graph) -> None:
    names = {file.path for file in files_of(graph)}
    graph.mutate('query up() { update Person set { age: 2 } where name = "later" }')
    gone = sorted(names - {file.path for file in files_of(graph)})
    assert gone
    lose(graph, gone[0])
    found = verify(graph).findings
    assert [(f.finding.value, f.path) for f in found] == [("missing_data_file", gone[0])]


def files_of(graph: og.Graph) -> list[RecordedFile]:
    return list(recorded_files(pinned(graph, PERSON)))


def test_what_cleanup_took_is_no_damage(graph: og.Graph) -> None:
    for number in range(4):
        insert(graph, f"n{number}")
    assert graph.cleanup(1, None, confirm=True).versions_removed > 0
    assert kinds(verify(graph)) == []


def test_an_index_that_was_never_built_is_no_damage(tmp_path: Path) -> None:
    graph = og.Graph.init(str(tmp_path / "g"), "node Person { name: String @key }")
    graph.mutate('query add() { insert Person { name: "ana" } }')
    assert kinds(verify(graph)) == []


def test_where_there_is_no_graph_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(og.NotFound, match="there is no graph"):
        og.verify(str(tmp_path / "nothing"))


def test_a_torn_manifest_of_main_hides_no_branch(graph: og.Graph) -> None:
    graph.branch_create("draft")
    insert(graph, "mine", "draft")
    torn_manifest_head(graph)
    assert kinds(verify(graph)) == [("unreadable_above_pin", "main", "__manifest")]
    assert reopened(graph, "r").snapshot("draft").tables[PERSON].row_count == 22


def test_a_branch_whose_reference_is_cut_is_found_and_refused_by_name(graph: og.Graph) -> None:
    graph.branch_create("draft")
    key = f"{layout.MANIFEST}/_refs/branches/draft.json"
    graph.context.objects.put(key, copy_of(graph, key)[:50])
    assert kinds(verify(graph)) == [("manifest_unreadable", "draft", "__manifest")]
    with pytest.raises(og.Conflict, match=r"draft\.json is no reference of a branch"):
        reopened(graph, "r").snapshot("draft")


def test_the_lost_commit_of_a_branch_leaves_rows_that_nobody_shows(graph: og.Graph) -> None:
    graph.branch_create("draft")
    insert(graph, "mine", "draft")
    lose(graph, graph.context.manifest.state("draft").own_file)
    assert kinds(verify(graph)) == [("orphan_fork", "draft", PERSON)]
    assert "one may be lost" in verify(graph).findings[0].message


def test_a_branch_name_that_is_used_again_is_whole(graph: og.Graph) -> None:
    for name in ("first", "second"):
        graph.branch_create("draft")
        insert(graph, name, "draft")
        assert kinds(verify(graph)) == []
        graph.branch_delete("draft")
    graph.branch_create("draft")
    with pytest.raises(og.OmniError):
        graph.mutate('query add() { insert Person { name: "p01", age: 500 } }', branch="draft")
    assert kinds(verify(graph)) == []


def test_a_graph_whose_schema_changed_is_whole(graph: og.Graph) -> None:
    """Branches that lag behind it included, and types and properties under other names."""
    graph.branch_create("draft")
    insert(graph, "mine", "draft")
    wider = SCHEMA.replace("age: I32?", "age: I32?  mail: String? @index") + "node Pet { name: String @key }\n"
    graph.schema_apply(wider)
    assert kinds(verify(graph)) == []
    insert(graph, "again", "draft")
    assert kinds(verify(graph)) == []
    graph.branch_merge("draft")
    graph.branch_delete("draft")
    renamed = wider.replace("Person", "Human").replace("node Human {", 'node Human @rename_from("Person") {')
    graph.schema_apply(renamed.replace("bio: String?", 'story: String? @rename_from("bio")'))
    assert kinds(verify(graph)) == []


def test_progress_is_told_with_the_rows_read_so_far(graph: og.Graph) -> None:
    told: list[tuple[str, int]] = []
    assert graph.verify(progress=lambda stage, rows: told.append((stage, rows))).is_whole
    assert {"manifest", "tables", "indexes", "content", "history"} <= {stage for stage, _ in told}
    assert [rows for _, rows in told] == sorted(rows for _, rows in told)
    assert told[-1][1] == 21 + 2 + 19 + 10
