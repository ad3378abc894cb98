"""Puts what was copied in its place: forks with their new bases, branches with new incarnations, main last."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

import orjson

from omnigraph.base.errors import InternalError
from omnigraph.base.failpoints import reach
from omnigraph.base.ids import new_ulid
from omnigraph.commit.branches import fork_commit_table
from omnigraph.commit.context import CommitContext
from omnigraph.commit.locks import HeldLock
from omnigraph.commit.plan import WritePlan, Writer, WriterKind
from omnigraph.commit.protocol import commit_plan
from omnigraph.engine.clone.carry import TableCopy
from omnigraph.engine.clone.cut import ACTOR, Cut, Line
from omnigraph.manifest import layout
from omnigraph.manifest.audit_table import append_audit
from omnigraph.manifest.store import BranchState, ManifestStore
from omnigraph.manifest.tags import tag_key
from omnigraph.storage.objects import Missing, sync_directory
from omnigraph.storage.places import Root
from omnigraph.storage.refs import INCARNATION, BranchRef, reference_key, references
from omnigraph.storage.relocated import moved_version, version_bytes

_CLONE = Writer("clone", WriterKind.OPTIMIZE, "repair")


class UnbornManifest(ManifestStore):
    """The manifest of a graph whose main is not there yet; its branches are."""

    def branches(self) -> dict[str, BranchRef]:
        return references(self.ref())


def place_forks(source: CommitContext, target: Root, copy: TableCopy) -> None:
    """The forks of a data table, at their new place."""
    for name, versions in sorted(copy.forks.items()):
        ref = source.ref(copy.location, name)
        for version in versions:
            target.objects.put(ref.version_file(version), moved_version(ref, version, target))
        target.objects.put(reference_key(ref, name), _reference(source, copy.location, name))


def place_branch(source: CommitContext, target: Root, line: Line) -> None:
    """The manifest of a branch; its incarnation is a new one, for what knew the old one means another graph."""
    ref = source.manifest.ref(line.name)
    target.objects.put(ref.version_file(line.version), moved_version(ref, line.version, target))
    told = orjson.loads(_reference(source, layout.MANIFEST, line.name))
    told["metadata"] = {**(told.get("metadata") or {}), INCARNATION: new_ulid()}
    target.objects.put(reference_key(ref, line.name), orjson.dumps(told))


def _reference(source: CommitContext, location: str, name: str) -> bytes:
    key = reference_key(source.ref(location, name), name)
    found = source.objects.get(key)
    if found is None:
        raise Missing(f"{key} is missing in '{source.root.uri}'")
    return found.data


def place_rest(target: CommitContext, cut: Cut, carried: set[str]) -> int:
    """Schema, tags and the record of recoveries; how many tags name a commit that was carried."""
    objects, schema = target.objects, cut.schema
    objects.put(layout.SCHEMA_SOURCE, schema.source_bytes)
    objects.put(layout.SCHEMA_IR, schema.ir_json)
    objects.put(layout.SCHEMA_STATE, schema.state_json)
    tags = [tag for tag in cut.tags if tag.graph_commit_id in carried]
    for tag in tags:
        objects.put(tag_key(tag.name), tag.to_bytes())
    if cut.audit is not None and cut.audit.num_rows:
        append_audit(target.root, cut.audit)
    return len(tags)


def note_branch(target: CommitContext, state: BranchState) -> None:
    """One commit on a branch that has forks: it changes nothing and says that they were made anew."""
    plan = WritePlan(
        new_ulid(),
        new_ulid(),
        _CLONE,
        state.branch,
        state.incarnation,
        actor_id=ACTOR,
        message="tables of the branch made anew by clone",
    )
    commit_plan(target, plan)


def place_projections(target: CommitContext, states: Mapping[str | None, BranchState], lines: Sequence[Line]) -> None:
    """The commit tables, from what the manifests say: each branch's begins with what its parent's had then."""

    def fill(branch: str | None) -> None:
        state = states[branch]
        children = [line for line in lines if line.parent == branch]
        for line in sorted(children, key=lambda child: child.reference.parent_version):
            inherited = sum(c.manifest_version <= line.reference.parent_version for c in state.commits())
            target.projections.catch_up(replace(state, commit_count=inherited))
            fork_commit_table(target, branch, line.name)
        target.projections.catch_up(state)
        for line in children:
            fill(line.name)

    fill(None)


def give_birth(source: CommitContext, target: Root, main: BranchState, lock: HeldLock) -> None:
    """The last step: main's manifest. From here on the place is a graph."""
    if target.syncs:
        for folder, _, _ in os.walk(target.uri):
            sync_directory(folder)
        sync_directory(os.path.dirname(target.uri))
    ref = source.manifest.ref()
    data = version_bytes(ref, main.version)
    lock.check()
    reach("clone.pre_manifest")
    if target.objects.put_if_absent(ref.version_file(main.version), data) is None:
        raise InternalError("the copy has a manifest already")
    reach("clone.manifest_placed")
