"""What must hold of a graph after a crash, whatever died where."""

from __future__ import annotations

from dataclasses import dataclass

from crash_cases import Case, Outcome
from crash_world import ACTOR, MESSAGE, TABLES, TableSeen, heads, pins, rows_of, seen

from graph_places import Home, Place, sidecars
from omnigraph.commit.recovery.audit import RecoveryRecord
from omnigraph.engine.write.changes import Upsert
from omnigraph.graph import Graph
from omnigraph.manifest.lineage import GraphCommit

AUDIT_KIND = {Outcome.ROLLED_FORWARD: "RolledForward", Outcome.ROLLED_BACK: "RolledBack"}
STATUS = {
    Outcome.UNTOUCHED: "refused",
    Outcome.LANDED: "committed",
    Outcome.ROLLED_FORWARD: "committed",
    Outcome.ROLLED_BACK: "rolled_back",
}


@dataclass(frozen=True)
class Known:
    """A graph as it was, or as it is after the same write without a crash."""

    tables: dict[str, TableSeen]
    pins: dict[str, int]
    commits: int

    @staticmethod
    def of(graph: Graph) -> Known:
        return Known(seen(graph), pins(graph), len(graph.list_commits()))


@dataclass(frozen=True)
class Wreck:
    """What is left when the last life of a case has ended."""

    home: Home
    operation_id: str
    planned_commit_id: str | None
    acknowledged: bool


def check_recovered(case: Case, wreck: Wreck, place: Place, before: Known, after: Known) -> None:
    """Open the wreck read-write and hold it against the promises of the write path."""
    graph = wreck.home.open()
    shown = seen(graph)
    assert shown in (before.tables, after.tables), "readers see something between before and after"
    is_after = case.outcome in (Outcome.LANDED, Outcome.ROLLED_FORWARD)
    assert shown == (after if is_after else before).tables, f"expected {case.outcome.value}"
    assert is_after or not wreck.acknowledged, "an acknowledged write was lost"
    assert sidecars(place, wreck.home.uri) == [], "a sidecar is left"
    assert heads(graph) == pins(graph), "a table's head is not its pin"
    commit = _check_history(graph, case, wreck, before)
    _check_audit(graph, case, wreck, before, after, commit)
    outcome = graph.operation(wreck.operation_id)
    assert outcome.status == STATUS[case.outcome]
    assert outcome.commit == commit
    _check_second_open_changes_nothing(wreck.home, place)
    _check_next_write(wreck.home, shown)


def _check_history(graph: Graph, case: Case, wreck: Wreck, before: Known) -> GraphCommit | None:
    """The history is one line, grows in time, and tells what happened; returns the commit of the operation."""
    commits = graph.list_commits()[::-1]
    assert [c.parent_commit_id for c in commits] == [None, *(c.graph_commit_id for c in commits[:-1])]
    times = [c.created_at for c in commits]
    assert times == sorted(set(times)), "created_at does not grow strictly"
    ours = [c for c in commits if c.operation_id == wreck.operation_id]
    healed = [c for c in commits[before.commits :] if c not in ours]
    assert all("healed" in c.metadata["omnigraph"] for c in healed)
    if case.outcome is Outcome.UNTOUCHED:
        assert (ours, healed) == ([], [])
        return None
    (commit,) = ours
    if case.outcome is Outcome.LANDED:
        assert (commit.kind, commit.actor_id) == (case.effect.writer.commit_kind, ACTOR)
    else:
        assert (commit.kind, commit.actor_id) == ("recovery", "omnigraph:recovery")
    if case.outcome is Outcome.ROLLED_BACK:
        assert commit.graph_commit_id != wreck.planned_commit_id
        return commit
    assert commit.graph_commit_id == wreck.planned_commit_id
    assert (commit.message, commit.metadata["why"]) == (MESSAGE, "crash")
    return commit


def _check_audit(
    graph: Graph, case: Case, wreck: Wreck, before: Known, after: Known, commit: GraphCommit | None
) -> None:
    rows = [r for r in graph.recoveries().records if r.operation_id == wreck.operation_id]
    if case.outcome not in AUDIT_KIND:
        assert rows == [], "an effect landed by its own writer, or by nobody, has no audit row"
        return
    (row,) = rows
    assert commit is not None
    assert row.recovery_kind == AUDIT_KIND[case.outcome]
    assert row.graph_commit_id == commit.graph_commit_id
    assert row.recovery_for_actor == ACTOR
    assert row.sidecar_writer_kind == case.effect.writer.sidecar.value
    _check_audited_tables(row, case, before, after)


def _check_audited_tables(row: RecoveryRecord, case: Case, before: Known, after: Known) -> None:
    told = {o.table_key: (o.from_version, o.to_version) for o in row.per_table_outcomes}
    if case.outcome is Outcome.ROLLED_FORWARD:
        assert told == {t: (before.pins[t], after.pins[t]) for t in case.tables}
        return
    assert set(told) <= set(case.tables)
    assert all(is_from > to == before.pins[t] for t, (is_from, to) in told.items())


def _check_second_open_changes_nothing(home: Home, place: Place) -> None:
    left = place.listing(home.uri)
    with home.open():
        pass
    assert place.listing(home.uri) == left, "a second open changed files"


def _check_next_write(home: Home, shown: dict[str, TableSeen]) -> None:
    graph = home.open()
    receipt = graph.write({t: Upsert(rows_of(t, ["later"], "later")) for t in TABLES})
    now = seen(graph)
    for table, was in shown.items():
        assert [r for r in now[table].rows if ("id", "later") not in r] == list(was.rows)
        assert len(now[table].rows) == len(was.rows) + 1
    assert graph.operation(receipt.operation_id).status == "committed"
    assert heads(graph) == pins(graph)
