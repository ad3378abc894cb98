"""Every rule of recovery, without a disk: what a table went through, and what is done about the whole write."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from omnigraph.commit.plan import WriterKind
from omnigraph.commit.recovery.classify import (
    Decision,
    Observation,
    TableClass,
    TableObservation,
    classify_table,
    decide,
)
from omnigraph.storage.apply import Slot

OURS, OTHER = "01J0000000000000000000OURS", "01J000000000000000000OTHER"
STRICT = (WriterKind.MUTATION, WriterKind.LOAD, WriterKind.BRANCH_MERGE, WriterKind.SCHEMA_CATCH_UP)
LOOSE = (WriterKind.SCHEMA_APPLY, WriterKind.ENSURE_INDICES, WriterKind.OPTIMIZE)
PRESERVING = (WriterKind.ENSURE_INDICES, WriterKind.OPTIMIZE)


def ours(version: int, uuid: str = "", operation: str = "Append") -> Slot:
    return Slot(version, True, uuid or f"u{version}", OURS, "0", operation)


def foreign(version: int, operation: str = "Append") -> Slot:
    return Slot(version, True, "foreign", None, None, operation)


def another(version: int) -> Slot:
    return Slot(version, True, "another", OTHER, "0", "Append")


def restore(version: int) -> Slot:
    return Slot(version, True, f"u{version}", OURS, "restore", "Restore")


def torn(version: int) -> Slot:
    return Slot(version, False)


def table(*slots: Slot, pin: int = 5, expected: int = 5, planned: int = 6, **more: Any) -> TableObservation:
    """A table whose versions above its pin are `slots`; the sidecar recorded u6, u7, … for the planned ones."""
    head = more.pop("head", pin + len(slots))
    recorded = more.pop("recorded", tuple(f"u{v}" for v in range(expected + 1, planned + 1)))
    return TableObservation("node:Person", head, pin, expected, planned, recorded, {s.version: s for s in slots})


def seen(*tables: TableObservation, kind: WriterKind = WriterKind.MUTATION, **more: Any) -> Observation:
    facts = {"branch_is_gone": False, "is_settled": False, "head_is_parent": True, "has_recorded_ids": True, **more}
    return Observation(kind, OURS, tables=tables, **facts)


@pytest.mark.parametrize("kind", WriterKind)
def test_a_head_below_its_pin_is_a_violation_for_every_writer(kind: WriterKind) -> None:
    assert classify_table(table(head=4), kind, OURS) is TableClass.INVARIANT_VIOLATION


@pytest.mark.parametrize("kind", WriterKind)
def test_a_version_that_cannot_be_opened_is_an_unreadable_head_even_below_others(kind: WriterKind) -> None:
    assert classify_table(table(torn(6)), kind, OURS) is TableClass.UNREADABLE_HEAD
    assert classify_table(table(torn(6), ours(7)), kind, OURS) is TableClass.UNREADABLE_HEAD
    assert classify_table(table(ours(6), torn(7)), kind, OURS) is TableClass.UNREADABLE_HEAD


@pytest.mark.parametrize("kind", WriterKind)
def test_a_head_at_its_pin_did_not_move(kind: WriterKind) -> None:
    assert classify_table(table(), kind, OURS) is TableClass.NO_MOVEMENT
    assert classify_table(table(pin=6), kind, OURS) is TableClass.NO_MOVEMENT


@pytest.mark.parametrize("kind", STRICT)
def test_a_strict_writer_landed_when_its_slot_holds_its_uuid_whatever_lies_above(kind: WriterKind) -> None:
    assert classify_table(table(ours(6)), kind, OURS) is TableClass.ROLLED_PAST_EXPECTED
    assert classify_table(table(ours(6), another(7)), kind, OURS) is TableClass.ROLLED_PAST_EXPECTED
    assert classify_table(table(ours(6), restore(7)), kind, OURS) is TableClass.ROLLED_PAST_EXPECTED


@pytest.mark.parametrize("kind", STRICT)
@pytest.mark.parametrize(
    ("observed", "found"),
    [
        (table(foreign(6)), TableClass.UNEXPECTED_AT_P1),
        (table(another(6)), TableClass.UNEXPECTED_AT_P1),
        (table(ours(6, "of another step")), TableClass.UNEXPECTED_AT_P1),
        (table(foreign(6, "Rewrite")), TableClass.UNEXPECTED_AT_P1),
        (table(another(6), ours(7, "u6")), TableClass.UNEXPECTED_MULTISTEP),
        (table(ours(7), pin=6), TableClass.UNEXPECTED_AT_P1),
        (table(ours(6), planned=7), TableClass.UNEXPECTED_AT_P1),
        (table(ours(6), ours(7), planned=7, recorded=("u6",)), TableClass.UNEXPECTED_MULTISTEP),
    ],
)
def test_a_strict_writer_accepts_nothing_else(kind: WriterKind, observed: TableObservation, found: TableClass) -> None:
    assert classify_table(observed, kind, OURS) is found


@pytest.mark.parametrize("kind", STRICT)
def test_without_recorded_uuids_the_version_numbers_alone_decide(kind: WriterKind) -> None:
    assert classify_table(table(foreign(6), recorded=()), kind, OURS) is TableClass.ROLLED_PAST_EXPECTED
    found = classify_table(table(foreign(6), foreign(7), recorded=()), kind, OURS)
    assert found is TableClass.UNEXPECTED_MULTISTEP


@pytest.mark.parametrize("kind", LOOSE)
def test_a_loose_writer_landed_by_uuid_or_by_operation_id(kind: WriterKind) -> None:
    by_uuid = Slot(6, True, "u6", None, None, "Append")
    assert classify_table(table(by_uuid), kind, OURS) is TableClass.ROLLED_PAST_EXPECTED
    later_step = table(ours(6), ours(7, "staged later", "CreateIndex"), planned=7, recorded=("u6",))
    assert classify_table(later_step, kind, OURS) is TableClass.ROLLED_PAST_EXPECTED


@pytest.mark.parametrize("operation", ["Rewrite", "ReserveFragments", "CreateIndex"])
def test_unstamped_maintenance_belongs_to_content_preserving_writers_only(operation: str) -> None:
    observed = table(foreign(6, operation))
    for kind in PRESERVING:
        assert classify_table(observed, kind, OURS) is TableClass.ROLLED_PAST_EXPECTED
    assert classify_table(observed, WriterKind.SCHEMA_APPLY, OURS) is TableClass.UNEXPECTED_AT_P1


@pytest.mark.parametrize("kind", LOOSE)
@pytest.mark.parametrize(
    ("observed", "found"),
    [
        (table(another(6)), TableClass.UNEXPECTED_AT_P1),
        (table(foreign(6)), TableClass.UNEXPECTED_AT_P1),
        (table(restore(6)), TableClass.UNEXPECTED_AT_P1),
        (table(ours(6), another(7), planned=7), TableClass.UNEXPECTED_MULTISTEP),
        (table(ours(6), restore(7), planned=7), TableClass.UNEXPECTED_MULTISTEP),
        (table(ours(7), pin=6, planned=7), TableClass.UNEXPECTED_AT_P1),
    ],
)
def test_a_loose_writer_never_takes_a_restore_or_a_stranger_for_its_own(
    kind: WriterKind, observed: TableObservation, found: TableClass
) -> None:
    assert classify_table(observed, kind, OURS) is found


def test_a_schema_apply_that_stopped_between_its_steps_is_incomplete() -> None:
    observed = table(ours(6), planned=8)
    assert classify_table(observed, WriterKind.SCHEMA_APPLY, OURS) is TableClass.INCOMPLETE_PHASE_B
    for kind in PRESERVING:
        assert classify_table(observed, kind, OURS) is TableClass.UNEXPECTED_AT_P1


def of(head: int, pin: int, expected: int, *slots: Slot, recorded: bool = True) -> TableObservation:
    uuids = (f"u{expected + 1}",) if recorded else ()
    by_version = {s.version: s for s in slots}
    above = {v: by_version.get(v, ours(v)) for v in range(pin + 1, head + 1)}
    return TableObservation("t", head, pin, expected, expected + 1, uuids, above)


@pytest.mark.parametrize(
    ("person", "follows", "decision"),
    [
        (of(6, 5, 5), of(4, 3, 3), Decision.FORWARD),
        (of(6, 5, 5), of(3, 3, 3), Decision.BACK),
        (of(7, 5, 5, another(6), ours(7, "u6")), of(4, 3, 3), Decision.BACK),
        (of(7, 5, 5, recorded=False), of(4, 3, 3, recorded=False), Decision.BACK),
        (of(4, 5, 5), of(4, 3, 3), Decision.ABORT),
    ],
    ids=["heads-6-4", "heads-6-3", "heads-7-4", "heads-7-4-without-uuids", "head-4-under-pin-5"],
)
def test_the_worked_example(person: TableObservation, follows: TableObservation, decision: Decision) -> None:
    """Person E=5 P=6, Follows E=3 P=4."""
    assert decide(seen(person, follows)) is decision


def test_the_worked_example_with_pins_6_and_4_has_landed_already() -> None:
    tables = of(6, 6, 5), of(4, 4, 3)
    assert decide(seen(*tables, is_settled=True)) is Decision.SETTLED
    assert decide(seen(*tables, has_recorded_ids=False)) is Decision.SETTLED


def test_a_sidecar_with_ids_is_settled_by_its_commit_and_not_by_where_pins_are() -> None:
    assert decide(seen(of(6, 6, 5), of(4, 4, 3))) is Decision.BACK


def test_without_ids_a_write_of_which_nothing_moved_is_rolled_back() -> None:
    assert decide(seen(of(5, 5, 5), of(3, 3, 3), has_recorded_ids=False)) is Decision.BACK


def test_a_gone_branch_comes_before_everything_else() -> None:
    violated = of(4, 5, 5)
    assert decide(seen(violated, branch_is_gone=True, is_settled=True)) is Decision.DISCARD


def test_a_settled_write_is_never_touched_again_even_below_a_violation() -> None:
    assert decide(seen(of(4, 5, 5), is_settled=True)) is Decision.SETTLED


@pytest.mark.parametrize("kind", WriterKind)
def test_a_moved_head_turns_every_roll_forward_into_a_roll_back(kind: WriterKind) -> None:
    observed = seen(of(6, 5, 5), kind=kind, schema_matches=True)
    assert decide(observed) is Decision.FORWARD
    assert decide(dataclasses.replace(observed, head_is_parent=False)) is Decision.BACK


@pytest.mark.parametrize(
    "broken", [of(5, 5, 5), table(torn(6)), table(foreign(6)), table(another(6), another(7))], ids=lambda t: "slots"
)
def test_one_table_that_did_not_land_takes_all_others_back(broken: TableObservation) -> None:
    assert decide(seen(of(6, 5, 5), broken)) is Decision.BACK
    assert decide(seen(broken, of(6, 5, 5))) is Decision.BACK


def test_a_schema_apply_goes_forward_only_with_its_schema_files() -> None:
    observed = seen(of(6, 5, 5), kind=WriterKind.SCHEMA_APPLY)
    assert decide(observed) is Decision.BACK
    assert decide(dataclasses.replace(observed, schema_matches=True)) is Decision.FORWARD
