"""An interrupted or failed apply: who opens the graph next has one schema, and nothing of the other is left."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import lance
import orjson
import pytest
from apply_scene import CITY, FILES, KNOWS, PERSON, SCHEMA, facts, leftovers, made, rows

import omnigraph as og
from faulty_objects import Fault, of_graph, on
from omnigraph.base import failpoints
from omnigraph.base.errors import Conflict, RecoveryRequired
from omnigraph.catalog.contract import AcceptedSchema, accept
from omnigraph.commit.recovery.classify import StagedFiles, judge_staged
from omnigraph.commit.schema_lock import applying
from omnigraph.manifest import layout
from omnigraph.storage.refs import fork_branch_from_state, reference_key

pytestmark = pytest.mark.slow

MORE = SCHEMA.replace("note: String?", 'note: String?  joined: Date?  country: String @default("NO")')
TEAM = SCHEMA + "node Team { name: String @key }\n"
WHERE = [
    *(f"schema_apply.{window}" for window in failpoints.WINDOWS[:4]),
    "schema_apply.lock_made",
    "schema_apply.pre_schema_staging",
    "schema_apply.mid_schema_staging",
]


class Dead(BaseException):
    """Ends an apply in this process as death would: nobody undoes anything, and no lock is kept."""


def _die() -> None:
    raise Dead


@pytest.fixture(autouse=True)
def _disarmed() -> Iterator[None]:
    yield
    failpoints.disarm_all()


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return made(tmp_path / "g")


def _died(graph: og.Graph, point: str, source: str = MORE, skip: int = 0) -> None:
    failpoints.arm(point, _die, skip)
    with pytest.raises(Dead):
        graph.schema_apply(source)


def _records(graph: og.Graph) -> list[Path]:
    """The files of the one record that there is."""
    found = sorted(Path(graph.uri, layout.SCHEMA_DIR).iterdir())
    assert len(found) == 3
    return found


@pytest.mark.parametrize("point", WHERE)
def test_an_apply_that_fails_is_taken_back_by_itself(graph: og.Graph, point: str) -> None:
    before, past = rows(graph, "node:Person"), facts(graph, "node:Person")
    failpoints.arm(point, failpoints.fail)
    with pytest.raises((failpoints.FailpointHit, RecoveryRequired)):
        graph.schema_apply(MORE)
    assert graph.schema().source == SCHEMA
    assert rows(graph, "node:Person") == before
    assert facts(graph, "node:Person") == past
    assert leftovers(graph) == []
    assert graph.schema_apply(MORE).applied
    assert leftovers(graph) == []


def test_schema_apply_without_schema_staging_rolls_back_on_next_open(graph: og.Graph) -> None:
    before, version = rows(graph, "node:Person"), graph.snapshot().version
    _died(graph, "schema_apply.post_phase_b_pre_manifest_commit")
    for path in _records(graph):
        path.unlink()
    again = og.Graph.open(graph.uri)
    assert again.schema().source == SCHEMA
    assert rows(again, "node:Person") == before
    assert again.snapshot().version > version
    assert leftovers(again) == []
    (record,) = again.recoveries().records
    assert (record.recovery_kind, record.sidecar_writer_kind) == ("RolledBack", "SchemaApply")


@pytest.mark.parametrize("number", range(3))
def test_an_apply_goes_forward_only_with_all_its_files(graph: og.Graph, number: int) -> None:
    _died(graph, "schema_apply.post_phase_b_pre_manifest_commit")
    _records(graph)[number].write_bytes(b"{}")
    again = og.Graph.open(graph.uri)
    assert again.schema().source == SCHEMA
    assert leftovers(again) == []


def test_a_roll_forward_tells_every_handle_of_the_new_schema(graph: og.Graph) -> None:
    reader = og.Graph.open(graph.uri, "r")
    _died(graph, "schema_apply.post_phase_b_pre_manifest_commit")
    assert reader.schema().source == SCHEMA
    with og.Graph.open(graph.uri) as again:
        assert again.schema().source == MORE
        commit = again.list_commits()[0]
    assert commit.kind == "recovery"
    assert [row["country"] for row in rows(reader, "node:Person")] == ["NO", "NO"]
    assert reader.schema().source == MORE


def test_recovery_roll_back_converges_and_schema_apply_succeeds(graph: og.Graph) -> None:
    renamed = 'node Member @rename_from("Person") { name: String @key  rank: I32 @default(1) }\n'
    renamed += "edge Knows: Member -> Member { since: I32? }\n"
    _died(graph, "schema_apply.mid_phase_b", renamed + CITY)
    first = og.Graph.open(graph.uri)
    assert leftovers(first) == []
    (record,) = first.recoveries().records
    assert [outcome.table_key for outcome in record.per_table_outcomes] == ["node:Person"], "by the name it still has"
    assert first.list_commits()[0].is_roll_back, "nothing was left for anybody to heal"
    pins = {key: entry.table_version for key, entry in first.snapshot().tables.items()}
    for _ in range(3):
        again = og.Graph.open(graph.uri)
        assert {key: entry.table_version for key, entry in again.snapshot().tables.items()} == pins
    assert again.schema_apply(renamed + CITY).applied
    assert [row["name"] for row in rows(again, "node:Member")] == ["ana", "bo"]


def test_a_mutation_settles_an_interrupted_apply_before_it_writes(graph: og.Graph) -> None:
    _died(graph, "schema_apply.post_manifest_commit_pre_phase_d")
    graph.mutate('query q() { insert Person { name: "cy", country: "SE" } }')
    assert [row["country"] for row in rows(graph, "node:Person")] == ["NO", "NO", "SE"]
    assert leftovers(graph) == [layout.SCHEMA_LOCK_BRANCH]
    graph.refresh()
    assert leftovers(graph) == []


@pytest.mark.parametrize("skip", range(3))
def test_readers_never_wait_for_the_renames(graph: og.Graph, skip: int) -> None:
    reader = og.Graph.open(graph.uri, "r")
    _died(graph, "schema_apply.mid_schema_renames", skip=skip)
    for handle in (reader, og.Graph.open(graph.uri, "r")):
        assert handle.schema().source == MORE
        assert [row["country"] for row in rows(handle, "node:Person")] == ["NO", "NO"]
    reader.refresh()
    assert reader.schema().source == MORE


def test_an_apply_is_done_even_if_its_files_cannot_be_put_in_place(graph: og.Graph) -> None:
    faulty, objects = of_graph(graph)
    objects.when(Fault.BEFORE, on("put_if_match", key=layout.SCHEMA_IR), times=None)
    assert faulty.schema_apply(MORE).applied
    assert orjson.loads(Path(graph.uri, layout.SCHEMA_STATE).read_bytes()).get("graph_commit_id") is None
    assert og.Graph.open(graph.uri, "r").schema().source == MORE
    assert leftovers(og.Graph.open(graph.uri)) == []


# Staged files that no sidecar speaks of, by what the tables of the manifest match.


def test_staged_files_are_judged_as_the_table_of_the_specification_says() -> None:
    told = {
        (live, staged, published): judge_staged(live, staged, published)
        for live in (False, True)
        for staged in (False, True)
        for published in (False, True)
    }
    assert told == {
        (True, False, False): StagedFiles.DELETE,
        (True, False, True): StagedFiles.DELETE,
        (False, True, False): StagedFiles.FINISH,
        (False, True, True): StagedFiles.FINISH,
        (True, True, True): StagedFiles.FINISH,
        (True, True, False): StagedFiles.DELETE,
        (False, False, False): StagedFiles.LEAVE,
        (False, False, True): StagedFiles.LEAVE,
    }


def _stage(graph: og.Graph, source: str, commit_id: str) -> AcceptedSchema:
    before = graph.schema()
    found = accept(source, before.ir.schema_identity_domain, before.ir, graph_commit_id=commit_id)
    Path(graph.uri, layout.SCHEMA_DIR).mkdir(exist_ok=True)
    for key, data in zip(FILES, (found.source_bytes, found.ir_json, found.state_json), strict=True):
        Path(graph.uri, layout.schema_record_key(commit_id, key)).write_bytes(data)
    return found


def test_files_staged_for_tables_that_are_not_there_are_deleted(graph: og.Graph) -> None:
    _stage(graph, TEAM, "01HZZZZZZZZZZZZZZZZZZZZZZZ")
    assert og.Graph.open(graph.uri, "r").schema().source == SCHEMA
    again = og.Graph.open(graph.uri)
    assert again.schema().source == SCHEMA
    assert leftovers(again) == []


def test_files_of_the_newest_schema_commit_take_their_place(graph: og.Graph) -> None:
    old = {key: Path(graph.uri, key).read_bytes() for key in FILES}
    graph.schema_apply(TEAM)
    for key, data in old.items():
        Path(graph.uri, key).write_bytes(data)
    assert og.Graph.open(graph.uri, "r").schema().source == TEAM
    again = og.Graph.open(graph.uri)
    assert again.schema().source == TEAM
    assert leftovers(again) == []
    assert Path(graph.uri, layout.SCHEMA_SOURCE).read_text() == TEAM


def test_if_both_fit_the_commit_that_the_record_is_of_decides(graph: og.Graph) -> None:
    described = SCHEMA.replace("node City", 'node City @description("a place")')
    graph.schema_apply(described)
    _stage(graph, SCHEMA, "01HZZZZZZZZZZZZZZZZZZZZZZZ")
    assert og.Graph.open(graph.uri, "r").schema().source == described
    assert og.Graph.open(graph.uri).schema().source == described
    assert leftovers(og.Graph.open(graph.uri)) == []


def test_a_part_of_a_record_alone_means_nothing_and_goes(graph: og.Graph) -> None:
    _stage(graph, TEAM, "01HZZZZZZZZZZZZZZZZZZZZZZZ")
    for path in _records(graph)[1:]:
        path.unlink()
    graph.refresh()
    assert graph.schema().source == SCHEMA
    assert leftovers(graph) == []


# The branch that shows that an apply runs.


def _plant_lock(graph: og.Graph) -> None:
    manifest = graph.context.manifest
    fork_branch_from_state(manifest.ref(), None, layout.SCHEMA_LOCK_BRANCH, manifest.state().version)


def test_the_branch_of_a_dead_apply_is_removed_by_the_next_open(graph: og.Graph) -> None:
    _plant_lock(graph)
    assert leftovers(og.Graph.open(graph.uri, "r")) == [layout.SCHEMA_LOCK_BRANCH]
    assert leftovers(og.Graph.open(graph.uri)) == []


@pytest.mark.parametrize("left", [b"", b"\0\0\0\0"])
def test_a_branch_of_an_apply_that_a_power_cut_tore_is_removed_too(graph: og.Graph, left: bytes) -> None:
    _plant_lock(graph)
    Path(graph.uri, reference_key(graph.context.manifest.ref(), layout.SCHEMA_LOCK_BRANCH)).write_bytes(left)
    assert og.Graph.open(graph.uri, "r").schema().source == SCHEMA
    again = og.Graph.open(graph.uri)
    assert leftovers(again) == []
    assert again.schema_apply(MORE).applied


def test_the_branch_of_a_dead_apply_holds_up_others_until_a_refresh_and_no_apply(graph: og.Graph) -> None:
    _plant_lock(graph)
    with pytest.raises(Conflict, match="a schema apply is running") as refused:
        graph.branch_create("draft")
    assert "refresh" in refused.value.hint
    graph.refresh()
    graph.branch_create("draft")
    graph.branch_delete("draft")
    _plant_lock(graph)
    assert graph.schema_apply(MORE).applied
    assert leftovers(graph) == []


def test_an_open_leaves_the_branch_of_an_apply_that_runs(graph: og.Graph) -> None:
    with applying(graph.context):
        og.Graph.open(graph.uri).refresh()
        assert leftovers(graph) == [layout.SCHEMA_LOCK_BRANCH]


def test_while_an_apply_runs_branches_stay_and_nobody_else_applies(graph: og.Graph) -> None:
    graph.branch_create("draft")
    other = og.Graph.open(graph.uri)
    with applying(graph.context):
        for verb in (
            lambda: other.branch_create("b"),
            lambda: other.branch_delete("draft"),
            lambda: other.branch_merge("draft"),
            lambda: other.cleanup(keep=1),
        ):
            with pytest.raises(Conflict, match="a schema apply is running"):
                verb()
        with pytest.raises(Conflict, match="already in progress"):
            other.schema_apply(TEAM)
        assert layout.SCHEMA_LOCK_BRANCH not in other.branch_list()
        other.mutate('query q() { insert City { name: "rome" } }')
    assert leftovers(graph) == []
    assert other.schema_apply(TEAM).applied


def test_the_lease_of_an_apply_that_fell_silent_elsewhere_is_taken_over(graph: og.Graph) -> None:
    times = {"write_lease_lifetime_ms": 600, "write_lease_heartbeat_ms": 200}
    faulty, _ = of_graph(graph, leased=True, settings=replace(graph.settings, **times))
    lease = {
        "branch": layout.SCHEMA_LOCK_BRANCH,
        "holder": "another-host:1:1",
        "token": 1,
        "nonce": "01HZZZZZZZZZZZZZZZZZZZZZZZ",
        "since": "2024-01-01T00:00:00.000000Z",
        "renewed_at": "2024-01-01T00:00:00.000000Z",
        "lifetime_ms": 600,
    }
    key = f"{layout.LOCK_DIR}/{layout.lock_name(layout.SCHEMA_LOCK_BRANCH)}.json"
    graph.context.objects.put(key, orjson.dumps(lease))
    _plant_lock(graph)
    assert faulty.schema_apply(MORE).applied
    assert leftovers(graph) == []


def test_an_apply_waits_for_recovery_of_other_writes(graph: og.Graph) -> None:
    failpoints.arm("mutation.post_phase_a_pre_phase_b", _die)
    with pytest.raises(Dead):
        graph.mutate('query q() { insert City { name: "rome" } }')
    with pytest.raises(Conflict, match=r"recovery pending: __recovery/.*\.json"):
        graph.schema_apply(TEAM)
    graph.refresh()
    assert graph.schema_apply(TEAM).applied


def test_an_apply_refuses_a_table_that_another_tool_wrote(graph: og.Graph) -> None:
    entry = graph.snapshot().tables["node:City"]
    lance.dataset(f"{graph.uri}/{entry.location}").delete("true")
    with pytest.raises(og.OmniError, match="node:City"):
        graph.schema_apply(TEAM)
    assert graph.schema().source == SCHEMA


def test_a_broken_contract_is_not_applied_over(graph: og.Graph) -> None:
    Path(graph.uri, "_schema.pg").write_text(PERSON + KNOWS)
    with pytest.raises(Conflict, match="no longer matches"):
        og.Graph.open(graph.uri, "r")
    with pytest.raises(Conflict, match="no longer matches"):
        og.Graph.open(graph.uri)
