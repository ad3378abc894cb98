"""Versions above a pin that nothing explains: what they are, told from their own records. Reads only.

`classify` decides and is pure; what is done about each kind is decided by whoever asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from omnigraph.base.errors import OmniError
from omnigraph.commit.context import CommitContext
from omnigraph.commit.heal import Verdict, verdict
from omnigraph.manifest.snapshot import SubTableEntry
from omnigraph.storage.apply import Slot, read_slot
from omnigraph.storage.tables import TableRef, head_version


class DriftKind(Enum):
    NONE = "none"
    LATE = "late"
    """All of it carries the stamps of writes of ours that were refused or forgotten."""
    MAINTENANCE = "maintenance"
    DATA = "data"
    UNVERIFIABLE = "unverifiable"
    """The newest version opens, but what led to it cannot be read."""
    UNREADABLE = "unreadable"
    BELOW_PIN = "below_pin"


@dataclass(frozen=True)
class TableDrift:
    """A table beside its pin; `operations` are what each version above the pin did, the oldest first."""

    pin: int
    head: int
    kind: DriftKind
    operations: tuple[str, ...] = ()


def classify(pin: int, head: int, slots: Sequence[Slot | None]) -> DriftKind:
    """`slots` are the versions above the pin, the oldest first."""
    if head < pin:
        return DriftKind.BELOW_PIN
    if head == pin:
        return DriftKind.NONE
    newest = slots[-1]
    if newest is not None and not newest.readable:
        return DriftKind.UNREADABLE
    if any(slot is None or not slot.readable or not slot.operation for slot in slots):
        return DriftKind.UNVERIFIABLE
    found = verdict(slots)
    if found is Verdict.RESTORE:
        return DriftKind.LATE
    return DriftKind.MAINTENANCE if found is Verdict.ADOPT else DriftKind.DATA


def drift_of(ctx: CommitContext, entry: SubTableEntry) -> TableDrift:
    """What lies above the pin of a table right now; a writer may be at work."""
    ref, pin = ctx.ref(entry.location, entry.table_branch), entry.table_version
    head = head_version(ref, pin)
    slots = [_slot(ref, version) for version in range(pin + 1, head + 1)]
    return TableDrift(pin, head, classify(pin, head, slots), tuple(_named(slot) for slot in slots))


def _slot(ref: TableRef, version: int) -> Slot | None:
    try:
        return read_slot(ref, version)
    except OmniError:
        # It is whole, and what it says of its making is gone.
        return Slot(version, True)


def _named(slot: Slot | None) -> str:
    if slot is None:
        return "missing"
    return slot.operation or "unknown" if slot.readable else "unreadable"
