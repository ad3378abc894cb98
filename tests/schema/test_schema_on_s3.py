"""An apply on an object store: the same, with leases for locks and no renames."""

from __future__ import annotations

import pytest
from apply_scene import SCHEMA, SEED, facts, leftovers, rows

from graph_places import S3Place, home_in
from omnigraph.base import failpoints
from omnigraph.base.errors import RecoveryRequired
from s3_server import S3Server

pytestmark = pytest.mark.slow
MEMBER = """\
node Member @rename_from("Person") { name: String @key  years: I32? @index @rename_from("age")  rank: I32 @default(4) }
edge Knows: Member -> Member { since: I32? }
node Team { name: String @key }
"""


def test_an_apply_on_s3_is_one_commit_and_keeps_every_row(s3_server: S3Server) -> None:
    home = home_in(S3Place(s3_server))
    graph = home.init(SCHEMA)
    graph.mutate(SEED)
    past = facts(graph, "node:Person")
    reader = home.open("r")
    assert reader.schema().source == SCHEMA
    failpoints.arm("schema_apply.mid_phase_b", failpoints.fail, skip=1)
    with pytest.raises(RecoveryRequired, match="rolled back"):
        graph.schema_apply(MEMBER)
    assert leftovers(graph) == []
    assert reader.schema().source == SCHEMA

    assert graph.schema_apply(MEMBER, allow_data_loss=True).applied
    assert [(row["name"], row["years"], row["rank"]) for row in rows(reader, "node:Member")] == [
        ("ana", 31, 4),
        ("bo", 7, 4),
    ]
    assert facts(graph, "node:Member") == past
    assert leftovers(graph) == []
    graph.mutate('query q() { insert Member { name: "cy", rank: 5 } insert Team { name: "t" } }')
    assert [row["rank"] for row in rows(home.open(), "node:Member")] == [4, 4, 5]
