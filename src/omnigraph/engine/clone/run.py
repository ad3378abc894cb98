"""A clone from beginning to end.

Holds at every return, and after every crash:
  1. The target is a whole graph, or it opens as nothing and a second clone goes on with it.
  2. Each branch of the copy shows what the source's showed at one moment; all branches at the same one.
  3. The source was only read, but for the sign of life; its writers waited no longer than it takes to read the heads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from omnigraph.base.errors import Conflict
from omnigraph.base.failpoints import reach
from omnigraph.commit.context import CommitContext
from omnigraph.commit.schema_lock import refuse_while_applying
from omnigraph.commit.staging import StagingBeat
from omnigraph.engine.clone.carry import TableCopy, missing_pins, table_copy, wanted_versions
from omnigraph.engine.clone.claim import Claim, claimed, refuse_same_place, release
from omnigraph.engine.clone.cut import Cut, chosen_branches, refuse_old_shape, sign_of_life, take_cut
from omnigraph.engine.clone.files import Copied, copy_files, left_by_an_earlier_run, still_to_copy
from omnigraph.engine.clone.place import (
    UnbornManifest,
    give_birth,
    note_branch,
    place_branch,
    place_forks,
    place_projections,
    place_rest,
)
from omnigraph.engine.clone.result import ClonedBranch, CloneResult, Tell, silent
from omnigraph.engine.opening import open_graph
from omnigraph.engine.verify.findings import Damage, Finding
from omnigraph.engine.verify.run import verify
from omnigraph.manifest import layout
from omnigraph.manifest.branches import visible_branches
from omnigraph.manifest.migrations import refuse_without_row_ids
from omnigraph.manifest.store import BranchState, branch_label, branch_name
from omnigraph.manifest.tags import list_tags
from omnigraph.storage.objects import Missing
from omnigraph.storage.tables import TableRef, open_table

_ROUNDS_MAX = 5
_UNREADABLE = (Damage.MANIFEST, Damage.SCHEMA, Damage.MOVED_BASE, Damage.PIN, Damage.MISSING_FILE)


def clone_graph(
    source: CommitContext, target: CommitContext, wanted: Sequence[str] | None = None, tell: Tell = silent
) -> CloneResult:
    """Copy a graph to an empty place; `wanted` names branches, of which main and their origins are never left out."""
    refuse_same_place(source.root, target.root)
    open_graph(source, writable=False)
    refuse_while_applying(source)
    refuse_without_row_ids(source.manifest.state())
    chosen_branches(source.manifest.branches(), wanted)
    with claimed(target, source.manifest.state().incarnation) as claim:
        if claim.finished:
            made = _Made(Copied(0, 0), {})
        else:
            with sign_of_life(source) as beat:
                made = _copied(source, target, wanted, claim, beat, tell)
        reach("clone.born")
        findings = _verified(target, tell)
        result = _told(source, target, made, claim, findings)
        release(target)
    return result


def _verified(target: CommitContext, tell: Tell) -> tuple[Finding, ...]:
    """What the copy has that should not be, as the source may; if it cannot be read, it is no graph any more."""
    tell("verify", 0, 0)
    born = CommitContext.of(target.root, target.settings)
    found = verify(born, progress=lambda _, rows: tell("verify", rows, 0)).findings
    broken = [f for f in found if f.finding in _UNREADABLE]
    if broken:
        ref = born.manifest.ref()
        target.objects.delete(ref.version_file(born.manifest.state().version))
        raise Conflict(
            f"the copy is not whole: {broken[0].finding} {broken[0].table_key or ''}: {broken[0].message}",
            "It does not open. Run omnigraph verify on the source, then clone again.",
        )
    return found


@dataclass(frozen=True)
class _Made:
    copied: Copied
    heads: Mapping[str, str | None]
    """The commit each branch showed in the source."""


def _copied(
    source: CommitContext,
    target: CommitContext,
    wanted: Sequence[str] | None,
    claim: Claim,
    beat: StagingBeat | None,
    tell: Tell,
) -> _Made:
    for turn in range(1, _ROUNDS_MAX + 1):
        tell("look", 0, 0)
        cut = take_cut(source, wanted, beat)
        reach("clone.cut")
        try:
            return _filled(source, target, cut, claim, tell)
        except Missing as error:
            # A branch takes its files with it at once, whoever reads them. What else is gone is looked for once more.
            if turn >= (_ROUNDS_MAX if _lost_a_branch(source, cut) else 2):
                raise Conflict(
                    f"'{source.root.uri}' could not be copied: {error}",
                    "The copy is not finished. Run omnigraph verify on the source, then clone again.",
                ) from error
    raise AssertionError("the loop above returns or raises")


def _lost_a_branch(source: CommitContext, cut: Cut) -> bool:
    """Whether a branch was deleted since the cut."""
    for line in cut.lines:
        found = source.manifest.branch(line.name)
        if found is None or found.incarnation != line.reference.incarnation:
            return True
    return False


def _filled(source: CommitContext, target: CommitContext, cut: Cut, claim: Claim, tell: Tell) -> _Made:
    """Everything from the first file to main's manifest."""
    unborn = CommitContext.of(target.root, target.settings, UnbornManifest(target.root))
    there = left_by_an_earlier_run(target.root)
    states = _placed_branches(source, unborn, cut)
    for state in (cut.main, *states.values()):
        refuse_old_shape(state)
    reach("clone.branches_placed")
    copies = _table_copies(source, [cut.main, *states.values()], cut)
    files = still_to_copy(target.root, copies, there)
    copied = copy_files(source.root, target.root, files, tell)
    reach("clone.copied")
    for copy in copies:
        place_forks(source, target.root, copy)
    reach("clone.forks_placed")
    place_rest(target, cut, {c.graph_commit_id for state in (cut.main, *states.values()) for c in state.commits()})
    _check(target, [cut.main, *states.values()], tell)
    for state in states.values():
        if any(entry.table_branch == state.branch for entry in state.entries.values()):
            note_branch(unborn, state)
    reach("clone.branches_noted")
    noted: dict[str | None, BranchState] = {name: unborn.manifest.state(name) for name in states}
    place_projections(unborn, noted | {None: cut.main}, cut.lines)
    give_birth(source, target.root, cut.main, claim.lock)
    return _Made(copied, {branch_label(s.branch): s.head_id for s in (cut.main, *states.values())})


def _placed_branches(source: CommitContext, unborn: CommitContext, cut: Cut) -> dict[str, BranchState]:
    """The branches of the copy. They are read there: in a source that was moved they cannot be."""
    heads: dict[str | None, set[int]] = {line.name: {line.version} for line in cut.lines}
    found = table_copy(source, layout.MANIFEST, heads | {None: {cut.main.version}})
    if found is None or not found.main or set(found.forks) != {line.name for line in cut.lines}:
        raise Missing(f"a version of {layout.MANIFEST} is missing in '{source.root.uri}'")
    copy_files(source.root, unborn.root, found.files, silent)
    for line in cut.lines:
        place_branch(source, unborn.root, line)
        unborn.manifest.forget(line.name)
    return {line.name: unborn.manifest.state(line.name) for line in cut.lines}


def _table_copies(source: CommitContext, states: Sequence[BranchState], cut: Cut) -> list[TableCopy]:
    wanted = wanted_versions(source, states[0], states[1:], cut)
    made = {location: table_copy(source, location, forks) for location, forks in sorted(wanted.items())}
    copies = {location: copy for location, copy in made.items() if copy is not None}
    for branch, key, version in missing_pins(states, copies):
        raise Missing(f"version {version} of {key}, which branch '{branch}' shows, is missing in '{source.root.uri}'")
    return list(copies.values())


def _check(target: CommitContext, states: Sequence[BranchState], tell: Tell) -> None:
    """Every table that a branch shows opens in the copy and has as many rows as its manifest says."""
    shown = {(key, entry) for state in states for key, entry in state.entries.items()}
    for number, (key, entry) in enumerate(shown):
        tell("check", number, len(shown))
        ref = TableRef(target.root, entry.location, entry.table_branch)
        rows = open_table(ref, entry.table_version, key).count_rows()
        if rows != entry.row_count:
            raise Conflict(
                f"{key} has {rows} rows in the copy, and {entry.row_count} by the manifest",
                "The copy is not finished. Run omnigraph verify on the source, then clone again.",
            )


def _told(
    source: CommitContext, target: CommitContext, made: _Made, claim: Claim, findings: tuple[Finding, ...]
) -> CloneResult:
    born = CommitContext.of(target.root, target.settings)
    branches = []
    for label in visible_branches(born.manifest):
        state = born.manifest.state(branch_name(label))
        own = sum(entry.table_branch == state.branch for entry in state.entries.values()) if state.branch else 0
        branches.append(ClonedBranch(label, made.heads.get(label), state.head_id, own))
    return CloneResult(
        source.root.uri,
        target.root.uri,
        tuple(branches),
        len(list_tags(target.objects)),
        made.copied.files,
        made.copied.bytes,
        claim.resumed,
        findings,
    )
