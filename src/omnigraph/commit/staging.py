"""The sign of life of a bulk load: `__staging/{operation}.json`, which cleanup honours.

Holds:
  1. It is there before the first file is staged, and its `started_at` is no later than the store's time of any of them.
  2. It is renewed until the load ends, however it ends, and then removed together with the load's own folder.
  3. It gives no right to commit and no writer waits for it. A renewal that fails is logged and fails nothing.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import orjson

from omnigraph.base.clock import iso_us, now_us
from omnigraph.base.errors import Conflict, OmniError
from omnigraph.base.ids import is_ulid, ulid_time_us
from omnigraph.commit.context import CommitContext
from omnigraph.commit.plan import WritePlan
from omnigraph.manifest import layout
from omnigraph.manifest.snapshot import SubTableEntry
from omnigraph.storage.durable import staged_files, staged_folders
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.stage import StagedWrite
from omnigraph.storage.tables import Table

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_log = logging.getLogger("omnigraph.staging")


@dataclass(frozen=True, order=True)
class StagingPin:
    """A table version that a load reads or stages on."""

    table_key: str
    location: str
    table_branch: str | None
    version: int


class PinnedTables(Protocol):
    """A view, as far as a heartbeat looks at it."""

    @property
    def entries(self) -> Mapping[str, SubTableEntry]: ...
    @property
    def forks(self) -> Mapping[str, Table]: ...


@dataclass(frozen=True)
class Heartbeat:
    """What a heartbeat object says. `readable` is false for one that cannot be understood."""

    operation_id: str
    branch: str | None
    actor: str | None
    host: str
    pid: int
    started_us: int
    renewed_us: int
    lifetime_s: int
    pins: tuple[StagingPin, ...] = ()
    readable: bool = True

    @property
    def key(self) -> str:
        return layout.heartbeat_key(self.operation_id)

    @property
    def folder(self) -> str:
        return layout.staging_folder(self.operation_id)

    def is_alive(self, at_us: int) -> bool:
        return not self.readable or at_us - self.renewed_us < self.lifetime_s * 1_000_000

    def to_json(self) -> dict[str, Any]:
        return {
            "operation_id": self.operation_id,
            "branch": self.branch,
            "actor": self.actor,
            "host": self.host,
            "pid": self.pid,
            "started_at": iso_us(self.started_us),
            "renewed_at": iso_us(self.renewed_us),
            "lifetime_s": self.lifetime_s,
            "pins": [vars(pin) for pin in self.pins],
        }


class StagingBeat:
    """A load's heartbeat in its own hands."""

    def __init__(self, objects: ObjectStore, heartbeat: Heartbeat, period_s: float) -> None:
        self._objects, self._period_s = objects, period_s
        self._told = heartbeat
        self._guard = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._renew_forever, name="omnigraph-heartbeat", daemon=True)

    @property
    def operation_id(self) -> str:
        return self._told.operation_id

    @property
    def folder(self) -> str:
        """The place below the root for the load's own files; it goes when the load ends."""
        return f"{self._told.folder}/"

    def pin(self, tables: PinnedTables | Iterable[StagingPin]) -> None:
        """Note what the load reads and stages on, in place of what was noted before."""
        pins = _pins_of(tables)
        with self._guard:
            self._told = replace(self._told, pins=pins)
        self.renew()

    def renew(self) -> None:
        with self._guard:
            if self._ended.is_set():
                return
            self._told = replace(self._told, renewed_us=now_us())
            try:
                self._put()
            except OmniError as error:
                _log.warning("the heartbeat of load %s was not renewed: %s", self.operation_id, error)

    def start(self) -> None:
        """Raises when the first sign of life cannot be written: nothing may be staged without it."""
        self._put()
        # The times of staged files are the store's, and its clock may be behind ours.
        written = [f.modified_us for f in self._objects.walk(layout.STAGING_DIR) if f.key == self._told.key]
        if written and written[0] < self._told.started_us:
            self._told = replace(self._told, started_us=written[0])
            self._put()
        self._thread.start()

    def end(self) -> None:
        self._ended.set()
        with self._guard:
            # The folder first: while the heartbeat is there, whoever finds the folder knows whose it is.
            for remove, key in ((self._objects.remove_tree, self._told.folder), (self._objects.delete, self._told.key)):
                try:
                    remove(key)
                except OmniError as error:
                    _log.warning("%s stays until cleanup: %s", key, error)
        if self._thread.is_alive():
            self._thread.join()

    def _renew_forever(self) -> None:
        while not self._ended.wait(self._period_s):
            try:
                self.renew()
            except Exception as error:
                _log.warning("the heartbeat of load %s was not renewed: %r", self.operation_id, error)

    def _put(self) -> None:
        self._objects.put(self._told.key, orjson.dumps(self._told.to_json()))


@contextmanager
def staging_heartbeat(
    ctx: CommitContext, operation_id: str, branch: str | None, actor: str | None
) -> Iterator[StagingBeat]:
    """Hold the sign of life of one load from before its first staged file until its commit is decided."""
    at_us, settings = now_us(), ctx.settings
    told = Heartbeat(
        operation_id, branch, actor, socket.gethostname(), os.getpid(), at_us, at_us, settings.staging_lifetime_s
    )
    period_s = min(settings.staging_heartbeat_s, settings.staging_lifetime_s / 3)
    beat = StagingBeat(ctx.objects, told, period_s)
    try:
        beat.start()
        yield beat
    finally:
        beat.end()


def list_heartbeats(ctx: CommitContext) -> list[Heartbeat]:
    """Every heartbeat, dead ones included, the oldest operation first."""
    found = []
    for key in ctx.objects.list(layout.STAGING_DIR):
        stored = ctx.objects.get(key) if key.endswith(".json") else None
        if stored is not None:
            operation_id = key.rsplit("/", 1)[1].removesuffix(".json")
            found.append(_read(operation_id, stored.data, ctx.settings.staging_lifetime_s))
    if all(heartbeat.readable for heartbeat in found):
        return found
    written = {file.key: file.modified_us for file in ctx.objects.walk(layout.STAGING_DIR)}
    return [h if h.readable else replace(h, renewed_us=written.get(h.key, now_us())) for h in found]


def refuse_outlived(ctx: CommitContext, plan: WritePlan) -> None:
    """Refuse a write that was prepared so long ago that cleanup may have taken its files. The caller holds the lock.

    Lance would commit it all the same, and its table could not be read any more.
    """
    made_us = ulid_time_us(plan.operation_id) if is_ulid(plan.operation_id) else 0
    if now_us() - made_us < ctx.settings.staging_grace / _MICROSECOND / 2:
        return
    for staged in (step for effect in plan.effects for step in effect.steps if isinstance(step, StagedWrite)):
        path = staged.ref.path
        lost = [f for f in staged_files(staged) if not ctx.objects.exists(f"{path}/{f}")]
        lost += [f for f in staged_folders(staged) if not ctx.objects.list(f"{path}/{f}", limit=1)]
        if lost:
            raise Conflict(
                f"{staged.stamp.table_key}: {lost[0]}, which this write prepared long ago, was removed by cleanup",
                "Nothing was written. Prepare the write again.",
            )


def _pins_of(tables: PinnedTables | Iterable[StagingPin]) -> tuple[StagingPin, ...]:
    if isinstance(tables, Iterable):
        return tuple(sorted(set(tables), key=_pin_order))
    read = {StagingPin(k, e.location, e.table_branch, e.table_version) for k, e in tables.entries.items()}
    staged_on = {StagingPin(k, t.ref.location, t.ref.branch, t.version) for k, t in tables.forks.items()}
    return tuple(sorted(read | staged_on, key=_pin_order))


def _pin_order(pin: StagingPin) -> tuple[str, str, str, int]:
    return (pin.table_key, pin.location, pin.table_branch or "", pin.version)


def _read(operation_id: str, data: bytes, lifetime_s: int) -> Heartbeat:
    """One that cannot be understood is taken for alive and for older than every file: it keeps all it might mean."""
    try:
        told = orjson.loads(data)
        pins = tuple(
            StagingPin(str(p["table_key"]), str(p["location"]), p["table_branch"], int(p["version"]))
            for p in told["pins"]
        )
        return Heartbeat(
            operation_id,
            told["branch"],
            told.get("actor"),
            str(told["host"]),
            int(told["pid"]),
            _us(told["started_at"]),
            _us(told["renewed_at"]),
            int(told.get("lifetime_s", lifetime_s)),
            pins,
        )
    except (ValueError, TypeError, KeyError):
        return Heartbeat(operation_id, None, None, "unknown", 0, 0, now_us(), lifetime_s, readable=False)


def _us(text: str) -> int:
    return (datetime.fromisoformat(text) - _EPOCH) // _MICROSECOND
