"""From a validated change set to a write plan: every table's change staged, nothing moved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from omnigraph.base.failpoints import reach
from omnigraph.base.ids import new_ulid
from omnigraph.commit.plan import Effect, WritePlan, Writer, check_annotations, effect_of
from omnigraph.engine.view import View
from omnigraph.engine.write.bench import Bench
from omnigraph.engine.write.changes import Annotations
from omnigraph.engine.write.changeset import ChangeSet
from omnigraph.storage.stage import StagedWrite, Stamp


def plan_changeset(
    view: View,
    changes: ChangeSet,
    read: Iterable[str],
    writer: Writer,
    notes: Annotations,
    bench: Bench,
    operation_id: str | None = None,
    staged_before: Mapping[str, StagedWrite] | None = None,
) -> WritePlan:
    """Stage every change against the view; the plan relies on the tables written and on those in `read`.

    `staged_before`: what an earlier attempt staged of the same changes, none of whose rows others touched since.
    """
    metadata = dict(notes.metadata or {})
    check_annotations(notes.actor, notes.message, metadata)
    operation = operation_id or new_ulid()
    effects: list[Effect] = []
    written = [change for change in changes.ordered() if not change.is_empty]
    bench.scratch.release()
    for change in written:
        table = view.table_to_write(change.table_key)
        schema = view.catalog.arrow_schema(change.table_key)
        stamp, before = Stamp(operation, change.table_key, "0"), (staged_before or {}).get(change.table_key)
        again = bench.restage(table, schema, change, stamp, before) if before is not None else None
        staged = again or bench.stage(table, schema, change, stamp)
        if staged.inserts or staged.updates or staged.deletes:
            effects.append(effect_of(staged))
        reach("stage.files_written")
    # The commit of many replaced rows takes memory in proportion to them.
    bench.scratch.spill_all()
    keys = {change.table_key for change in written} | set(read)
    return WritePlan(
        operation_id=operation,
        graph_commit_id=new_ulid(),
        writer=writer,
        branch=view.branch,
        branch_incarnation=view.incarnation,
        effects=tuple(effects),
        relied_on={key: view.entry(key) for key in sorted(keys)},
        actor_id=notes.actor,
        message=notes.message,
        metadata=metadata,
        if_commit=view.head_meant(notes.if_commit),
        known_tables=view.catalog.table_keys,
    )
