"""A branch whose catch-up is interrupted is what it was, or has caught up; its rows are the same either way."""

from __future__ import annotations

from pathlib import Path

import pytest
from past_scene import FIRST, doors, everything, made

import omnigraph as og
from omnigraph.base import failpoints

pytestmark = pytest.mark.slow

WIDER = FIRST.replace("nick: String?", "nick: String?  email: String?") + "node Club { name: String @key }\n"
POINTS = [
    "fork.post_create",
    "schema_catch_up.pre_phase_a",
    "schema_catch_up.post_phase_a_pre_phase_b",
    "schema_catch_up.mid_phase_b",
    "schema_catch_up.post_phase_b_pre_manifest_commit",
    "schema_catch_up.post_manifest_commit_pre_phase_d",
    "schema_catch_up.post_phase_d",
]


class Killed(BaseException):
    """The process is gone: no writer catches it."""


def die() -> None:
    raise Killed


@pytest.mark.parametrize("point", POINTS)
def test_an_interrupted_catch_up_leaves_the_rows_and_lets_the_next_write_through(tmp_path: Path, point: str) -> None:
    graph = made(tmp_path, indexed=False)
    graph.branch_create("side")
    graph.schema_apply(WIDER)
    graph.mutate('query m() { insert Club { name: "chess" } }')
    before = everything(graph, branch="side")
    wanted = 'query m() { insert Person { name: "dan", email: "d@x" }  insert Club { name: "golf" } }'
    failpoints.arm(point, die)
    try:
        with pytest.raises(Killed):
            graph.mutate(wanted, branch="side")
    finally:
        failpoints.disarm_all()
    # Main moves on meanwhile, so a fork that was begun has another start than one made now.
    graph.mutate('query m() { insert Club { name: "rugby" } }')
    assert everything(og.Graph.open(graph.uri, "r"), branch="side") == before
    again = og.Graph.open(graph.uri)
    assert everything(again, branch="side") == before
    again.mutate(wanted, branch="side")
    assert [r["name"] for r in doors(again, "Club", ["name"], branch="side")] == ["golf"]
    assert doors(again, "Person", ["name", "email"], branch="side")[-1] == {"name": "dan", "email": "d@x"}
    again.branch_merge("side")
    assert [r["name"] for r in doors(again, "Club", ["name"])] == ["chess", "golf", "rugby"]
