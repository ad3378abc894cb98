"""Fewer, larger fragments, staged: the files and transactions of a compaction before any table moves.

Holds at every return:
  1. No table moved. What indexes are built on is a version set aside, which no reader meets and which goes again.
  2. Every step is a stamped transaction of its own version; step k is made for the version that step k-1 leaves.
  3. No index says where rows lay before: Lance takes B-trees, which name rows by their place, off the fragments that
     are rewritten, and they are built again; text and vector indexes name rows by ids that stay.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import lance
from lance.optimize import Compaction, CompactionTask, RewriteResult

from omnigraph.base.failpoints import reach
from omnigraph.storage.apply import set_aside, take_away
from omnigraph.storage.columns import Columns
from omnigraph.storage.failures import translated
from omnigraph.storage.stage import IndexKind, IndexSpec, StagedWrite, Stamp, index_removal, stage_index
from omnigraph.storage.tables import Table

_OP = lance.LanceOperation
# Their types do not tell of JSON.
_TASK: Any = CompactionTask
_RESULT: Any = RewriteResult


@dataclass(frozen=True)
class FragmentFacts:
    """One fragment: rows that are left, rows that were deleted, and how large its files are.

    `has_dropped`: its files hold a column that the table has no more.
    """

    number: int
    rows: int
    deleted: int
    bytes: int
    has_dropped: bool = False


@dataclass(frozen=True)
class RewriteTask:
    """Fragments of a table at one version that become one; whoever reaches the table can do it."""

    uri: str
    version: int
    message: str
    bytes: int
    storage_options: Mapping[str, str] | None = field(default=None, repr=False)

    @property
    def key(self) -> str:
        """The same for the same fragments, whatever became of the table otherwise."""
        return f"{self.uri} {json.dumps(json.loads(self.message)['task'], sort_keys=True)}"


@dataclass(frozen=True)
class Segment:
    """A part of an index and the fragments it covers."""

    index: str
    fragment_ids: frozenset[int]


def fragment_facts(table: Table) -> list[FragmentFacts]:
    """What is known of each fragment, in the table's order; no file is opened."""
    with translated(f"read {table.ref.location}"):
        columns = Columns.of(table.dataset.lance_schema).numbers
        return [
            FragmentFacts(
                int(f.id),
                int(f.physical_rows) - int(f.num_deletions),
                int(f.num_deletions),
                sum(int(file.file_size_bytes or 0) for file in f.files),
                any(number not in columns for file in f.files for number in file.fields),
            )
            for f in table.fragments()
        ]


def segments(table: Table) -> list[Segment]:
    with translated(f"describe indexes of {table.ref.location}"):
        return [
            Segment(found.name, frozenset(int(n) for n in part.fragment_ids))
            for found in table.dataset.describe_indices()
            for part in found.segments
        ]


def index_specs(table: Table) -> list[IndexSpec]:
    """The indexes the table has, as far as their names are ours."""
    found = []
    for name in dict.fromkeys(segment.index for segment in segments(table)):
        for kind in IndexKind:
            column = name.removesuffix(f"_{kind.name.lower()}_idx")
            if IndexSpec(column, kind).name == name:
                found.append(IndexSpec(column, kind))
    return found


def rewrite_tasks(table: Table, groups: Sequence[Sequence[FragmentFacts]]) -> list[RewriteTask]:
    """One task for each group of neighbouring fragments."""
    known = {int(f.id): f for f in table.fragments()}
    tasks = []
    for group in groups:
        # One fragment comes of it, however many rows that are.
        rows = max(1, sum(f.rows for f in group))
        plan: Any = Compaction.plan(table.dataset, {"target_rows_per_fragment": rows})
        task = {"fragments": [known[f.number].to_json() for f in group]}
        message = {"task": task, "read_version": table.version, "options": json.loads(plan.json())["options"]}
        size = sum(f.bytes for f in group)
        tasks.append(RewriteTask(table.ref.uri, table.version, json.dumps(message), size, table.ref.options))
    return tasks


def run_rewrite(task: RewriteTask) -> str:
    """Write the files of a task; the answer is for `staged_rewrite`. It may run on any machine, and more than once."""
    options = None if task.storage_options is None else dict(task.storage_options)
    with translated(f"compact {task.uri}"):
        dataset = lance.dataset(task.uri, version=task.version, storage_options=options)
        return str(_TASK.from_json(task.message).execute(dataset).json())


@dataclass(frozen=True)
class Rewritten:
    """A compaction in steps, and the table as they leave it, for looking at and building indexes on."""

    steps: tuple[StagedWrite, ...]
    after: Table
    version: int
    """The version the steps lead to."""

    def index_step(self, whole: Sequence[IndexSpec], parts: Any, stamp: Stamp) -> StagedWrite:
        """The indexes, built on the new fragments, as the step that follows."""
        return _made_for(stage_index(self.after, whole, stamp, parts), self.version)


@contextmanager
def staged_rewrite(
    table: Table, answers: Sequence[str], dropped: Collection[str], stamp_of: Callable[[int], Stamp]
) -> Iterator[Rewritten]:
    """Stage what the tasks wrote. `dropped`: indexes of which a part covers only some fragments of a group."""
    made: list[Table] = []
    steps: list[StagedWrite] = []
    base = table
    try:
        with translated(f"compact {table.ref.location}"):
            if dropped:
                steps.append(index_removal(table, set(dropped), stamp_of(0)))
                base = set_aside(table, steps[0].transaction)
                made.append(base)
            results = [_RESULT.from_json(answer) for answer in answers]
            fresh = [list(result.new_fragments) for result in results]
            # Lance numbers fragments when they are committed, and needs to know the numbers before for the indexes.
            numbered = set_aside(base, _rewrite(base.version, results, fresh, {}))
            made.append(numbered)
            _number(fresh, numbered)
            after = set_aside(base, _rewrite(base.version, results, fresh, {}))
            made.append(after)
            stamp, version = stamp_of(len(steps)), table.version + len(steps)
            transaction = _rewrite(version, results, fresh, stamp.properties())
            rows = table.count_rows()
            on = table if not steps else None
            steps.append(
                StagedWrite(table.ref, stamp, version, transaction.uuid, rows, table=on, transaction=transaction)
            )
        reach("stage.set_aside")
        yield Rewritten(tuple(steps), after, version + 1)
    finally:
        for one in made:
            take_away(one)


def stage_fork_compaction(table: Table, stamp: Stamp) -> StagedWrite | None:
    """Rewrite small fragments of a fork, one step; None when there is nothing to gain.

    Lance's own commit would break B-trees the fork inherited. This one takes them off the fragments it rewrites.
    """
    with translated(f"compact {stamp.table_key}"):
        tasks: list[Any] = Compaction.plan(table.dataset, {}).tasks
        answers = [str(task.execute(table.dataset).json()) for task in tasks]
    if not answers:
        return None
    with staged_rewrite(table, answers, (), lambda _step: stamp) as rewritten:
        return rewritten.steps[0]


def _rewrite(version: int, results: Sequence[Any], fresh: Sequence[list[Any]], properties: dict[str, str]) -> Any:
    groups = [_OP.RewriteGroup(r.original_fragments, new) for r, new in zip(results, fresh, strict=True)]
    return lance.Transaction(version, _OP.Rewrite(groups, []), transaction_properties=properties)


def _number(fresh: Sequence[list[Any]], numbered: Table) -> None:
    """Give the new fragments the numbers that Lance gave them."""
    by_file = {file.path: int(f.id) for f in numbered.fragments() for file in f.files}
    for fragment in (f for group in fresh for f in group):
        fragment.id = by_file[fragment.files[0].path]


def _made_for(staged: StagedWrite, version: int) -> StagedWrite:
    """The same indexes, for the version that has the fragments they were built on."""
    operation = staged.transaction.operation
    built = [dataclasses.replace(index, dataset_version=version) for index in operation.new_indices]
    transaction = lance.Transaction(
        version,
        _OP.CreateIndex(built, list(operation.removed_indices)),
        transaction_properties=staged.stamp.properties(),
    )
    return dataclasses.replace(staged, read_version=version, uuid=transaction.uuid, table=None, transaction=transaction)
