"""`repair`: looks at everything as verify does, and mends what the damage table lets it mend.

Holds:
  1. Without `confirm` nothing on disk changes.
  2. Rows that another tool wrote are shown only with `force`, and only if they keep every rule.
  3. What cannot be mended is told with the reason and stops nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from omnigraph.base.errors import BadRequest, Conflict, NotFound, OmniError
from omnigraph.commit.context import CommitContext
from omnigraph.commit.drift import drift_of
from omnigraph.commit.locks import HeldLock
from omnigraph.commit.repairs import (
    NewPin,
    drifts,
    publish_heads,
    refuse_pending,
    remove_unreadable,
    settled_state,
    take_back,
)
from omnigraph.engine.repair.decide import DRIFTS, INDEXES, Action, Decision, decide
from omnigraph.engine.repair.forced import Judgement, judge
from omnigraph.engine.repair.result import RepairedTable, RepairResult
from omnigraph.engine.schema import SchemaKeeper
from omnigraph.engine.verify.findings import Damage, Finding, VerifyResult
from omnigraph.engine.verify.ground import MANIFEST_KEY
from omnigraph.engine.verify.indexes import check_indexes
from omnigraph.engine.verify.inspection import UNREADABLE, Inspection
from omnigraph.engine.verify.pins import damage_of, told_of
from omnigraph.engine.verify.run import verify
from omnigraph.engine.view import Current, View
from omnigraph.engine.write.changes import Annotations
from omnigraph.engine.write.ensure_indices import ensure_indices
from omnigraph.engine.write.intake import Progress
from omnigraph.manifest import layout
from omnigraph.manifest.snapshot import SubTableEntry
from omnigraph.manifest.store import BranchState, branch_label, branch_name
from omnigraph.storage.inventory import recorded_segments
from omnigraph.storage.places import probe_store
from omnigraph.storage.refs import branch_files
from omnigraph.storage.tables import open_table

_MESSAGE = "indexes rebuilt by omnigraph repair"


def repair(
    ctx: CommitContext, *, confirm: bool = False, force: bool = False, progress: Progress | None = None
) -> RepairResult:
    """Mend the graph; without `confirm` only say what would be done."""
    if force and not confirm:
        raise BadRequest("force needs a confirmation", "Add --confirm (confirm=True).")
    if layout.SCHEMA_LOCK_BRANCH in branch_files(ctx.manifest.ref()):
        raise Conflict("a schema apply is running", "Nothing was changed. Retry when it is done.")
    if confirm:
        probe_store(ctx.root)
    found = verify(ctx, progress=progress)
    mending = Mending(ctx, found, force, progress)
    if confirm:
        mending.run()
    return RepairResult(ctx.root.uri, confirm, force, _version(ctx), tuple(mending.rows()))


def _version(ctx: CommitContext) -> int | None:
    try:
        ctx.manifest.forget()
        return ctx.manifest.state().version
    except OmniError:
        return None


@dataclass
class Mending:
    """One repair of one graph."""

    ctx: CommitContext
    seen: VerifyResult
    force: bool
    progress: Progress | None
    done: dict[Finding, Decision] = field(default_factory=dict)
    """What became of findings that were acted on."""
    later: list[Finding] = field(default_factory=list)
    """What was found once a torn version was out of the way."""

    @property
    def blocked(self) -> str | None:
        waits = next((f for f in self.seen.findings if f.finding is Damage.PENDING), None)
        return None if waits is None else f"recovery pending: {waits.path}; {waits.repair}"

    def run(self) -> None:
        wanted = [f for f in self.seen.findings if decide(f, self.force, self.blocked).action.changes]
        for label in dict.fromkeys(f.branch or "main" for f in wanted):
            mine = [f for f in wanted if (f.branch or "main") == label]
            branch = branch_name(label)
            drifted = [f for f in mine if f.finding in DRIFTS]
            self._guarded(self._heal, branch, drifted)
            forced = [f for f in (*drifted, *self.later) if self._is_forced(f, label)]
            self._guarded(self._force, branch, forced)
            indexes = [f for f in (*mine, *self.later) if f.finding in INDEXES and f.branch == label]
            self._guarded(self._index, branch, indexes)

    def _is_forced(self, found: Finding, label: str) -> bool:
        return found.branch == label and decide(found, self.force).action is Action.FORCED and found not in self.done

    def _guarded(
        self, act: Callable[[str | None, Sequence[Finding]], None], branch: str | None, findings: Sequence[Finding]
    ) -> None:
        """What stops one step is told of its findings, and the next step goes on."""
        if not findings:
            return
        try:
            act(branch, findings)
        except UNREADABLE as error:
            told = f"{error}. {error.hint}".rstrip() if isinstance(error, OmniError) else str(error)
            for found in findings:
                self.done.setdefault(found, Decision(Action.REFUSED, told))

    def _heal(self, branch: str | None, findings: Sequence[Finding]) -> None:
        """Remove torn versions, take late effects back, adopt maintenance; all under one holding of the lock."""
        with self.ctx.locks.hold(branch) as lock:
            refuse_pending(self.ctx, branch)
            state = settled_state(self.ctx, branch, lock)
            for found in findings:
                if found.finding is Damage.TORN_ABOVE:
                    self._remove(state, found, lock)
            acted = [f for f in (*findings, *self.later) if f.branch == branch_label(branch)]
            for found in acted:
                if found.finding is Damage.LATE and found.table_key is not None and self._is_still(state, found):
                    state = take_back(self.ctx, state, found.table_key, lock)
                    self.done[found] = Decision(Action.RESTORED)
            healed = [f for f in acted if f.finding is Damage.DRIFT_MAINTENANCE]
            pins = [pin for found in healed if (pin := self._maintained(state, found)) is not None]
            if pins:
                publish_heads(self.ctx, state, pins, lock, forced=False)
                keys = {pin.table_key for pin in pins}
                self.done |= {f: Decision(Action.HEALED) for f in healed if f.table_key in keys}
        self._note_indexes(branch, pins)

    def _remove(self, state: BranchState, found: Finding, lock: HeldLock) -> None:
        """Torn versions go; what lies below them is classified again."""
        self.done[found] = Decision(Action.REMOVED)
        if found.table_key == MANIFEST_KEY or found.table_key is None:
            return  # it went when the branch was read under its lock
        entry = state.entries.get(found.table_key)
        if entry is None or not remove_unreadable(self.ctx, found.table_key, entry, lock):
            self.done[found] = Decision(Action.NO_OP)
        if entry is None:
            return
        drift = drift_of(self.ctx, entry)
        damage = damage_of(drift)
        if damage is not None:
            told = told_of(drift)
            self.later.append(
                Finding(damage, found.branch, found.table_key, told, drift.pin, drift.head, operations=drift.operations)
            )

    def _is_still(self, state: BranchState, found: Finding) -> bool:
        """Whether the table still is as it was found; if not, what became of the finding is noted."""
        entry = state.entries.get(found.table_key or "")
        drift = drift_of(self.ctx, entry) if entry is not None else None
        damage = damage_of(drift) if drift is not None else None
        if drift is None or damage is None:
            # A writer healed it, or the type was dropped, before we had the lock.
            self.done[found] = Decision(Action.NO_OP)
        elif damage is not found.finding:
            self.done[found] = Decision(Action.REFUSED, f"it changed meanwhile: {told_of(drift)}; run repair again")
        return damage is found.finding

    def _maintained(self, state: BranchState, found: Finding) -> NewPin | None:
        """The head that a compaction or an index build made, if it still is one and lost no row."""
        if found.table_key is None or not self._is_still(state, found):
            return None
        entry = state.entries[found.table_key]
        drift = drift_of(self.ctx, entry)
        rows = open_table(self.ctx.ref(entry.location, entry.table_branch), drift.head, found.table_key).count_rows()
        if rows != entry.row_count:
            told = f"v{drift.head} has {rows} rows, the pin v{drift.pin} has {entry.row_count}"
            self.done[found] = Decision(Action.REFUSED, told)
            return None
        return NewPin(found.table_key, entry, drift.head, rows)

    def _force(self, branch: str | None, findings: Sequence[Finding]) -> None:
        """Judge without the lock, for that may take long; look under the lock whether it still holds."""
        self.ctx.manifest.forget(branch)
        judged = self._judged(self.ctx.manifest.state(branch), findings)
        if judged.pins:
            with self.ctx.locks.hold(branch) as lock:
                refuse_pending(self.ctx, branch)
                state = settled_state(self.ctx, branch, lock)
                if not judged.still_holds(self.ctx, state):
                    judged = self._judged(state, findings)
                if judged.pins:
                    publish_heads(self.ctx, state, judged.pins, lock, forced=True)
        forced = {pin.table_key for pin in judged.pins}
        for found in findings:
            why = judged.refusals.get(found.table_key or "")
            done = Decision(Action.FORCED if found.table_key in forced else Action.NO_OP)
            self.done[found] = done if why is None else Decision(Action.REFUSED, why)
        self._note_indexes(branch, judged.pins)

    def _judged(self, state: BranchState, findings: Sequence[Finding]) -> Judgement:
        """Of the tables that still are ahead of their pins; whoever healed the others was first."""
        entries = {f.table_key: e for f in findings if f.table_key and (e := state.entries.get(f.table_key))}
        keys = [key for key, entry in entries.items() if damage_of(drift_of(self.ctx, entry)) is not None]
        return judge(self.ctx, state, keys, self._current(), self.progress)

    def _note_indexes(self, branch: str | None, pins: Sequence[NewPin]) -> None:
        """Indexes that went with what was adopted, or answer otherwise than its rows, are to be built anew."""
        look = Inspection.of(self.ctx, self.progress)
        for pin in pins:
            ref = self.ctx.ref(pin.entry.location, pin.entry.table_branch)
            had, table = (open_table(ref, v, pin.table_key) for v in (pin.entry.table_version, pin.head))
            for name in sorted(had.index_states().keys() - table.index_states().keys()):
                told = f"index {name} of v{pin.entry.table_version} is no more in v{pin.head}"
                look.add(Damage.MISSING_INDEX, branch, pin.table_key, told, pinned=pin.head, head=pin.head)
            check_indexes(look, branch, pin.table_key, pin.entry, table)
        self.later += look.findings

    def _current(self) -> Current:
        main = self.ctx.manifest.state()
        return Current(self.ctx.root, SchemaKeeper(self.ctx.manifest).accepted(main).catalog, main.entries)

    def _index(self, branch: str | None, findings: Sequence[Finding]) -> None:
        broken: dict[str, set[str]] = {}
        entries, current = self.ctx.manifest.state(branch).entries, self._current()
        there = [f for f in findings if f.table_key in entries]
        for found in there:
            assert found.table_key is not None
            key = current.key_at(entries[found.table_key].location) or found.table_key
            broken.setdefault(key, set()).update(self._names(entries[found.table_key], found))
        # The types of the others were dropped meanwhile.
        self.done |= {found: Decision(Action.NO_OP) for found in findings}
        if not there:
            return

        def view() -> View:
            state = self.ctx.manifest.state(branch)
            return self._current().view(state.snapshot(), state.incarnation)

        ensure_indices(self.ctx, view, Annotations(message=_MESSAGE), broken)
        self.done |= {found: Decision(Action.REBUILT) for found in there}

    def _names(self, entry: SubTableEntry, found: Finding) -> set[str]:
        """The index whose files lie where the finding says; one without a place is not there at all."""
        table = open_table(self.ctx.ref(entry.location, entry.table_branch), entry.table_version, found.table_key or "")
        return {segment.index for segment in recorded_segments(table) if segment.folder == found.path}

    def rows(self) -> Iterator[RepairedTable]:
        """What became, or would become, of each finding; then the tables nothing was found of."""
        told: set[tuple[str, str | None]] = set()
        for found in (*self.seen.findings, *self.later):
            told.add((found.branch or "main", found.table_key))
            chosen = self.done.get(found) or decide(found, self.force, self.blocked)
            yield RepairedTable(
                found.table_key,
                found.branch or "main",
                found.pinned,
                found.head if found.head is not None else found.pinned,
                found.finding,
                chosen.action,
                found.operations,
                chosen.error,
            )
        for label in self.seen.branches:
            yield from self._untouched(branch_name(label), told)

    def _untouched(self, branch: str | None, told: set[tuple[str, str | None]]) -> Iterator[RepairedTable]:
        try:
            state = self.ctx.manifest.state(branch)
        except (NotFound, OmniError):
            return
        label = branch_label(branch)
        for key, drift in drifts(self.ctx, state).items():
            if (label, key) not in told:
                yield RepairedTable(key, label, drift.pin, drift.head, None, Action.NO_OP)
