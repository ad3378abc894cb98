"""The three schema files, and the record of them that each schema commit has.

A record is the same three files under names of its commit's own. It is there before the commit, is never rewritten, and
goes when a later commit has set a schema. The three files are put in their place after the commit.

Holds at every moment:
  1. The schema in force is that of the newest commit that set one, and can be read whatever became of the three files
     by then: a lock may be lost asleep, so what was begun under it may land at any later time.
  2. Nobody overwrites a file of a record, or removes one of another's, unless that record can never count again.
  3. The three files are replaced only as they were when this commit was the newest that set a schema.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from omnigraph.base.errors import Conflict
from omnigraph.base.failpoints import reach
from omnigraph.catalog.contract import AcceptedSchema, check, check_recorded, hash_bytes, read_state
from omnigraph.commit.context import CommitContext
from omnigraph.commit.locks import HeldLock
from omnigraph.manifest import layout
from omnigraph.manifest.lineage import GraphCommit
from omnigraph.manifest.store import BranchState
from omnigraph.storage.objects import ObjectStore, Stored, own_etag

_ORDER = (layout.SCHEMA_SOURCE, layout.SCHEMA_IR, layout.SCHEMA_STATE)
_ROUNDS_MAX = 8


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
    """Write the record of a commit to come; readers do not mind it before the manifest holds that commit."""
    assert schema.graph_commit_id is not None
    for key, data in zip(_ORDER, (schema.source_bytes, schema.ir_json, schema.state_json), strict=True):
        lock.check()
        name = layout.schema_record_key(schema.graph_commit_id, key)
        if objects.put_if_absent(name, data) is None and own_etag(objects, name, data) is None:
            raise Conflict(f"{name} is there already", "Nothing was written. A commit id was used twice; retry.")
        reach("schema_apply.mid_schema_staging")


def promote_schema(ctx: CommitContext, graph_commit_id: str, lock: HeldLock) -> None:
    """Put the files of a published commit in their place, unless a later commit has set a schema since."""
    for _ in range(_ROUNDS_MAX):
        # Looked at before the manifest: what a later apply put there, it put after its own commit.
        there = [ctx.objects.get(key) for key in _ORDER]
        main = ctx.manifest.state(None)
        commit = main.schema_commit
        if commit is None or commit.graph_commit_id != graph_commit_id:
            return
        record = read_record(ctx.objects, commit)
        if record is None:
            _refuse_unless_placed(there, commit)
        elif not _replaced(ctx.objects, there, record, lock):
            continue
        _remove_superseded(ctx.objects, main, lock)
        return
    raise Conflict("the schema files changed during every attempt to put them in place", "Refresh, then retry.")


def adopt_schema(objects: ObjectStore, schema: AcceptedSchema, lock: HeldLock) -> None:
    """Put these files in place of three that tell nothing."""
    _replaced(objects, [objects.get(key) for key in _ORDER], schema, lock)


def _replaced(objects: ObjectStore, there: list[Stored | None], record: AcceptedSchema, lock: HeldLock) -> bool:
    """Whether the three files are those of the record now; not if somebody else replaced one meanwhile."""
    for key, old, data in zip(_ORDER, there, _contents(record), strict=True):
        if old is None or old.data != data:
            lock.check()
            landed = objects.put_if_match(key, data, old.etag) if old is not None else objects.put_if_absent(key, data)
            if landed is None and own_etag(objects, key, data) is None:
                return False
            reach("schema_apply.mid_schema_renames")
    return True


def _refuse_unless_placed(there: list[Stored | None], commit: GraphCommit) -> None:
    """A graph that was cloned, or whose record was lost, has the three files alone."""
    files = SchemaFiles(*(found.data if found is not None else None for found in there))
    check_recorded(files.accepted().ir_hash, commit.schema_hashes[0], commit.graph_commit_id)


def _remove_superseded(objects: ObjectStore, main: BranchState, lock: HeldLock) -> None:
    for name in superseded(recorded_commits(objects), main):
        lock.check()
        for key in reversed(_ORDER):
            objects.delete(layout.schema_record_key(name, key))
            reach("schema_apply.mid_schema_renames")


def superseded(recorded: list[str], main: BranchState) -> Iterator[str]:
    """The records of commits after which another one has set a schema: they never count again."""
    newest = main.schema_commit
    return (name for name in recorded if newest and name != newest.graph_commit_id and main.holds(name))


def discard_schema(objects: ObjectStore, graph_commit_id: str) -> None:
    """Remove the record of a commit that was not made and never will be; the state first, for it makes it whole."""
    for key in reversed(_ORDER):
        objects.delete(layout.schema_record_key(graph_commit_id, key))
        reach("recovery.mid_schema_discard")


def recorded_commits(objects: ObjectStore) -> list[str]:
    """The commits that have a record, or a part of one."""
    names = (key.rsplit("/", 1)[1].partition(".")[0] for key in objects.list(layout.SCHEMA_DIR))
    return list(dict.fromkeys(names))


def needs_settling(objects: ObjectStore, main: BranchState) -> bool:
    """Whether a record waits for its files to be put in place, or for its removal."""
    recorded = recorded_commits(objects)
    if not recorded:
        return False
    newest = main.schema_commit
    if newest is None or recorded != [newest.graph_commit_id]:
        return True
    final = final_files(objects)
    if final.state is not None and _lags(final.state, newest, main):
        return True
    found = {hash_bytes(data) for data in (final.source, final.ir) if data is not None}
    strange = found.difference(newest.schema_hashes)
    return bool(strange) and not strange.isdisjoint(_earlier_hashes(main))


def staged_schema(objects: ObjectStore, graph_commit_id: str) -> AcceptedSchema | None:
    """The schema of a record, all three files; None unless they are there and agree."""
    names = [layout.schema_record_key(graph_commit_id, key) for key in reversed(_ORDER)]
    found: list[bytes | None] = []
    for name in names:
        found.append(_data(objects, name))
        if found[-1] is None:
            return None
    try:
        accepted = SchemaFiles(*reversed(found)).accepted()
    except Conflict:
        return None
    return accepted if accepted.graph_commit_id == graph_commit_id else None


def read_record(objects: ObjectStore, commit: GraphCommit) -> AcceptedSchema | None:
    """The record of a commit; None if there is none, or it is not what the commit says."""
    found = staged_schema(objects, commit.graph_commit_id)
    return found if found is not None and commit.schema_hashes[0] in (None, found.ir_hash) else None


def final_files(objects: ObjectStore) -> SchemaFiles:
    return SchemaFiles(*(_data(objects, key) for key in _ORDER))


def files_in_force(objects: ObjectStore, main: BranchState) -> SchemaFiles:
    """The files that count at this state of main.

    Files of an earlier commit wait for their replacement, or a writer that slept put them back. Any other file that
    differs from the record was edited by hand, and counts: whether that changes the meaning, the contract decides.
    """
    commit = main.schema_commit
    record = read_record(objects, commit) if commit is not None else None
    final = final_files(objects)
    if commit is None or record is None:
        return final
    kept = SchemaFiles(*_contents(record))
    if final == kept or (final.state is not None and _lags(final.state, commit, main)):
        return kept
    earlier = _earlier_hashes(main)
    return SchemaFiles(_or_kept(final.source, kept.source, earlier), _or_kept(final.ir, kept.ir, earlier), final.state)


def _or_kept(final: bytes | None, kept: bytes | None, earlier: set[str]) -> bytes | None:
    return kept if final is not None and hash_bytes(final) in earlier else final


def _earlier_hashes(main: BranchState) -> set[str]:
    """Of every file of an earlier schema commit that is not also one of the newest."""
    newest, *earlier = (commit.schema_hashes for commit in main.schema_commits())
    return {told for hashes in earlier for told in hashes if told is not None}.difference(newest)


def _lags(state: bytes, newest: GraphCommit, main: BranchState) -> bool:
    """Whether a state file is that of an earlier schema commit; the one that `init` wrote names none."""
    try:
        named = read_state(state).graph_commit_id
    except Conflict:
        return False
    return named != newest.graph_commit_id and (named is None or main.holds(named))


def _contents(schema: AcceptedSchema) -> tuple[bytes, bytes, bytes]:
    return schema.source_bytes, schema.ir_json, schema.state_json


def _data(objects: ObjectStore, key: str) -> bytes | None:
    found = objects.get(key)
    return found.data if found is not None else None
