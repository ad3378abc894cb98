"""What a copy has of its original: everything a user can see, and nothing that refers to it."""

from __future__ import annotations

import os
import shutil

import pytest
from clone_scene import ACTOR, add, clone, content, exported, furnish, histories, homes, names, row_identity

import omnigraph as og
from graph_places import Home, Place

pytestmark = pytest.mark.slow


def test_a_copy_shows_every_row_commit_tag_and_schema_of_the_original(pair: tuple[Home, Home]):
    source, target = pair
    before = source.open("r")
    done = clone(source, target)
    copy = target.open("r")
    assert content(copy) == content(before)
    assert histories(copy) == histories(before)
    assert copy.tag_list() == before.tag_list()
    assert copy.schema().source == before.schema().source
    assert [b.name for b in done.branches] == copy.branch_list() == before.branch_list()
    assert done.findings == ()
    for commit in before.list_commits():
        assert exported(copy, snapshot=commit.graph_commit_id) == exported(before, snapshot=commit.graph_commit_id)


def test_a_copy_lives_on_when_the_original_is_gone(pair: tuple[Home, Home], both: tuple[Place, Place]):
    source, target = pair
    with source.open("r") as graph:
        expected = content(graph)
    clone(source, target)
    both[0].remove(source.uri)
    with target.open() as copy:
        assert content(copy) == expected
        for branch in copy.branch_list():
            add(copy, "new", branch=branch)
            assert "new" in names(copy, branch=branch)
        copy.branch_merge("team/deep", "draft")
        copy.branch_merge("draft")
        assert {"cyd", "dan", "eve", "fay"} & {*names(copy)} == {"dan", "eve", "fay"}
        assert names(copy, snapshot="middle") == ["ann", "bob", "cyd", "dan"]
        copy.branch_create_from("draft", "later")
        add(copy, "zoe", branch="later")
        assert copy.ensure_indices("later") is not None
        assert copy.status().pending == ()
        copy.tag_delete("middle")
        for branch in ("later", "team/deep", "draft"):
            copy.branch_delete(branch)
        copy.cleanup(1, confirm=True)
    assert og.clone(target.uri, homes(both[1], both[1])[1].uri, settings=target.settings).findings == ()


def test_nothing_in_a_copy_names_the_place_of_the_original(furnished: Home, copy: Home):
    clone(furnished, copy)
    told = [name for name in _files(copy.uri) if furnished.uri.encode() in _bytes(copy.uri, name)]
    assert told == []


def test_rows_keep_their_stable_ids_and_versions_on_every_branch(furnished: Home, copy: Home):
    clone(furnished, copy)
    before, after = furnished.open("r"), copy.open("r")
    for branch in before.branch_list():
        assert row_identity(after, branch) == row_identity(before, branch)


def test_a_branch_with_forks_gets_one_commit_of_kind_repair_and_no_other_branch_does(furnished: Home, copy: Home):
    done = {b.name: b for b in clone(furnished, copy).branches}
    graph, before = copy.open("r"), furnished.open("r")
    for branch in graph.branch_list():
        own = [c for c in graph.list_commits(branch) if c.actor_id == ACTOR and c.manifest_branch == branch]
        assert len(own) == (1 if branch in ("draft", "team/deep", "done") else 0), branch
        assert all(c.kind == "repair" and not c.counts for c in own)
        assert done[branch].source_head == before.head_commit_id_for_branch(branch)
        assert done[branch].head == graph.head_commit_id_for_branch(branch)


def test_earlier_states_of_a_branch_are_reclaimed_unless_something_needs_them(furnished: Home, copy: Home):
    clone(furnished, copy)
    before, after = furnished.open("r"), copy.open("r")
    oldest = [c for c in before.list_commits("draft") if c.manifest_branch == "draft"][-1]
    for kept in ("middle", str(before.head_commit_id_for_branch("draft"))):
        assert names(after, snapshot=kept) == names(before, snapshot=kept)
    with pytest.raises(og.Reclaimed):
        names(after, snapshot=oldest.graph_commit_id)
    assert oldest.graph_commit_id in [c.graph_commit_id for c in after.list_commits("draft")]


def test_a_branch_that_was_merged_once_can_be_merged_again_in_the_copy(furnished: Home, copy: Home):
    clone(furnished, copy)
    graph = copy.open()
    done = graph.branch_merge("done")
    assert [t["inserts"] for t in done.tables] == [1]
    assert "ida" in names(graph)


def test_branches_of_a_copy_have_other_incarnations(furnished: Home, copy: Home):
    clone(furnished, copy)
    before, after = furnished.open("r").context.manifest, copy.open("r").context.manifest
    assert before.state().incarnation == after.state().incarnation
    theirs = {n: b.incarnation for n, b in before.branches().items()}
    assert all(theirs[n] != b.incarnation for n, b in after.branches().items())


def test_changes_between_branches_are_the_same_in_the_copy(furnished: Home, copy: Home):
    clone(furnished, copy)
    before, after = furnished.open("r"), copy.open("r")
    for branch in ("draft", "team/deep", "done"):
        told = [sorted(map(str, g.diff("main", branch).changes)) for g in (before, after)]
        assert told[0] == told[1] != []


def test_blobs_come_along_and_references_stay_references(furnished: Home, copy: Home):
    clone(furnished, copy)
    photos = [line for line in exported(copy.open("r"), types=["Person"]) if '"photo":"' in line]
    assert len(photos) == 2
    assert photos == [line for line in exported(furnished.open("r"), types=["Person"]) if '"photo":"' in line]


def test_indexes_are_carried_and_answer(furnished: Home, copy: Home):
    clone(furnished, copy)
    asked = 'query q() { match { $p: Person search($p.bio, "sea") } return { $p.name } }'
    found = [
        sorted(row["p.name"] for row in graph.query(asked, branch="team/deep").rows)
        for graph in (furnished.open("r"), copy.open("r"))
    ]
    assert found[0] == found[1]
    assert "fay" in found[0]


def test_one_branch_can_be_taken_with_what_it_was_made_from(furnished: Home, copy: Home):
    done = clone(furnished, copy, branch="team/deep")
    graph = copy.open()
    assert [b.name for b in done.branches] == graph.branch_list() == ["main", "draft", "team/deep"]
    assert content(graph) == {b: rows for b, rows in content(furnished.open("r")).items() if b in graph.branch_list()}
    assert done.findings == ()
    graph.branch_create("done")
    add(graph, "new", branch="done")


def test_main_alone_can_be_taken_and_tags_of_other_branches_stay_behind(furnished: Home, copy: Home):
    assert [b.name for b in clone(furnished, copy, branch="main").branches] == ["main"]
    graph = copy.open("r")
    assert [tag.name for tag in graph.tag_list()] == ["first"]
    assert not any("/tree/" in name for name in _files(copy.uri))


def test_what_was_reclaimed_stays_reclaimed_and_the_rest_reads(place: Place, copy: Home):
    source = Home(place.fresh(), place.settings)
    furnish(source)
    with source.open() as graph:
        graph.cleanup(2, confirm=True)
        commits = [c.graph_commit_id for c in graph.list_commits()]
        told = {commit: _read(graph, commit) for commit in commits}
    assert "reclaimed" in told.values()
    clone(source, copy)
    after = copy.open("r")
    assert {commit: _read(after, commit) for commit in commits} == told


def test_a_graph_that_was_moved_is_brought_back_with_all_its_branches(furnished: Home, place: Place, copy: Home):
    with furnished.open("r") as graph:
        expected, told = content(graph), histories(graph)
    moved = Home(place.copy(furnished.uri), furnished.settings)
    elsewhere = Home(place.copy(moved.uri), furnished.settings)
    place.remove(moved.uri)
    with pytest.raises(og.GraphMoved):
        elsewhere.open("r").view("draft")
    done = clone(elsewhere, copy)
    place.remove(elsewhere.uri)
    graph = copy.open()
    assert content(graph) == expected
    assert histories(graph) == told
    assert done.findings == ()
    add(graph, "new", branch="team/deep")


def test_an_empty_graph_has_an_empty_copy(place: Place, copy: Home):
    source = Home(place.fresh(), place.settings)
    source.init("node Lonely { name: String @key }").close()
    assert [b.name for b in clone(source, copy).branches] == ["main"]
    with copy.open() as graph:
        assert exported(graph) == []
        assert graph.head_commit_id_for_branch() == source.open("r").head_commit_id_for_branch()


def test_a_copy_and_its_original_go_separate_ways(place: Place, copy: Home):
    source = Home(place.fresh(), place.settings)
    furnish(source)
    clone(source, copy)
    with source.open() as one, copy.open() as other:
        add(one, "mine", branch="draft")
        add(other, "theirs", branch="draft")
        assert {"mine", "theirs"} & {*names(one, branch="draft")} == {"mine"}
        assert {"mine", "theirs"} & {*names(other, branch="draft")} == {"theirs"}


def test_a_copy_that_was_moved_can_be_copied_again(furnished: Home, copy: Home, place: Place):
    clone(furnished, copy)
    further, last = place.fresh(), Home(place.fresh(), place.settings)
    shutil.move(copy.uri, further)
    clone(Home(further, place.settings), last)
    assert content(last.open("r")) == content(furnished.open("r"))


def _read(graph: og.Graph, commit: str) -> object:
    try:
        return exported(graph, snapshot=commit)
    except og.Reclaimed:
        return "reclaimed"


def _files(uri: str) -> list[str]:
    return [os.path.relpath(os.path.join(f, name), uri) for f, _, names in os.walk(uri) for name in names]


def _bytes(uri: str, name: str) -> bytes:
    with open(os.path.join(uri, name), "rb") as file:
        return file.read()
