"""`omnigraph recovery list`, and what interrupted writes look like in the other commands."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.base.clock import iso_us, now_us
from omnigraph.base.ids import new_ulid
from omnigraph.commit.plan import WriterKind
from omnigraph.commit.sidecar import Sidecar, SidecarTable, encode

pytestmark = pytest.mark.slow


def _interrupted(graph: og.Graph) -> str:
    """Leave what a load that died before its first table moved would leave; its operation id."""
    entry = graph.snapshot().tables["node:Person"]
    table = SidecarTable("node:Person", entry.location, None, entry.table_version, entry.table_version + 1)
    sidecar = Sidecar(
        operation_id=new_ulid(),
        started_at=iso_us(now_us() - 7_200_000_000),
        branch=None,
        actor_id="act-ana",
        writer_kind=WriterKind.LOAD,
        tables=(table,),
        graph_commit_id=new_ulid(),
        parent_commit_id=graph.head_commit_id_for_branch(),
    )
    Path("library/__recovery").mkdir(exist_ok=True)
    Path("library", sidecar.key).write_bytes(encode(sidecar))
    return sidecar.operation_id


@pytest.fixture
def operation_id(graph: og.Graph) -> str:
    return _interrupted(graph)


def test_a_graph_that_was_never_interrupted_lists_nothing(cli, graph):
    done = cli("recovery", "list", "-s", "library")
    assert (done.code, done.out) == (0, "")
    assert done.err == "nothing is pending and nothing was ever recovered\n"


def test_a_pending_write_is_listed_and_listing_does_not_settle_it(cli, graph, operation_id):
    line = f"pending {operation_id} writer=Load branch=main actor=act-ana age=2h tables=node:Person"
    for _ in range(2):
        assert cli("recovery", "list", "-s", "library").lines == [line]
    assert line in cli("status", "library").lines
    assert cli("commit", "list", "-s", "library").code == 0
    assert Path("library/__recovery", f"{operation_id}.json").exists()


def test_a_settled_write_is_listed_with_its_outcome_and_commit(cli, graph, operation_id):
    og.Graph.open("library").close()
    head = og.Graph.open("library", "r").head_commit_id_for_branch()
    [line] = cli("recovery", "list", "-s", "library").lines
    assert line.startswith(f"RolledBack {operation_id} writer=Load for=act-ana commit={head} at=")
    assert cli("status", "library").lines[-1] == f"last_recovery: {line}"


def test_commit_show_prints_the_audit_row_of_a_recovery(cli, graph, operation_id):
    og.Graph.open("library").close()
    [listed] = cli("commit", "list", "-s", "library", "--filter", "actor=omnigraph:recovery").lines
    commit_id = listed.split()[0]
    lines = cli("commit", "show", commit_id, "-s", "library").lines
    for expected in (
        "kind: recovery",
        "recovery_kind: RolledBack",
        "recovery_for_actor: act-ana",
        "sidecar_writer_kind: Load",
        f"recovered_operation_id: {operation_id}",
    ):
        assert expected in lines
    body = cli("commit", "show", commit_id, "-s", "library", "--json").json
    assert body["recovery"]["operation_id"] == operation_id


@pytest.mark.parametrize("how", ["table", "kv", "csv", "jsonl"])
def test_recoveries_come_in_every_row_format(cli, graph, operation_id, how):
    done = cli("recovery", "list", "-s", "library", "--format", how)
    assert done.code == 0
    assert operation_id in done.out


def test_recovery_list_json_has_pending_unreadable_and_past_ones(cli, graph, operation_id):
    body = cli("recovery", "list", "-s", "library", "--json").json
    assert [p["operation_id"] for p in body["pending"]] == [operation_id]
    assert (body["unreadable"], body["recoveries"]) == ([], [])


@pytest.mark.parametrize("content", [b"\x00garbage", b"[]", b'{"schema_version": 99}', b'{"schema_version": 1}'])
def test_a_sidecar_that_cannot_be_read_stops_writers_by_name_and_readers_not_at_all(cli, graph, content):
    Path("library/__recovery").mkdir(exist_ok=True)
    Path("library/__recovery/x.json").write_bytes(content)
    with pytest.raises(og.Conflict, match=r"__recovery/x\.json"):
        og.Graph.open("library")
    for line in (["snapshot", "library"], ["commit", "list", "-s", "library"], ["schema", "show", "-s", "library"]):
        assert cli(*line).code == 0
    for line in (["status", "library"], ["recovery", "list", "-s", "library"]):
        done = cli(*line)
        assert done.code == 0
        assert "unreadable __recovery/x.json" in done.out
    assert "__recovery/x.json" in cli("recovery", "list", "-s", "library", "--json").json["unreadable"][0]["error"]
    assert Path("library/__recovery/x.json").read_bytes() == content
