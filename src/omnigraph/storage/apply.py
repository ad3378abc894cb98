"""The only place that moves a data table: commits of staged writes, and restores. Only the commit room calls it.

A commit landed iff its slot holds its uuid;
what the call answered decides nothing.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import lance
from lance.optimize import Compaction

from omnigraph.base.errors import OmniError, Unavailable
from omnigraph.storage.durable import sync_version
from omnigraph.storage.failures import translate, translated
from omnigraph.storage.stage import OPERATION_ID, STEP, StagedWrite, Stamp
from omnigraph.storage.tables import ASIDE, VERSIONS, Table, TableRef, has_version, is_torn, open_table

_log = logging.getLogger("omnigraph.storage")
_commit = lance.LanceDataset.commit
_RANDOM_TRIES = 5
_FIRST_DETACHED = 1 << 63
_MAINTENANCE = frozenset({"Rewrite", "ReserveFragments", "CreateIndex"})


@dataclass(frozen=True)
class Slot:
    """What one version of a table holds, as far as its own record tells."""

    version: int
    readable: bool
    uuid: str | None = None
    operation_id: str | None = None
    step: str | None = None
    operation: str = ""

    @property
    def is_maintenance(self) -> bool:
        return self.readable and self.operation in _MAINTENANCE


@dataclass(frozen=True)
class Answer:
    """What a commit call answered: a handle or an error. Only a hint; the slot decides."""

    table: Table | None = None
    error: OmniError | None = None


def commit_staged(staged: StagedWrite) -> Answer:
    """Commit once, without retries; ask `landed` afterwards."""
    try:
        return Answer(_committed(staged))
    except BaseException as error:
        known = translate(error, f"commit {staged.stamp.table_key}")
        if known is None:
            raise
        return Answer(error=known)


def _committed(staged: StagedWrite) -> Table | None:
    if staged.read_version == 0:
        created = _commit(
            staged.ref.uri,
            staged.transaction,
            max_retries=0,
            detached=False,
            enable_stable_row_ids=True,
            storage_options=staged.ref.options,
        )
        return Table(staged.ref, created)
    if staged.rewrites:
        # Lance moves the handle a compaction is committed through, so it must be one nobody else holds.
        own = open_table(staged.ref, staged.read_version, staged.stamp.table_key)
        Compaction.commit(own.dataset, list(staged.rewrites))
        return None
    base = staged.table or open_table(staged.ref, staged.read_version, staged.stamp.table_key)
    return Table(staged.ref, _commit(base.dataset, staged.transaction, max_retries=0, detached=False))


def landed(staged: StagedWrite, expected: int, answer: Answer) -> bool:
    """Whether the slots after `expected` hold exactly this write."""
    if staged.rewrites:
        slots = [read_slot(staged.ref, expected + k) for k in range(1, staged.versions + 1)]
        return all(s is not None and s.is_maintenance and s.operation_id is None for s in slots)
    handle = answer.table if answer.table is not None and answer.table.version == expected + 1 else None
    slot = read_slot(staged.ref, expected + 1, handle)
    return slot is not None and slot.uuid == staged.uuid


def read_slot(ref: TableRef, version: int, handle: Table | None = None) -> Slot | None:
    """What version `version` holds; None when there is no such version. `handle`: the table opened there already."""
    if handle is None and not has_version(ref, version):
        return None
    try:
        table = handle or open_table(ref, version)
        transaction: Any = table.dataset.read_transaction(version)
    except TypeError:
        # pylance cannot hand out a rewrite that remapped an index; nothing else fails this way.
        return Slot(version, True, operation="Rewrite")
    except Exception as error:
        if not is_torn(ref, version):
            known = translate(error, f"read version {version} of {ref.location}")
            raise known or Unavailable(f"could not read version {version} of {ref.location}: {error}") from error
        _log.warning("version %d of %s is torn: %s", version, ref.location, error)
        return Slot(version, False)
    if transaction is None:
        return Slot(version, True)
    properties = transaction.transaction_properties or {}
    return Slot(
        version,
        True,
        transaction.uuid,
        properties.get(OPERATION_ID),
        properties.get(STEP),
        _operation_name(transaction.operation),
    )


def set_aside(table: Table, transaction: Any) -> Table:
    """The table as the transaction would leave it: a version without a place among the numbered ones.

    No table moves. `take_away` what was made when it has been looked at.
    """
    with translated(f"prepare {table.ref.location}"):
        # Such a version gets a random number, and another one if that is taken.
        return Table(table.ref, _commit(table.dataset, transaction, max_retries=_RANDOM_TRIES, detached=True))


def take_away(aside: Table) -> None:
    """Remove a version that was set aside; one that stays does no harm."""
    assert aside.version >= _FIRST_DETACHED
    try:
        aside.ref.root.objects.delete(f"{aside.ref.path}/{VERSIONS}/{ASIDE}{aside.version}.manifest")
    except OmniError as error:
        _log.warning("version d%d of %s stays: %s", aside.version, aside.ref.location, error)


def _operation_name(operation: Any) -> str:
    name = type(operation).__name__
    return "ReserveFragments" if name == "BaseOperation" else name


def restore(ref: TableRef, pin: int, stamp: Stamp) -> int:
    """A new version with the content of `pin`; returns its number."""
    with translated(f"restore {stamp.table_key} to version {pin}"):
        head = open_table(ref, None)
        operation = lance.LanceOperation.Restore(pin)
        transaction = lance.Transaction(head.version, operation, transaction_properties=stamp.properties())
        done = Table(ref, _commit(head.dataset, transaction, max_retries=20, detached=False))
        sync_version(done, f"{transaction.read_version}-{transaction.uuid}.txn")
        return done.version
