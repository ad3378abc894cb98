"""A writer that slept while its branch was deleted and made again changes nothing on the new one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.commit.plan import LOAD, WritePlan
from omnigraph.engine.write.changes import Annotations, plan_changes
from omnigraph.engine.write.retry import writable
from omnigraph.manifest.publisher import Precondition
from omnigraph.manifest.store import BranchState
from omnigraph.storage.apply import commit_staged

pytestmark = pytest.mark.slow
SCHEMA = "node Person { name: String @key }"


def rows(*names: str) -> pa.Table:
    return pa.table({"id": list(names), "name": list(names)})


def add(graph: og.Graph, *names: str) -> None:
    graph.write({"node:Person": og.Append(rows(*names))}, branch="draft")


def people(graph: og.Graph) -> list[str]:
    return sorted(graph.view("draft").table("node:Person").read(["id"]).column("id").to_pylist())


class Sleeper:
    """A writer that has prepared a write on the branch and looked at its head, and then fell asleep."""

    def __init__(self, uri: str) -> None:
        self.graph = og.Graph.open(uri)
        self.state: BranchState = self.graph.context.manifest.state("draft")
        view = writable(self.graph.context, self.graph.view("draft"), ["node:Person"])
        self.plan: WritePlan = plan_changes(view, {"node:Person": og.Append(rows("late"))}, LOAD, Annotations())

    def apply(self) -> None:
        for effect in self.plan.effects:
            for step in effect.steps:
                commit_staged(step)  # type: ignore[arg-type]

    def publish(self) -> None:
        """Refused on a new branch of that name; on a deleted one it lands where nobody looks."""
        condition = Precondition(None, self.state.head_id, True, self.plan.branch_incarnation)
        with suppress(og.Conflict):
            self.graph.context.publisher.publish(
                "draft", self.plan.changes, {}, self.plan.intent(None), condition, self.state.version, self.state
            )

    def both(self) -> None:
        self.apply()
        self.publish()


@pytest.mark.parametrize("late", [Sleeper.apply, Sleeper.publish, Sleeper.both])
@pytest.mark.parametrize("own_commits", [0, 1, 4])
@pytest.mark.parametrize("new_commits", [0, 1, 3])
def test_what_a_sleeper_still_does_stays_invisible(
    tmp_path: Path, late: Callable[[Sleeper], None], own_commits: int, new_commits: int
) -> None:
    graph = og.Graph.init(str(tmp_path / "graph"), SCHEMA)
    graph.branch_create("draft")
    for number in range(own_commits):
        add(graph, f"old{number}")
    sleeper = Sleeper(graph.uri)
    graph.branch_delete("draft")
    graph.branch_create("draft")
    names = [f"new{number}" for number in range(new_commits)]
    for name in names:
        add(graph, name)

    late(sleeper)

    again = og.Graph.open(graph.uri)
    assert people(again) == names
    add(again, "next")
    assert people(og.Graph.open(graph.uri, "r")) == [*names, "next"]
    assert len(again.list_commits("draft")) == 1 + new_commits + 1
    assert all(t.head == t.pinned for b in again.status().branches if b.branch == "draft" for t in b.tables)


@pytest.mark.parametrize("late", [Sleeper.apply, Sleeper.publish, Sleeper.both])
def test_a_late_write_to_a_deleted_branch_does_not_block_its_name(
    tmp_path: Path, late: Callable[[Sleeper], None]
) -> None:
    graph = og.Graph.init(str(tmp_path / "graph"), SCHEMA)
    graph.branch_create("draft")
    add(graph, "old")
    sleeper = Sleeper(graph.uri)
    graph.branch_delete("draft")

    late(sleeper)

    assert og.Graph.open(graph.uri).branch_list() == ["main"]
    graph.branch_create("draft")
    add(graph, "next")
    assert people(og.Graph.open(graph.uri)) == ["next"]
