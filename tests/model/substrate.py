"""How a Lance table answers, as measured.

1. A data commit prepared at version r rebases over later data commits, and is refused once a restore lies above r.
2. A restore always lands, whatever happened since it was planned.
3. The same transaction may land twice; nothing in the table prevents it.
4. A version is never changed, and a late PUT lands only in the slot it was sent for.
"""

from .state import DelayedVersion, Effect, Table, Version


def data_version(table: Table, effect: Effect, prepared_at: int) -> Version | None:
    """The version a data commit would add now, or None when Lance refuses it."""
    if any(version.kind == "restore" for version in table[prepared_at + 1 :]):
        return None
    return Version("data", effect, tuple(sorted((*table[-1].content, effect))))


def restore_version(table: Table, operation: str, target: int) -> Version:
    return Version("restore", (operation, -1), table[target].content)


def append_version(tables: tuple[Table, ...], index: int, version: Version) -> tuple[Table, ...]:
    return (*tables[:index], (*tables[index], version), *tables[index + 1 :])


def slot_holds(table: Table, slot: int, effect: Effect) -> bool:
    return slot < len(table) and table[slot].kind == "data" and table[slot].effect == effect


def can_land(tables: tuple[Table, ...], put: DelayedVersion) -> bool:
    return len(tables[put.table]) == put.slot
