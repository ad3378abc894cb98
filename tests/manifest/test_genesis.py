"""Making a graph: it exists from its manifest on, at most one `init` of a place succeeds, and a crash is repairable."""

import json
import os
import shutil
import socket
from pathlib import Path

import pytest
from init_children import init_and_die, init_each
from manifest_helpers import SCHEMA, disk_image, people

from omnigraph import BadRequest, Conflict, Graph, NotFound, Upsert
from omnigraph.base.errors import ParseError
from omnigraph.base.failpoints import arm, disarm_all, fail
from omnigraph.storage.objects import LocalObjectStore
from processes import FORKED

BEFORE_MANIFEST = ["init.schema_written", "init.tables_created", "init.pre_manifest"]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "graph"


def crash(place: Path, failpoint: str) -> None:
    child = FORKED.Process(target=init_and_die, args=(str(place), failpoint))
    child.start()
    child.join(60)
    assert child.exitcode == 77


def claim(place: Path, pid: int) -> Path:
    place.mkdir(parents=True, exist_ok=True)
    path = place / "__init_claim.json"
    path.write_text(json.dumps({"host": socket.gethostname(), "pid": pid, "claimed_at": "then"}))
    return path


def assert_works(graph: Graph) -> None:
    graph.write({"node:Person": Upsert(people("ana"))})
    assert Graph.open(graph.uri, "r").snapshot().tables["node:Person"].row_count == 1
    assert not os.path.exists(f"{graph.uri}/__init_claim.json")


def test_init_leaves_a_graph_and_no_claim(place: Path):
    assert_works(Graph.init(str(place), SCHEMA))


@pytest.mark.parametrize("force", [False, True])
def test_second_init_is_refused_and_changes_nothing(place: Path, force: bool):
    Graph.init(str(place), SCHEMA).close()
    before = disk_image(place)
    with pytest.raises(Conflict, match="already initialized"):
        Graph.init(str(place), SCHEMA, force=force)
    assert disk_image(place) == before


def test_place_that_is_a_file_is_refused(place: Path):
    place.write_text("not a directory")
    with pytest.raises(BadRequest, match="is a file"):
        Graph.init(str(place), SCHEMA)
    assert place.read_text() == "not a directory"


def test_init_beside_files_of_others_keeps_them(place: Path):
    place.mkdir()
    (place / "notes.txt").write_text("mine")
    assert_works(Graph.init(str(place), SCHEMA))
    assert (place / "notes.txt").read_text() == "mine"


def test_schema_that_does_not_parse_leaves_nothing(place: Path):
    with pytest.raises(ParseError):
        Graph.init(str(place), "node {")
    assert not place.exists()


@pytest.mark.parametrize("failpoint", BEFORE_MANIFEST)
def test_init_that_fails_removes_what_it_wrote(place: Path, failpoint: str):
    place.mkdir()
    (place / "notes.txt").write_text("mine")
    arm(failpoint, fail)
    try:
        with pytest.raises(Exception, match="armed failpoint"):
            Graph.init(str(place), SCHEMA)
    finally:
        disarm_all()
    assert os.listdir(place) == ["notes.txt"]
    assert_works(Graph.init(str(place), SCHEMA))


# ---- a crash


@pytest.mark.slow
@pytest.mark.parametrize("failpoint", BEFORE_MANIFEST)
def test_crashed_init_is_said_to_be_half_made_and_force_repairs_it(place: Path, failpoint: str):
    crash(place, failpoint)
    left = disk_image(place)
    for mode in ("r", "rw"):
        with pytest.raises(Conflict, match="half initialized"):
            Graph.open(str(place), mode)
    with pytest.raises(Conflict, match="running or was interrupted"):
        Graph.init(str(place), SCHEMA)
    assert disk_image(place) == left
    assert_works(Graph.init(str(place), SCHEMA, force=True))


@pytest.mark.slow
def test_init_that_crashed_after_its_manifest_left_a_whole_graph(place: Path):
    crash(place, "init.manifest_created")
    assert len(Graph.open(str(place), "r").list_commits()) == 1
    for force in (False, True):
        with pytest.raises(Conflict, match="already initialized"):
            Graph.init(str(place), SCHEMA, force=force)
    assert_works(Graph.open(str(place)))


@pytest.mark.slow
@pytest.mark.parametrize("failpoint", BEFORE_MANIFEST)
def test_leftovers_without_a_claim_need_force_and_stay_until_then(place: Path, failpoint: str):
    crash(place, failpoint)
    (place / "__init_claim.json").unlink()
    left = disk_image(place)
    for _ in range(2):
        with pytest.raises(Conflict, match="leftovers of an interrupted init"):
            Graph.init(str(place), SCHEMA)
        assert disk_image(place) == left
    assert_works(Graph.init(str(place), SCHEMA, force=True))


def test_files_of_a_manifest_that_never_came_to_be_do_not_hinder_a_new_init(place: Path):
    (place / "__manifest" / "data").mkdir(parents=True)
    (place / "__manifest" / "data" / "torn.lance").write_bytes(b"half")
    claim(place, 2**22 + 1)
    with pytest.raises(Conflict, match="half initialized"):
        Graph.open(str(place))
    assert_works(Graph.init(str(place), SCHEMA, force=True))


def test_folder_that_only_looks_like_a_leftover_is_never_removed_without_force(place: Path):
    (place / "nodes").mkdir(parents=True)
    (place / "nodes" / "thesis.txt").write_text("years of work")
    with pytest.raises(Conflict, match="leftovers"):
        Graph.init(str(place), SCHEMA)
    assert (place / "nodes" / "thesis.txt").read_text() == "years of work"


def test_empty_directory_is_not_a_graph(place: Path):
    place.mkdir()
    with pytest.raises(NotFound, match="is not a graph"):
        Graph.open(str(place))
    with pytest.raises(NotFound, match="there is no graph"):
        Graph.open(str(place / "nowhere"))


# ---- claims


@pytest.mark.parametrize("force", [False, True])
def test_claim_of_a_living_process_is_respected_even_by_force(place: Path, force: bool):
    held = claim(place, os.getppid()).read_text()
    with pytest.raises(Conflict, match="another init of"):
        Graph.init(str(place), SCHEMA, force=force)
    assert (place / "__init_claim.json").read_text() == held
    assert os.listdir(place) == ["__init_claim.json"]


def test_claim_made_before_the_machine_restarted_yields_to_force_whatever_runs_under_its_number_now(place: Path):
    held = claim(place, os.getppid())
    held.write_text(json.dumps({**json.loads(held.read_text()), "boot": "an earlier one"}))
    assert_works(Graph.init(str(place), SCHEMA, force=True))


def test_claim_of_a_dead_process_yields_to_force_only(place: Path):
    dead = FORKED.Process(target=os.getpid)
    dead.start()
    dead.join()
    claim(place, dead.pid or 0)
    with pytest.raises(Conflict, match="another init of"):
        Graph.init(str(place), SCHEMA)
    assert_works(Graph.init(str(place), SCHEMA, force=True))


@pytest.mark.parametrize("force", [False, True])
def test_claim_that_another_one_takes_at_the_same_moment_stays_theirs(place: Path, force: bool, monkeypatch):
    """We looked at a dead claim, or at none, and somebody was quicker to take its place."""
    claim(place, 2**22 + 1)
    looked = LocalObjectStore.get

    def overtaken(self, key: str):
        found = looked(self, key)
        monkeypatch.setattr(LocalObjectStore, "get", looked)
        claim(place, os.getppid())
        return found if force else None

    monkeypatch.setattr(LocalObjectStore, "get", overtaken)
    with pytest.raises(Conflict, match="another init of"):
        Graph.init(str(place), SCHEMA, force=force)
    assert json.loads((place / "__init_claim.json").read_text())["pid"] == os.getppid()


@pytest.mark.slow
@pytest.mark.parametrize("force", [False, True])
def test_of_two_processes_that_initialise_one_place_exactly_one_wins(tmp_path: Path, force: bool):
    places = [tmp_path / f"graph-{i}" for i in range(12)]
    if force:
        crash(places[0], "init.tables_created")
        for other in places[1:]:
            shutil.copytree(places[0], other)
    start, results = FORKED.Barrier(2), FORKED.Queue()
    uris = [str(p) for p in places]
    racers = [FORKED.Process(target=init_each, args=(uris, force, start, results)) for _ in range(2)]
    for racer in racers:
        racer.start()
    told = [results.get(timeout=60) for _ in range(2 * len(places))]
    for racer in racers:
        racer.join(60)
        assert racer.exitcode == 0
    assert sorted(uri for uri, won, _ in told if won) == sorted(uris)
    assert {said.split("'")[0] for _, won, said in told if not won} <= {"another init of ", ""}
    for uri in uris:
        assert_works(Graph.open(uri))
