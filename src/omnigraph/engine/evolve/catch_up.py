"""A branch gets the columns and types of the schema in force when it is first written to.

An apply that only adds commits on main and leaves other branches as they are: reads of them show what was added as
null or empty. Before a table of such a branch is written, it catches up.

Holds at every return:
  1. The content of the branch is what it was: new columns are null, new types have no rows.
  2. All tables that were asked for caught up in one commit of their own, or none did.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace

import pyarrow as pa

from omnigraph.base.errors import InternalError
from omnigraph.base.ids import new_ulid
from omnigraph.commit.context import CommitContext
from omnigraph.commit.forks import fork_anew
from omnigraph.commit.locks import HeldLock
from omnigraph.commit.plan import SCHEMA_CATCH_UP, Effect, WritePlan
from omnigraph.commit.protocol import commit_plan
from omnigraph.commit.recovery.settle import settle_branch
from omnigraph.engine.view import View
from omnigraph.manifest.lineage import GraphCommit
from omnigraph.manifest.rows import Registration
from omnigraph.manifest.snapshot import first_moved
from omnigraph.manifest.store import BranchState
from omnigraph.storage.evolve import stage_columns
from omnigraph.storage.shapes import shape_of
from omnigraph.storage.stage import Stamp, stage_overwrite
from omnigraph.storage.tables import Table, open_table

MESSAGE = "schema catch-up"
_MARK = "schema_catch_up"


def is_catch_up(commit: GraphCommit) -> bool:
    """Whether a commit only brought a branch to the schema that was in force already."""
    ours = commit.metadata.get("omnigraph")
    return isinstance(ours, dict) and _MARK in ours


def lags(view: View, table_key: str, table: Table | None) -> bool:
    """Whether a table to write, None if it is not there, has other columns than the schema says."""
    if table is None or table.shape is not None:
        return True
    return shape_of(table.schema, view.catalog.arrow_schema(table_key)) is not None


def catch_up(
    ctx: CommitContext,
    view: View,
    tables: Mapping[str, Table | None],
    actor: str | None = None,
    held: HeldLock | None = None,
) -> View:
    """The view with these tables as the schema says: the branch's own ones, which lag, or None where it has none."""
    branch = view.branch
    if branch is None:
        raise InternalError("main has the tables of its schema")
    with ctx.locks.hold(branch) if held is None else nullcontext(held) as lock:
        state = settle_branch(ctx, branch, lock)
        relied_on = {key: view.entry(key) for key in tables}
        moved = first_moved(state.entries, relied_on)
        if moved is not None:
            raise moved
        operation = new_ulid()
        effects = [_effect(ctx, view, key, table, operation) for key, table in sorted(tables.items())]
        plan = WritePlan(
            operation_id=operation,
            graph_commit_id=new_ulid(),
            writer=SCHEMA_CATCH_UP,
            branch=branch,
            branch_incarnation=view.incarnation,
            effects=tuple(effects),
            relied_on=relied_on,
            registrations=tuple(
                Registration(key, view.entry(key).location) for key, table in sorted(tables.items()) if table is None
            ),
            actor_id=actor,
            message=MESSAGE,
            metadata={"omnigraph": {_MARK: sorted(tables)}},
        )
        receipt = commit_plan(ctx, plan, lock)
        after = ctx.manifest.state(branch)
    return _following(view, state, after, effects, receipt.commit)


def _effect(ctx: CommitContext, view: View, table_key: str, table: Table | None, operation: str) -> Effect:
    declared, stamp = view.catalog.arrow_schema(table_key), Stamp(operation, table_key, "0")
    if table is None:
        return _new_type(ctx, view, table_key, declared, stamp)
    stored = open_table(table.ref, table.version, table_key)
    steps = stage_columns(stored, declared, _continued(stored.schema, declared), {}, stamp)
    return Effect(table_key, stored.ref, stored.version, steps, view.entry(table_key).row_count)


def _continued(stored: pa.Schema, declared: pa.Schema) -> dict[str, str]:
    shape = shape_of(stored, declared)
    names = declared.names if shape is None else shape.stored
    return {field.name: name for field, name in zip(declared, names, strict=True) if name is not None}


def _new_type(ctx: CommitContext, view: View, table_key: str, declared: pa.Schema, stamp: Stamp) -> Effect:
    """A fork of main's table in which no row is left: the branch has none of those that came to main."""
    assert view.branch is not None
    fork = fork_anew(ctx, view.branch, table_key, ctx.manifest.state().entries[table_key])
    staged = stage_overwrite(fork, declared.empty_table(), stamp)
    return Effect(table_key, fork.ref, fork.version, (staged,), 0)


def _following(view: View, before: BranchState, after: BranchState, effects: list[Effect], commit: GraphCommit) -> View:
    """The view on the branch as it is now; tables that were not asked for are still what was read of them."""
    moved = {effect.table_key: after.entries[effect.table_key] for effect in effects}
    opened = {e.table_key: open_table(e.ref, moved[e.table_key].table_version, e.table_key) for e in effects}
    snapshot = replace(
        view.snapshot,
        version=commit.manifest_version,
        tables={**view.entries, **moved},
        graph_commit_id=commit.graph_commit_id,
    )
    caught_up = (before.head_id or "", commit.graph_commit_id)
    return replace(view, snapshot=snapshot, forks={**view.forks, **opened}, caught_up=caught_up)
