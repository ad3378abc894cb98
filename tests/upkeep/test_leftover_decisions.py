"""Which leftovers are named, as pure functions."""

from __future__ import annotations

import pytest

from omnigraph.base.clock import now_us
from omnigraph.commit.staging import Heartbeat
from omnigraph.engine.upkeep.decide import (
    CLOCK_SLACK_US,
    ForkUse,
    Orphan,
    dead_heartbeats,
    legacy_tables,
    orphan_forks,
    staged_before,
    staged_leftovers,
    staging_folders,
    trees_without_reference,
    unregistered_tables,
)
from omnigraph.storage.files import lies_inside, owner_of, unit_of
from omnigraph.storage.objects import FoundFile
from omnigraph.storage.refs import BranchRef

DAY_US = 86_400_000_000


def beat(started_us: int, renewed_us: int, readable: bool = True) -> Heartbeat:
    return Heartbeat("01J", None, None, "host", 1, started_us, renewed_us, 600, readable=readable)


@pytest.mark.parametrize(
    ("path", "unit"),
    [
        ("data/0101ab.lance", "data/0101ab"),
        ("data/0101ab.lance#1", "data/0101ab"),
        ("data/0101ab/01.blob", "data/0101ab"),
        ("_deletions/0-3-93.arrow", "_deletions/0-3-93.arrow"),
        ("_indices/b99f/page_data.lance", "_indices/b99f"),
        ("_transactions/0-78.txn", "_transactions/0-78.txn"),
        ("_versions/184.manifest", None),
        ("_versions/latest_version_hint.json", None),
        ("_refs/branches/x.json", None),
        ("data", None),
        ("something/new.bin", None),
    ],
)
def test_a_file_stands_or_falls_with_its_unit(path: str, unit: str | None) -> None:
    assert unit_of(path) == unit


@pytest.mark.parametrize(
    ("path", "owner"),
    [
        ("data/a.lance", (None, "data/a.lance")),
        ("tree/team/data/a.lance", ("team", "data/a.lance")),
        ("tree/team/x/data/a.lance", ("team/x", "data/a.lance")),
        ("tree/team/data/_versions/1.manifest", ("team/data", "_versions/1.manifest")),
        ("tree/team/data/data/a.lance", ("team/data", "data/a.lance")),
        ("tree/team/data/0101/0.blob", ("team", "data/0101/0.blob")),
        ("tree/teams/data/a.lance", (None, "tree/teams/data/a.lance")),
    ],
)
def test_a_file_belongs_to_the_longest_name_that_fits(path: str, owner: tuple[str | None, str]) -> None:
    assert owner_of(path, ["team", "team/x", "team/data"]) == owner


def test_only_a_name_that_goes_on_with_a_folder_of_lance_lies_inside_another() -> None:
    assert lies_inside("team/data", "team")
    assert lies_inside("team/_versions/x", "team")
    assert not lies_inside("team/x", "team")
    assert not lies_inside("teams/data", "team")
    assert not lies_inside("team", "team")


def test_children_come_before_their_parents_whatever_their_names() -> None:
    refs = {n: BranchRef(n, p, 1, n) for n, p in {"a": None, "b": "c", "c": "a", "d": None}.items()}
    found = orphan_forks("nodes/1", refs, ForkUse(frozenset({"d"}), {("nodes/1", "d"): "d"}))
    assert found == [Orphan("b", False), Orphan("c", False), Orphan("a", False)]


def test_a_circle_of_parents_ends() -> None:
    refs = {"a": BranchRef("a", "b", 1, "a"), "b": BranchRef("b", "a", 1, "b")}
    assert [o.name for o in orphan_forks("nodes/1", refs, ForkUse(frozenset(), {}))] == ["a", "b"]


def test_a_fork_that_a_live_branch_reads_is_kept_though_its_own_is_gone() -> None:
    refs = {"low": BranchRef("low", None, 1, "low")}
    found = orphan_forks("nodes/1", refs, ForkUse(frozenset({"high"}), {("nodes/1", "low"): "high"}))
    assert found == [Orphan("low", False, "branch 'high' still reads it")]


def test_a_fork_its_live_branch_does_not_record_is_named_as_live() -> None:
    refs = {"draft": BranchRef("draft", None, 1, "draft")}
    use = ForkUse(frozenset({"draft"}), {("nodes/2", "draft"): "draft"})
    assert orphan_forks("nodes/1", refs, use) == [Orphan("draft", True)]


def test_versions_without_a_reference_name_the_fork_they_belonged_to() -> None:
    paths = [
        "tree/gone/_versions/1.manifest",
        "tree/gone/data/a.lance",
        "tree/team/x/_versions/1.manifest",
        "tree/known/_versions/1.manifest",
        "tree/live/_versions/1.manifest",
        "_versions/1.manifest",
    ]
    assert trees_without_reference(paths, ["known"], ["live"]) == ["gone", "team/x"]


def test_no_file_is_old_enough_while_a_load_lives_that_started_before_it() -> None:
    at, grace = 10 * DAY_US, 7 * DAY_US
    assert staged_before(at, grace, []) == 3 * DAY_US - CLOCK_SLACK_US
    assert staged_before(at, grace, [beat(2 * DAY_US, at)]) == 2 * DAY_US - CLOCK_SLACK_US
    assert staged_before(at, 0, [beat(9 * DAY_US, at), beat(8 * DAY_US, at)]) == 8 * DAY_US - CLOCK_SLACK_US
    assert staged_before(at, grace, [beat(9 * DAY_US, at)]) == 3 * DAY_US - CLOCK_SLACK_US


def test_only_old_files_that_nobody_refers_to_are_named() -> None:
    def file(name: str, at: int = 5) -> FoundFile:
        return FoundFile(f"nodes/1/{name}", 1, at)

    files = [
        file("data/needed.lance"),
        file("data/needed/0.blob"),
        file("data/lost.lance"),
        file("data/young.lance", 10),
        file("tree/b/data/lost2.lance"),
        file("tree/b/data/needed.lance"),
        file("tree/gone/data/lost3.lance"),
        file("tree/gone/data/needed.lance"),
        file("tree/data/data/needed.lance"),
        file("_versions/1.manifest"),
        file("_refs/branches/b.json"),
    ]
    found = staged_leftovers(files, "nodes/1", ["b"], {"data/needed"}, 10)
    assert [(s.branch, s.file.key.removeprefix("nodes/1/")) for s in found] == [
        (None, "data/lost.lance"),
        ("b", "tree/b/data/lost2.lance"),
        (None, "tree/gone/data/lost3.lance"),
    ]


def test_a_load_is_dead_when_it_gave_no_sign_of_life_for_its_lifetime() -> None:
    at = now_us()
    alive, dead = beat(0, at - 599_000_000), beat(0, at - 601_000_000)
    assert dead_heartbeats([alive, dead], at, at - DAY_US) == [dead]


def test_a_folder_of_tables_or_of_loads_is_never_named_itself() -> None:
    operation = "01J00000000000000000000000"
    assert unregistered_tables(["nodes", "nodes/", "edges", "nodes/1", "edges/2/x", "edges/3"], ["edges/3"]) == [
        "nodes/1"
    ]
    places = ["__staging", "__staging/", "__staging/x", f"__staging/{operation}", f"__staging/{operation}.json"]
    assert staging_folders(places, []) == [f"__staging/{operation}"]


def test_only_tables_of_old_runs_are_legacy() -> None:
    names = ["_graph_runs.lance", "_graph_run_actors.lance", "_graph_commits.lance", "__manifest", "nodes"]
    assert legacy_tables(names) == ["_graph_run_actors.lance", "_graph_runs.lance"]
