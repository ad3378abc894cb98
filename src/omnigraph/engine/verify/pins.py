"""Pinned versions: each opens, is its table's head, and has the rows the manifest says."""

from __future__ import annotations

from omnigraph.base.errors import GraphMoved, NotFound
from omnigraph.commit.drift import DriftKind, TableDrift, drift_of
from omnigraph.engine.upkeep.seen import is_held, outlasting
from omnigraph.engine.verify.findings import Damage
from omnigraph.engine.verify.inspection import UNREADABLE, Inspection, place_of
from omnigraph.manifest.snapshot import SubTableEntry
from omnigraph.manifest.store import BranchState
from omnigraph.storage.tables import Table, head_version, is_torn, newest_number, open_table

_KINDS = {
    DriftKind.LATE: Damage.LATE,
    DriftKind.MAINTENANCE: Damage.DRIFT_MAINTENANCE,
    DriftKind.DATA: Damage.DRIFT_DATA,
    DriftKind.UNVERIFIABLE: Damage.DRIFT_UNVERIFIABLE,
    DriftKind.UNREADABLE: Damage.TORN_ABOVE,
    DriftKind.BELOW_PIN: Damage.PIN,
}
_TOLD = {
    DriftKind.LATE: "a write of ours that was refused landed late",
    DriftKind.MAINTENANCE: "another tool compacted or indexed the table",
    DriftKind.DATA: "another tool changed rows of the table",
    DriftKind.UNVERIFIABLE: "what led to the newest version cannot be read",
    DriftKind.UNREADABLE: "the newest version is torn",
    DriftKind.BELOW_PIN: "published versions of the table were removed",
}


def damage_of(drift: TableDrift) -> Damage | None:
    """The finding for what lies above a pin; None when nothing does."""
    return _KINDS.get(drift.kind)


def told_of(drift: TableDrift) -> str:
    done = f" ({', '.join(drift.operations)})" if drift.operations else ""
    return f"{_TOLD[drift.kind]}: head v{drift.head}, pin v{drift.pin}{done}"


def open_pin(look: Inspection, branch: str | None, key: str, entry: SubTableEntry) -> Table | None:
    """The pinned version, or None and why it cannot be opened."""
    place = place_of(entry)
    ref, pin = look.ref(place), entry.table_version
    try:
        if not is_torn(ref, pin):
            return open_table(ref, pin, key, fresh=True)
        why = "its version file is torn"
    except GraphMoved as error:
        look.broken.add(place)
        look.add(Damage.MOVED_BASE, branch, key, str(error), pinned=pin, path=error.recorded_base)
        return None
    except UNREADABLE as error:
        why = str(error)
    if _is_gone(look, branch, key, entry):
        return None
    look.broken.add(place)
    look.add(
        Damage.PIN,
        branch,
        key,
        f"the pinned version v{pin} cannot be opened: {why}",
        pinned=pin,
        head=_newest(look, entry),
        path=ref.version_file(pin),
    )
    return None


def _is_gone(look: Inspection, branch: str | None, key: str, entry: SubTableEntry) -> bool:
    """Whether the branch was deleted or went on since it was read: then its old versions may be collected."""
    try:
        return look.manifest.state(branch).entries.get(key) != entry
    except NotFound:
        return True
    except UNREADABLE:
        return False


def _newest(look: Inspection, entry: SubTableEntry) -> int | None:
    try:
        return newest_number(look.ref(place_of(entry)))
    except UNREADABLE:
        return None


def check_row_count(look: Inspection, branch: str | None, key: str, entry: SubTableEntry, table: Table) -> None:
    found = table.count_rows()
    if found != entry.row_count:
        told = f"v{entry.table_version} has {found} rows, the manifest says {entry.row_count}"
        look.add(Damage.CONTENT, branch, key, told, pinned=entry.table_version)


def check_drift(look: Inspection, state: BranchState) -> None:
    """Heads that are not their pins, when no living writer explains them."""
    branch = state.branch

    def troubles() -> set[tuple[str, int, int]]:
        try:
            owned = [(k, e) for k, e in look.manifest.state(branch).entries.items() if e.table_branch == branch]
        except NotFound:
            return set()
        heads = [(k, e.table_version, head_version(look.ref(place_of(e)), e.table_version)) for k, e in owned]
        return {found for found in heads if found[1] != found[2]}

    for key, pin, head in sorted(outlasting(look.ctx, troubles, lambda: is_held(look.ctx, branch))):
        entry = _entry(look, branch, key)
        if entry is None or entry.table_version != pin:
            continue  # a writer came and settled it
        drift = drift_of(look.ctx, entry)
        damage = damage_of(drift)
        if damage is None:
            continue
        if place_of(entry) in look.broken or (branch, key) in look.explained:
            continue
        look.add(
            damage,
            branch,
            key,
            told_of(drift),
            pinned=pin,
            head=drift.head,
            path=look.ref(place_of(entry)).version_file(head),
            operations=drift.operations,
        )


def _entry(look: Inspection, branch: str | None, key: str) -> SubTableEntry | None:
    """The table as the branch has it now; None when it was dropped or the branch deleted."""
    try:
        return look.manifest.state(branch).entries.get(key)
    except NotFound:
        return None
