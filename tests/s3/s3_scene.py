"""A graph of two tables on S3, reached through a faulty proxy by a writer and directly by everybody else."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

import omnigraph as og
from fault_proxy import FaultProxy, Request
from omnigraph.base.errors import ExpectedVersionMismatch, OmniError, RecoveryRequired
from omnigraph.base.ids import new_ulid
from omnigraph.commit.plan import LOAD, Receipt
from omnigraph.commit.protocol import commit_plan
from omnigraph.engine.write.changes import Annotations, plan_changes
from omnigraph.storage.tables import head_version
from s3_server import S3Server

SCHEMA = "node Person { name: String @key age: I32? }\nedge Follows: Person -> Person"
PERSON, FOLLOWS = "node:Person", "edge:Follows"
LEASE = {"write_lease_lifetime_ms": 1500, "write_lease_heartbeat_ms": 500}


def people(*names: str) -> pa.Table:
    return pa.table({"id": list(names), "name": list(names)})


def follows(*names: str) -> pa.Table:
    """Everybody follows themselves."""
    return pa.table({"id": list(names), "src": list(names), "dst": list(names)})


def both(*names: str) -> dict[str, og.Append]:
    """The same ids in both tables, so that half a write shows."""
    return {PERSON: og.Append(people(*names)), FOLLOWS: og.Append(follows(*names))}


def ids(graph: og.Graph, table_key: str) -> list[str]:
    return sorted(graph.view().table(table_key).read(["id"]).column("id").to_pylist())


def shown(graph: og.Graph) -> dict[str, list[str]]:
    """What one reader sees in one view: every id, repeated ones too."""
    view = graph.view()
    return {key: sorted(view.table(key).read(["id"]).column("id").to_pylist()) for key in (PERSON, FOLLOWS)}


@dataclass(frozen=True)
class Told:
    """What a writer was told: committed, refused or in doubt."""

    outcome: str
    operation_id: str
    error: OmniError | None = None


def attempt(graph: og.Graph, name: str) -> Told:
    """Write one row to each table; anything but a typed answer fails the test."""
    operation_id = new_ulid()
    try:
        plan = plan_changes(graph.view(), both(name), LOAD, Annotations(), operation_id)
        receipt = commit_plan(graph.context, plan)
    except RecoveryRequired as error:
        assert error.operation_id == operation_id
        return Told("in doubt", operation_id, error)
    except OmniError as error:
        return Told("refused", operation_id, error)
    assert receipt.operation_id == operation_id
    return Told("committed", operation_id)


def write_until_it_lands(graph: og.Graph, name: str) -> Receipt:
    """A write that settles or heals a table first finds its own preparation outdated, once."""
    try:
        return graph.write(both(name))
    except ExpectedVersionMismatch:
        return graph.write(both(name))


def drifted(graph: og.Graph) -> set[str]:
    """The tables whose head is not their pin."""
    tables = graph.snapshot().tables.items()
    refs = {key: graph.context.ref(entry.location, entry.table_branch) for key, entry in tables}
    return {key for key, entry in tables if head_version(refs[key], entry.table_version) != entry.table_version}


@dataclass
class Scene:
    """`direct` is a handle that no fault touches; `rows` is what must be visible in both tables."""

    server: S3Server
    proxy: FaultProxy
    uri: str
    direct: og.Graph
    rows: list[str] = field(default_factory=list)

    @staticmethod
    def made(server: S3Server, proxy: FaultProxy, **settings: object) -> Scene:
        uri = server.uri()
        graph = og.Graph.init(uri, SCHEMA, settings=server.settings(**{**LEASE, **settings}))
        graph.write(both("ana"))
        return Scene(server, proxy, uri, graph, ["ana"])

    def through_proxy(self, **settings: object) -> og.Graph:
        known = {**LEASE, "aws_endpoint_url": self.proxy.endpoint, **settings}
        return og.Graph.open(self.uri, settings=self.server.settings(**known))

    def short(self, request: Request) -> str:
        """A request as a test names it: without the place of this graph."""
        return f"{request.kind} {request.key.removeprefix(self.uri.removeprefix('s3://')).lstrip('/')}"

    def check_told(self, told: Told, name: str) -> str:
        """What was told is true once the next writer has come by; returns what became of the operation."""
        if told.outcome == "committed":
            assert self.direct.operation(told.operation_id).status == "committed"
        self.commit(f"after-{name}")
        status = self.direct.operation(told.operation_id).status
        if told.outcome == "refused":
            assert status in ("refused", "rolled_back"), told
        else:
            assert status in ("committed", "rolled_back", "refused"), f"{told}: {status}"
            assert told.outcome == "in doubt" or status == "committed", told
        if status == "committed":
            self.rows.append(name)
        self.check_converged()
        return status

    def commit(self, name: str) -> None:
        """The next writer, whom nothing disturbs, commits."""
        write_until_it_lands(self.direct, name)
        self.rows.append(name)

    def check_converged(self) -> None:
        wanted = sorted(self.rows)
        assert shown(self.direct) == {PERSON: wanted, FOLLOWS: wanted}
        assert self.direct.recoveries().pending == ()
        assert drifted(self.direct) == set()
        audited = [r.operation_id for r in self.direct.recoveries().records]
        assert len(audited) == len(set(audited)), "an operation has one audit row"
