"""The moment a clone shows: one manifest version of every branch, all of them current at the same time.

Holds:
  1. While it is taken nobody commits, and no branch or tag comes or goes; that lasts as long as reading the heads does.
  2. What it shows is pinned before the locks are given back, so no cleanup takes any of it while the clone lives.
  3. Of a graph that lies elsewhere than its branches recorded, branches are taken at their newest whole version.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import pyarrow as pa

from omnigraph.base.errors import Conflict, GraphMoved, NotFound, Unavailable
from omnigraph.base.ids import new_ulid
from omnigraph.catalog.contract import AcceptedSchema
from omnigraph.commit.context import CommitContext
from omnigraph.commit.schema_lock import refuse_while_applying
from omnigraph.commit.staging import StagingBeat, StagingPin, staging_heartbeat
from omnigraph.engine.schema import SchemaKeeper
from omnigraph.manifest import layout
from omnigraph.manifest.migrations import migrate_internal_schema, refuse_without_row_ids
from omnigraph.manifest.rows import INTERNAL_MANIFEST_SCHEMA_VERSION, TABLE_VERSION
from omnigraph.manifest.store import BranchState, branch_label, branch_name
from omnigraph.manifest.tags import Tag, list_tags
from omnigraph.storage.refs import BranchRef
from omnigraph.storage.relocated import newest_whole
from omnigraph.storage.tables import open_newest, table_exists

ACTOR = "omnigraph:clone"
_LOOKS_MAX = 100
_log = logging.getLogger("omnigraph.clone")


@dataclass(frozen=True)
class Line:
    """One branch but main, at the version of its manifest that is copied."""

    name: str
    reference: BranchRef
    version: int

    @property
    def parent(self) -> str | None:
        return branch_name(self.reference.parent_branch)


@dataclass(frozen=True)
class Cut:
    main: BranchState
    lines: tuple[Line, ...]
    """Parents before children."""
    schema: AcceptedSchema
    tags: tuple[Tag, ...]
    audit: pa.Table | None


@contextmanager
def sign_of_life(ctx: CommitContext) -> Iterator[StagingBeat | None]:
    """What keeps cleanup away while the clone reads; None where the source cannot be written."""
    with ExitStack() as held:
        try:
            beat = held.enter_context(staging_heartbeat(ctx, new_ulid(), None, ACTOR))
        except Unavailable as error:
            if error.what != "permissions":
                raise
            _log.warning("the source is read-only; a cleanup elsewhere may end the clone: %s", error)
            yield None
            return
        yield beat


def take_cut(ctx: CommitContext, wanted: Sequence[str] | None, beat: StagingBeat | None) -> Cut:
    """The graph now. `wanted`: the branches to take beside main and what they were made from; None takes all."""
    _heads(ctx, wanted)  # read before the locks are taken, so that under them only what is new has to be
    with ExitStack() as locks:
        if beat is not None:
            locks.enter_context(ctx.locks.hold(layout.BRANCH_CONTROL_LOCK))
            refuse_while_applying(ctx)  # it holds main as long as it lasts, and none can begin now
            names = ["main", *ctx.manifest.branches()]
            for label in sorted(name for name in names if name != layout.SCHEMA_LOCK_BRANCH):
                locks.enter_context(ctx.locks.hold(branch_name(label)))
            _migrate(ctx, wanted)
        heads = _heads(ctx, wanted) if beat is not None else _heads_of_one_moment(ctx, wanted)
        states = [state for state in heads.states.values() if state is not None]
        if beat is not None:
            beat.pin(_pins(ctx, states))
        main = heads.states[None]
        assert main is not None
        audit = ctx.ref(layout.RECOVERIES, None)
        return Cut(
            main,
            heads.lines,
            SchemaKeeper(ctx.manifest).accepted(main),
            tuple(list_tags(ctx.objects)),
            open_newest(audit).read() if table_exists(audit) else None,
        )


def _migrate(ctx: CommitContext, wanted: Sequence[str] | None) -> None:
    """Old branches get today's shape as their next write would give it to them; their locks are held."""
    for name, state in _heads(ctx, wanted).states.items():
        if state is not None and state.stamp < INTERNAL_MANIFEST_SCHEMA_VERSION:
            migrate_internal_schema(ctx.manifest, name)


def refuse_old_shape(state: BranchState) -> None:
    """Commits of an old branch lie beside its manifest, where they cannot be found without it."""
    if state.stamp < INTERNAL_MANIFEST_SCHEMA_VERSION:
        raise Conflict(
            f"branch '{branch_label(state.branch)}' has the internal schema version {state.stamp}",
            "Open the graph read-write where it was made and write to the branch once, then clone.",
        )


@dataclass
class _Heads:
    lines: tuple[Line, ...]
    states: Mapping[str | None, BranchState | None]
    """None for a branch whose base lies elsewhere."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Heads) or self.lines != other.lines:
            return False
        mine, theirs = self.states[None], other.states[None]
        return mine is not None and theirs is not None and mine.version == theirs.version


def _heads_of_one_moment(ctx: CommitContext, wanted: Sequence[str] | None) -> _Heads:
    """The heads, read until nothing moved meanwhile: for a source that cannot be locked."""
    heads = _heads(ctx, wanted)
    for _ in range(_LOOKS_MAX):
        again = _heads(ctx, wanted)
        if again == heads:
            return heads
        heads = again
    raise Conflict(f"'{ctx.root.uri}' changes too fast to be read without locks", "Clone with a right to write to it.")


def _heads(ctx: CommitContext, wanted: Sequence[str] | None) -> _Heads:
    """The heads of the branches there are; one that is deleted between its listing and its reading is none of them."""
    for _ in range(_LOOKS_MAX):
        found = _listed_heads(ctx, wanted)
        if found is not None:
            return found
    raise Conflict(f"the branches of '{ctx.root.uri}' come and go too fast to be read", "Clone again in a while.")


def _listed_heads(ctx: CommitContext, wanted: Sequence[str] | None) -> _Heads | None:
    """None where a branch went meanwhile."""
    refuse_while_applying(ctx)
    refs = ctx.manifest.branches()
    main = ctx.manifest.state()
    refuse_without_row_ids(main)
    states: dict[str | None, BranchState | None] = {None: main}
    lines = []
    for name in chosen_branches(refs, wanted):
        try:
            states[name] = state = ctx.manifest.state(name)
            version = state.version
        except GraphMoved:
            states[name], version = None, newest_whole(ctx.manifest.ref(name))
        except NotFound:
            return None
        lines.append(Line(name, refs[name], version))
    return _Heads(tuple(lines), states)


def chosen_branches(refs: Mapping[str, BranchRef], wanted: Sequence[str] | None) -> list[str]:
    """The branches to take, those they were made from included; parents before children."""
    internal = (layout.SCHEMA_LOCK_BRANCH, layout.LEGACY_RUN_PREFIX)
    names = [n for n in sorted(refs) if not n.startswith(internal)] if wanted is None else _given(refs, wanted)
    ordered: list[str] = []

    def add(name: str) -> None:
        parent = branch_name(refs[name].parent_branch)
        if parent is not None and parent in refs and parent not in ordered:
            add(parent)
        if name not in ordered:
            ordered.append(name)

    for name in names:
        add(name)
    return ordered


def _given(refs: Mapping[str, BranchRef], wanted: Sequence[str]) -> list[str]:
    names = [name for label in wanted if (name := branch_name(label)) is not None]
    for name in names:
        if name not in refs:
            raise NotFound(f"branch '{name}' not found", "See omnigraph branch list.")
    return names


def _pins(ctx: CommitContext, states: Iterable[BranchState]) -> list[StagingPin]:
    """Every version that any commit of these branches shows, whether it is still there or not."""
    return sorted(
        {
            StagingPin(key, location, fork, version)
            for state in states
            for key, location, fork, version in published(ctx, state)
        },
        key=lambda pin: (pin.table_key, pin.location, branch_label(pin.table_branch), pin.version),
    )


def published(ctx: CommitContext, state: BranchState) -> Iterator[tuple[str, str, str | None, int]]:
    """Every table version that the manifest of a branch names: table key, location, fork, version."""
    for row in ctx.manifest.rows(state):
        if row.object_type != TABLE_VERSION or row.table_key is None or row.table_version is None:
            continue
        # Rows of old graphs name no location; their tables never had but one.
        location = row.location or state.tables.locations[row.table_key][0]
        yield row.table_key, location, row.table_branch, row.table_version
