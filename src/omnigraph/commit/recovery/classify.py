"""What an interrupted write left behind, and what to do about it. Pure: every rule of recovery is here.

Per table: H = Lance head, M = manifest pin on the sidecar's branch, E = expected version, P = planned pin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from omnigraph.commit.plan import WriterKind
from omnigraph.storage.apply import Slot
from omnigraph.storage.stage import RESTORE_STEP


class TableClass(Enum):
    INVARIANT_VIOLATION = "InvariantViolation"
    UNREADABLE_HEAD = "UnreadableHead"
    NO_MOVEMENT = "NoMovement"
    ROLLED_PAST_EXPECTED = "RolledPastExpected"
    INCOMPLETE_PHASE_B = "IncompletePhaseB"
    UNEXPECTED_AT_P1 = "UnexpectedAtP1"
    UNEXPECTED_MULTISTEP = "UnexpectedMultistep"


class Decision(Enum):
    DISCARD = "discard"
    SETTLED = "settled"
    ABORT = "abort"
    FORWARD = "forward"
    BACK = "back"


@dataclass(frozen=True)
class TableObservation:
    """One table of a sidecar as recovery finds it; `slots` are the versions above the pin."""

    table_key: str
    head: int
    pin: int
    expected: int
    planned: int
    transactions: tuple[str, ...] = ()
    slots: Mapping[int, Slot] = field(default_factory=dict)


@dataclass(frozen=True)
class Observation:
    """Everything the decision depends on."""

    writer_kind: WriterKind
    operation_id: str
    branch_is_gone: bool
    is_settled: bool
    head_is_parent: bool
    has_recorded_ids: bool
    tables: tuple[TableObservation, ...]
    schema_matches: bool = False
    """Whether the schema files of a schema apply are staged, whole, and fit what it would publish."""


def classify_table(table: TableObservation, kind: WriterKind, operation_id: str) -> TableClass:
    if table.head < table.pin:
        return TableClass.INVARIANT_VIOLATION
    if any(not s.readable for s in table.slots.values()):
        return TableClass.UNREADABLE_HEAD
    if table.head == table.pin:
        return TableClass.NO_MOVEMENT
    if table.expected == table.pin and _landed(table, kind, operation_id):
        return TableClass.ROLLED_PAST_EXPECTED
    if kind is WriterKind.SCHEMA_APPLY and table.head < table.planned and _all_ours(table, kind, operation_id):
        return TableClass.INCOMPLETE_PHASE_B
    return TableClass.UNEXPECTED_AT_P1 if table.head == table.pin + 1 else TableClass.UNEXPECTED_MULTISTEP


def _landed(table: TableObservation, kind: WriterKind, operation_id: str) -> bool:
    planned = range(table.expected + 1, table.planned + 1)
    if table.head < table.planned:
        return False
    if kind.is_loose:
        return all(_is_ours(table.slots.get(v), table, kind, operation_id) for v in planned)
    if not table.transactions:
        # A sidecar without recorded uuids: the version rules alone decide.
        return table.head == table.planned
    held = [slot.uuid if (slot := table.slots.get(v)) else None for v in planned]
    return held == list(table.transactions)


def _all_ours(table: TableObservation, kind: WriterKind, operation_id: str) -> bool:
    return all(_is_ours(s, table, kind, operation_id) for s in table.slots.values())


def _is_ours(slot: Slot | None, table: TableObservation, kind: WriterKind, operation_id: str) -> bool:
    """A restore is never ours to roll forward."""
    if slot is None or slot.step == RESTORE_STEP or slot.operation == "Restore":
        return False
    if slot.uuid in table.transactions or slot.operation_id == operation_id:
        return True
    return kind.preserves_content and slot.operation_id is None and slot.is_maintenance


def decide(seen: Observation) -> Decision:
    """All or nothing, for the whole sidecar."""
    if seen.branch_is_gone:
        return Decision.DISCARD
    if seen.is_settled:
        return Decision.SETTLED
    classes = [classify_table(t, seen.writer_kind, seen.operation_id) for t in seen.tables]
    if TableClass.INVARIANT_VIOLATION in classes:
        return Decision.ABORT
    if not seen.has_recorded_ids and _landed_before_ids(seen.tables, classes):
        return Decision.SETTLED
    forward = all(c is TableClass.ROLLED_PAST_EXPECTED for c in classes)
    if forward and seen.head_is_parent and (seen.schema_matches or seen.writer_kind is not WriterKind.SCHEMA_APPLY):
        return Decision.FORWARD
    return Decision.BACK


class StagedFiles(Enum):
    """What becomes of staged schema files that no sidecar speaks of."""

    FINISH = "finish"
    DELETE = "delete"
    LEAVE = "leave"


def judge_staged(live_matches: bool, staged_matches: bool, commit_is_published: bool) -> StagedFiles:
    """By which schema the tables of the manifest match, and whether it holds the commit that the staged state names."""
    if staged_matches and (commit_is_published or not live_matches):
        return StagedFiles.FINISH
    return StagedFiles.DELETE if live_matches else StagedFiles.LEAVE


def _landed_before_ids(tables: Sequence[TableObservation], classes: Sequence[TableClass]) -> bool:
    """Without recorded ids: nothing above any pin and some pin past its expectation means it was published."""
    return all(c is TableClass.NO_MOVEMENT for c in classes) and any(t.pin > t.expected for t in tables)
