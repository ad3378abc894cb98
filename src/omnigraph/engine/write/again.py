"""A load that lost the race, looked at again: only what changed since is compared with it.

What a load adds can be spoilt by others in four ways: they took one of its ids, or one of its unique values, or they
filled up a source that has a highest number of edges, or they removed a row it relies on. Rows that were added or
replaced lie in fragments that are new; that no row was removed shows in the counts. If one was, or very many rows
changed, everything is checked again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.catalog import Cardinality, EdgeType
from omnigraph.engine.view import View
from omnigraph.engine.write.bench import Bench, EmbeddedBench
from omnigraph.engine.write.changeset import ChangeSet, TableChange
from omnigraph.engine.write.spool import RowSpool
from omnigraph.engine.write.validate.cardinality import check_cardinality
from omnigraph.engine.write.validate.ids import check_ids
from omnigraph.engine.write.validate.unique import check_unique
from omnigraph.records.violations import Findings
from omnigraph.storage.stage import StagedWrite

CHANGED_ROWS_MAX = 20_000


@dataclass
class Kept:
    """What a preparation left: the view it was checked against, the changes, and what was staged of them."""

    view: View
    changes: ChangeSet
    read: frozenset[str]
    staged: dict[str, StagedWrite] = field(default_factory=dict)


def recheck(kept: Kept, view: View, findings: Findings, bench: Bench) -> frozenset[str] | None:
    """Compare the kept changes with what changed since; None when only a whole check can tell.

    What is found goes to `findings`. The answer are the tables of which others wrote the very rows that are to be
    replaced. The changes are strict inserts or upserts, already checked among themselves.
    """
    moved = [key for key in sorted({*kept.read, *kept.changes.tables}) if view.entry(key) != kept.view.entry(key)]
    changed: dict[str, pa.Table] = {}
    for key in moved:
        found = _changed_rows(kept.view, view, key)
        if found is None:
            return None
        changed[key] = found
    touched = _narrow_check(kept.changes, changed, view, findings, bench)
    if touched is None:
        return None
    bounded = ChangeSet({k: c for k, c in kept.changes.tables.items() if k in changed and _is_bounded(view, k)})
    if bounded.tables:
        check_cardinality(bench.check(view, bounded, findings))
    return touched


def _changed_rows(before: View, now: View, table_key: str) -> pa.Table | None:
    """The rows that are new or replaced, perhaps some more; None if rows were removed, or too many changed."""
    old, new = before.entry(table_key), now.entry(table_key)
    if (old.location, old.table_branch) != (new.location, new.table_branch):
        return None
    type_ = now.catalog.find_table(table_key)
    assert type_ is not None
    uniques = {constraint.columns[0] for constraint in type_.uniques}
    found = now.table(table_key).rows_since(before.table(table_key), ["id", *sorted(uniques)], CHANGED_ROWS_MAX)
    if found is None or old.row_count + found.inserted != new.row_count:
        return None
    return found.rows


def _is_bounded(view: View, table_key: str) -> bool:
    type_ = view.catalog.find_table(table_key)
    return isinstance(type_, EdgeType) and type_.cardinality != Cardinality()


def _narrow_check(
    changes: ChangeSet, changed: Mapping[str, pa.Table], view: View, findings: Findings, bench: Bench
) -> frozenset[str] | None:
    """Check those of the rows to write that share an id or a unique value with a row that changed."""
    narrow, touched = ChangeSet(), set[str]()
    for key, rows in changed.items():
        change = changes.find(key)
        if change is None or change.rows is None:
            continue
        met = _meeting(change, rows)
        if met.num_rows > CHANGED_ROWS_MAX:
            return None
        if met.num_rows:
            narrow.tables[key] = TableChange(key, met, strict_insert=change.strict_insert)
            if pc.any(pc.is_in(met.table(["id"]).column("id"), value_set=rows.column("id").combine_chunks())).as_py():
                touched.add(key)
    if narrow.tables:
        check = EmbeddedBench(bench.scratch).check(view, narrow, findings)
        check_ids(check)
        check_unique(check)
    return frozenset(touched)


def _meeting(change: TableChange, rows: pa.Table) -> RowSpool:
    assert change.rows is not None
    wanted = {name: pc.unique(rows.column(name)).drop_null() for name in rows.schema.names}
    met = RowSpool(change.rows.schema)
    for batch in change.rows.meeting(wanted):
        met.append(batch)
        if met.num_rows > CHANGED_ROWS_MAX:
            break
    return met
