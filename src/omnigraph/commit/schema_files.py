"""The three schema files while a schema apply goes on: staged beside the old ones, then put in their place.

Holds at every moment:
  1. A staged schema is in force from the moment the manifest holds the commit that its state file names.
  2. While it is in force, each file that is not staged any more is there under its own name: the schema can be read.
  3. Only who holds the lock of main stages, promotes or discards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from omnigraph.base.errors import Conflict
from omnigraph.base.failpoints import reach
from omnigraph.catalog.contract import AcceptedSchema, check, read_state
from omnigraph.commit.locks import HeldLock
from omnigraph.manifest import layout
from omnigraph.storage.objects import ObjectStore, own_etag

_ORDER = (layout.SCHEMA_SOURCE, layout.SCHEMA_IR, layout.SCHEMA_STATE)


@dataclass(frozen=True)
class SchemaFiles:
    """What the three files say; None for one that is not there."""

    source: bytes | None
    ir: bytes | None
    state: bytes | None

    def accepted(self) -> AcceptedSchema:
        """The contract they make, or the Conflict that says why they make none."""
        return check(self.source, self.ir, self.state)


def stage_schema(objects: ObjectStore, schema: AcceptedSchema, lock: HeldLock) -> None:
    """Write the staged files; readers do not mind them before the commit they name is published."""
    for key, data in zip(_ORDER, (schema.source_bytes, schema.ir_json, schema.state_json), strict=True):
        lock.check()
        staged = layout.staged_schema_key(key)
        if objects.put_if_absent(staged, data) is None and own_etag(objects, staged, data) is None:
            raise Conflict(f"{staged} is there already", "Open the graph read-write to settle it, then retry.")
        reach("schema_apply.mid_schema_staging")


def promote_schema(objects: ObjectStore, graph_commit_id: str, lock: HeldLock) -> None:
    """Put the files staged for this published commit in the place of the old ones; none that is another's."""
    if staged_commit(objects) != graph_commit_id:
        return
    for key in _ORDER:
        staged = objects.get(layout.staged_schema_key(key))
        if staged is None:
            continue
        lock.check()
        objects.put(key, staged.data)
        reach("schema_apply.mid_schema_renames")
        lock.check()
        objects.delete(layout.staged_schema_key(key))
        reach("schema_apply.mid_schema_renames")


def discard_schema(objects: ObjectStore) -> None:
    """Remove staged files, the state first: the others mean nothing without it."""
    for key in reversed(_ORDER):
        objects.delete(layout.staged_schema_key(key))
        reach("recovery.mid_schema_discard")


def has_staged(objects: ObjectStore) -> bool:
    return any(objects.exists(layout.staged_schema_key(key)) for key in _ORDER)


def staged_commit(objects: ObjectStore) -> str | None:
    """The commit that the staged state names; None without one that can be read."""
    found = objects.get(layout.staged_schema_key(layout.SCHEMA_STATE))
    return _commit_named(found.data) if found is not None else None


def staged_schema(objects: ObjectStore) -> AcceptedSchema | None:
    """The schema as it is staged, all three files; None unless they are there and agree."""
    found = [objects.get(layout.staged_schema_key(key)) for key in _ORDER]
    try:
        return SchemaFiles(*(f.data if f else None for f in found)).accepted()
    except Conflict:
        return None


def files_with_staged(objects: ObjectStore) -> SchemaFiles:
    """Each file by its staged name where it has one, else by its own."""
    return SchemaFiles(*(_either(objects, key) for key in _ORDER))


def final_files(objects: ObjectStore) -> SchemaFiles:
    return SchemaFiles(*(_data(objects, key) for key in _ORDER))


def files_in_force(objects: ObjectStore, holds: Callable[[str], bool]) -> SchemaFiles:
    """The files that count now. `holds`: whether the manifest has a commit."""
    commit = staged_commit(objects)
    return files_with_staged(objects) if commit is not None and holds(commit) else final_files(objects)


def _either(objects: ObjectStore, key: str) -> bytes | None:
    """A staged file goes only after the same content is there under the file's own name."""
    staged = _data(objects, layout.staged_schema_key(key))
    return staged if staged is not None else _data(objects, key)


def _data(objects: ObjectStore, key: str) -> bytes | None:
    found = objects.get(key)
    return found.data if found is not None else None


def _commit_named(state: bytes) -> str | None:
    try:
        return read_state(state).graph_commit_id
    except Conflict:
        return None
