"""What a warm query asks of an object store: whether there is a newer head, once, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

import omnigraph as og
from fault_proxy import FaultProxy
from s3_server import S3Server

pytestmark = pytest.mark.slow
POINT = 'query q() { match { $p: Person { name: "p1" } } return { $p.age } }'
HOP = 'query q() { match { $p: Person { name: "p1" } $p follows $q } return { $q.name } }'


@pytest.fixture
def proxy(s3_server: S3Server) -> Iterator[FaultProxy]:
    with FaultProxy(s3_server.port) as running:
        yield running


def asked(proxy: FaultProxy, graph: og.Graph, source: str, **more: str) -> list[tuple[str, str]]:
    """The kind and the folder of every request of one query."""
    proxy.calm()
    graph.query(source, **more)
    return [(request.kind, request.key.partition("/graph/")[2].rpartition("/")[0]) for request in proxy.requests]


def test_a_warm_query_asks_the_store_once_whether_the_head_moved(s3_server: S3Server, proxy: FaultProxy) -> None:
    settings = s3_server.settings(aws_endpoint_url=proxy.endpoint)
    schema = "node Person { name: String @key  age: I32? }\nedge Follows: Person -> Person"
    writer = og.Graph.init(s3_server.uri(), schema, settings=settings)
    names = [f"p{n}" for n in range(20)]
    people = pa.table({"name": names, "age": pa.array(range(20), pa.int32())})
    ring = pa.table({"from": names, "to": [*names[1:], names[0]]})
    writer.load_frames({"Person": people, "Follows": ring}, mode="append")
    reader = og.Graph.open(writer.uri, "r", settings=settings)

    for depth in range(2):
        for source in (POINT, HOP, POINT, HOP):
            reader.query(source)
        for source in (POINT, HOP):
            assert asked(proxy, reader, source) == [("HEAD", "__manifest/_versions")], f"after {depth} commits more"
        writer.mutate('query m() { update Person set { age: 99 } where name = "p1" }')

    assert any(folder.startswith("nodes/") for _, folder in asked(proxy, reader, POINT)), "the head has moved"
    assert reader.query(POINT).rows == [{"p.age": 99}]
    writer.branch_create("draft")
    reader.query(HOP, branch="draft")
    found = asked(proxy, reader, HOP, branch="draft")
    assert {folder.split("/")[0] for _, folder in found} == {"__manifest"}, (
        "a branch that differs in nothing reads nothing"
    )
    assert len(found) == 3, "its own head, its incarnation, and main's head, which says the schema of all branches"
