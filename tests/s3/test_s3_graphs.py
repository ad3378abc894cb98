"""Graphs on a real S3-compatible server: the same promises as on a local disk."""

from __future__ import annotations

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.base import failpoints
from omnigraph.commit.plan import LOAD
from omnigraph.manifest.branches import create_manifest_branch
from s3_server import S3Server

pytestmark = pytest.mark.slow
SCHEMA = "node Person { name: String @key age: I32? }\nedge Follows: Person -> Person"


class Died(BaseException):
    """A process that stops here; its lease stays until somebody notices that it is gone."""


def die() -> None:
    raise Died


def people(*names: str) -> pa.Table:
    return pa.table({"id": list(names), "name": list(names)})


def follows(*pairs: tuple[str, str]) -> pa.Table:
    return pa.table({"id": [f"{a}-{b}" for a, b in pairs], "src": [a for a, _ in pairs], "dst": [b for _, b in pairs]})


@pytest.fixture
def graph(s3_server: S3Server) -> og.Graph:
    return og.Graph.init(s3_server.uri(), SCHEMA, settings=s3_server.settings(manifest_compact_fragments=6))


def ids(graph: og.Graph, table_key: str) -> set[str]:
    return set(graph.view().table(table_key).read(["id"]).column("id").to_pylist())


def test_a_graph_on_s3_is_written_reopened_and_read_at_any_version(graph: og.Graph, s3_server: S3Server) -> None:
    graph.write({"node:Person": og.Append(people("ana", "bo")), "edge:Follows": og.Append(follows(("ana", "bo")))})
    for i in range(12):
        graph.write({"node:Person": og.Upsert(people(f"p{i}"), (f"p{i - 1}",))}, message=f"round {i}")
    again = og.Graph.open(graph.uri, "r", settings=s3_server.settings())
    assert ids(again, "node:Person") == {"ana", "bo", "p11"}
    assert len(again.list_commits()) == 14
    assert again.snapshot_of("main~12").tables["node:Person"].row_count == 2
    assert again.entity_at("edge:Follows", "ana-bo", again.snapshot().version) == {
        "id": "ana-bo",
        "src": "ana",
        "dst": "bo",
    }


@pytest.mark.parametrize("window", failpoints.WINDOWS)
def test_a_write_that_died_on_s3_is_settled_by_the_next_open(graph: og.Graph, s3_server: S3Server, window: str) -> None:
    graph.write({"node:Person": og.Append(people("ana"))})
    failpoints.arm(f"load.{window}", die)
    changes = {"node:Person": og.Append(people("bo")), "edge:Follows": og.Append(follows(("ana", "bo")))}
    with pytest.raises(Died):
        graph.write(changes, writer=LOAD)
    reopened = og.Graph.open(graph.uri, settings=s3_server.settings())
    found = (ids(reopened, "node:Person"), ids(reopened, "edge:Follows"))
    assert found in (({"ana"}, set()), ({"ana", "bo"}, {"ana-bo"}))
    assert reopened.recoveries().pending == ()
    assert all(t.head == t.pinned for t in reopened.status().branches[0].tables)
    reopened.write({"node:Person": og.Append(people("cy"))})


def test_a_second_init_of_the_same_prefix_is_refused(graph: og.Graph, s3_server: S3Server) -> None:
    with pytest.raises(og.Conflict, match="already initialized"):
        og.Graph.init(graph.uri, SCHEMA, settings=s3_server.settings())


def test_a_prefix_without_a_graph_is_not_found(s3_server: S3Server) -> None:
    with pytest.raises(og.NotFound, match="is not a graph"):
        og.Graph.open(s3_server.uri(), settings=s3_server.settings())


def test_wrong_credentials_are_named_and_nothing_happens(graph: og.Graph, s3_server: S3Server) -> None:
    with pytest.raises(og.Unavailable) as refused:
        og.Graph.open(graph.uri, settings=s3_server.settings(aws_secret_access_key="wrong"))
    assert refused.value.what == "credentials"


def test_a_store_that_is_down_is_unavailable(s3_server: S3Server) -> None:
    settings = s3_server.settings(aws_endpoint_url="http://127.0.0.1:9", storage_retry_timeout_ms=1000)
    with pytest.raises(og.Unavailable):
        og.Graph.open(s3_server.uri(), settings=settings)


def test_secrets_are_not_printed(s3_server: S3Server) -> None:
    shown = repr(s3_server.settings()) + repr(s3_server.access())
    assert "test-secret" not in shown
    assert "test-key" not in shown


def test_a_branch_on_s3_records_this_graph_as_its_base(graph: og.Graph, s3_server: S3Server) -> None:
    graph.write({"node:Person": og.Append(people("ana"))})
    create_manifest_branch(graph.context.manifest, None, "draft")
    again = og.Graph.open(graph.uri, "r", settings=s3_server.settings())
    assert again.snapshot("draft").tables["node:Person"].row_count == 1
