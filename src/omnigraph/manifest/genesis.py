"""Makes a graph: a directory is one from the moment its `__manifest` exists.

Holds at every return:
  1. Either the whole graph is there, or no `__manifest` is.
  2. Of several that initialise one place at once, at most one succeeds.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable

import orjson

from omnigraph.base.clock import iso_us, now_us
from omnigraph.base.errors import BadRequest, Conflict, Unavailable
from omnigraph.base.failpoints import reach
from omnigraph.base.ids import new_ulid
from omnigraph.catalog.contract import AcceptedSchema, hash_bytes
from omnigraph.manifest import layout
from omnigraph.manifest.lineage import SCHEMA_HASH_KEY, SCHEMA_SOURCE_HASH_KEY
from omnigraph.manifest.rows import SCHEMA, Changes, CommitIntent, Pin, Registration, Row, build_rows, to_arrow
from omnigraph.manifest.store import ManifestStore
from omnigraph.storage.ledger import create_now
from omnigraph.storage.objects import ObjectStore, own_etag
from omnigraph.storage.tables import TableRef


def init_graph(manifest: ManifestStore, schema: AcceptedSchema, force: bool, actor: str | None = None) -> None:
    """Create an empty graph of this schema; with `force` also over the leftovers of an interrupted init."""
    objects, root = manifest.objects, manifest.root.uri
    if manifest.root.is_local and os.path.exists(root) and not os.path.isdir(root):
        raise BadRequest(f"'{root}' is a file, not a directory", "Choose another place for the graph.")
    if manifest.exists():
        raise Conflict(f"'{root}' is already initialized", "Open it, or choose another place.")
    _claim(objects, root, force)
    try:
        # Each claims first and then looks for the other's claim, so of two at once one sees it.
        if objects.exists(layout.CLONE_CLAIM):
            raise Conflict(f"'{root}' is an unfinished clone", "Finish it with omnigraph clone, or remove it.")
        if manifest.exists():
            raise Conflict(f"'{root}' is already initialized", "Open it, or choose another place.")
        leftovers = [n for n in layout.INIT_LEFTOVERS if objects.exists(n) or objects.list(n, limit=1)]
        if leftovers and not force:
            raise Conflict(
                f"'{root}' holds leftovers of an interrupted init: {', '.join(leftovers)}", "Use init --force."
            )
        _remove(objects, leftovers)
        may_land_later = False
        try:
            rows = _build(manifest, schema, actor)
            # A store may carry out a request whose answer did not come in time: what it refers to must stay then.
            may_land_later = not manifest.root.is_local
            create_now(manifest.ref(), SCHEMA, to_arrow(rows))
            reach("init.manifest_created")
        except BaseException:
            if not may_land_later and not manifest.exists():
                _best_effort(lambda: _remove(objects, layout.INIT_LEFTOVERS))
            raise
    finally:
        # Where it cannot be removed the next read-write open does it.
        _best_effort(lambda: objects.delete(layout.INIT_CLAIM))


def _build(manifest: ManifestStore, schema: AcceptedSchema, actor: str | None) -> list[Row]:
    """Everything but the manifest; returns the rows that make it a graph."""
    objects, root = manifest.objects, manifest.root
    objects.put(layout.SCHEMA_SOURCE, schema.source.encode())
    objects.put(layout.SCHEMA_IR, schema.ir_json)
    objects.put(layout.SCHEMA_STATE, schema.state_json)
    reach("init.schema_written")
    registrations, pins = [], []
    for table in schema.catalog.tables():
        location = layout.table_location(table.kind, table.name)
        created = create_now(TableRef(root, location), table.arrow_schema)
        registrations.append(Registration(table.table_key, location))
        pins.append(Pin(table.table_key, location, None, created.version, 0))
    reach("init.tables_created")
    ours = {SCHEMA_HASH_KEY: schema.ir_hash, SCHEMA_SOURCE_HASH_KEY: hash_bytes(schema.source_bytes)}
    intent = CommitIntent(new_ulid(), new_ulid(), "init", actor, metadata={"omnigraph": ours})
    rows = build_rows(Changes(tuple(pins), tuple(registrations)), intent, None, now_us())
    reach("init.pre_manifest")
    return rows


def _claim(objects: ObjectStore, root: str, force: bool) -> None:
    claim = {"host": socket.gethostname(), "boot": _boot(), "pid": os.getpid(), "claimed_at": iso_us(now_us())}
    data = orjson.dumps({**claim, "nonce": new_ulid()})
    if objects.put_if_absent(layout.INIT_CLAIM, data) is not None:
        return
    held = objects.get(layout.INIT_CLAIM)
    # Take over exactly the claim that was looked at: somebody else may be doing the same.
    if held is None:
        taken = objects.put_if_absent(layout.INIT_CLAIM, data)
    else:
        may_take = force and not _is_running(held.data)
        taken = objects.put_if_match(layout.INIT_CLAIM, data, held.etag) if may_take else None
    if taken is not None or own_etag(objects, layout.INIT_CLAIM, data) is not None:
        return
    raise Conflict(
        f"another init of '{root}' is running or was interrupted",
        "If none is running, use init --force: it removes the leftovers and starts again.",
    )


def _is_running(claim: bytes) -> bool:
    """Whether the process that made a claim lives on this host."""
    try:
        held = orjson.loads(claim)
        # After a power cut the number may be that of another process.
        same_host = held["host"] == socket.gethostname() and held.get("boot") in (None, _boot())
        pid = int(held["pid"])
    except (ValueError, KeyError, TypeError):
        return False
    if not same_host or pid == os.getpid():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _boot() -> str | None:
    """What names this run of the machine; None where it does not tell."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return None


def _remove(objects: ObjectStore, names: list[str] | tuple[str, ...]) -> None:
    for name in names:
        objects.remove_tree(name)


def _best_effort(step: Callable[[], object]) -> None:
    try:
        step()
    except Unavailable:
        return
