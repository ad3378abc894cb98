"""`verify`: reads everything that can be reached and tells what is broken. Changes nothing.

Holds:
  1. What a commit does between two looks is no finding: whatever seems broken is looked at again, and where a living
     writer may be the reason it is waited for.
  2. A graph that cannot be opened is looked at as far as it can be read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from omnigraph.base.errors import Conflict, NotFound
from omnigraph.commit.context import CommitContext
from omnigraph.engine.verify import leftovers
from omnigraph.engine.verify.content import check_content
from omnigraph.engine.verify.files import check_files, check_history, newest_whole
from omnigraph.engine.verify.findings import Damage, Finding, VerifyResult, ordered
from omnigraph.engine.verify.ground import MANIFEST_KEY, branch_names, check_manifest, missing_manifest
from omnigraph.engine.verify.indexes import check_indexes, check_lost_indexes
from omnigraph.engine.verify.inspection import UNREADABLE, Inspection, place_of
from omnigraph.engine.verify.pins import check_drift, check_row_count, open_pin
from omnigraph.engine.verify.projections import check_projections
from omnigraph.engine.verify.schema import check_schema
from omnigraph.engine.view import Current
from omnigraph.engine.write.intake import Progress
from omnigraph.manifest.rows import TABLE_VERSION, Row
from omnigraph.manifest.snapshot import SubTableEntry
from omnigraph.manifest.store import BranchState, branch_label, branch_name, refuse_internal

_ROUNDS_MAX = 8
_NAMES_A_WHOLE_COMMIT = (Damage.PIN, Damage.MISSING_FILE, Damage.CONTENT)


def verify(ctx: CommitContext, branches: Sequence[str] = (), progress: Progress | None = None) -> VerifyResult:
    """What is broken on these branches, or on all of them."""
    look = Inspection.of(ctx, progress)
    why = missing_manifest(look)
    if why is not None:
        look.add(Damage.MANIFEST, None, MANIFEST_KEY, why)
        return VerifyResult(ctx.root.uri, ("main",), 0, ordered(look.findings))
    look.progress("manifest", 0)
    known = branch_names(look)
    asked = _asked(branches, known)
    for branch in dict.fromkeys([None, *known]):
        check_manifest(look, branch)
    if branches:
        look.findings = [f for f in look.findings if branch_name(f.branch) in asked]
    leftovers.check_sidecars(look)
    current = check_schema(look)
    chosen = [state for branch, state in look.states.items() if branch in asked]
    for state in chosen:
        _check_branch(look, state, current)
    _check_beside(look, known, everything=not branches)
    tables = {place_of(entry) for state in chosen for entry in state.entries.values()}
    return VerifyResult(ctx.root.uri, tuple(map(branch_label, asked)), len(tables), ordered(look.findings))


def _asked(branches: Sequence[str], known: Sequence[str]) -> list[str | None]:
    if not branches:
        return [None, *known]
    names = list(dict.fromkeys(branch_name(branch) for branch in branches))
    for name in names:
        refuse_internal(name)
        if name is not None and name not in known:
            raise NotFound(f"branch '{name}' not found", "See omnigraph branch list.")
    return names


def _check_branch(look: Inspection, state: BranchState, current: Current | None) -> None:
    """Everything of one branch. One that was deleted meanwhile took its tables along, and nothing is told of it.

    What cleanup collected while it was read is no damage: then the branch is read again, as it is by then.
    """
    for _ in range(_ROUNDS_MAX):
        before, checked, broken = len(look.findings), set(look.checked), set(look.broken)
        found = _found(look, state, current)
        del look.findings[before:]
        if look.is_gone(state):
            return
        if not found or not look.is_collected(state):
            look.findings += found
            return
        look.checked, look.broken = checked, broken
        state = look.states[state.branch] = look.manifest.state(state.branch)
    raise Conflict(
        f"branch '{branch_label(state.branch)}' was cleaned up faster than it could be read",
        "Run omnigraph verify again when no cleanup runs.",
    )


def _found(look: Inspection, state: BranchState, current: Current | None) -> list[Finding]:
    before = len(look.findings)
    try:
        rows = look.manifest.rows(state)
        _check_all(look, state, rows, current)
        return _with_whole_commit(look, state, rows, look.findings[before:])
    except UNREADABLE as error:
        look.add(Damage.PIN, state.branch, None, f"the branch cannot be looked at any further: {error}")
        return look.findings[before:]


def _check_all(look: Inspection, state: BranchState, rows: Sequence[Row], current: Current | None) -> None:
    for key, entry in state.entries.items():
        if look.is_first("version", place_of(entry)):
            look.progress("tables", look.rows)
            _check_table(look, state, key, entry, rows, current)
    check_drift(look, state)
    leftovers.check_unrecorded_forks(look, state)
    check_history(look, state, rows)
    if current is not None:
        check_content(look, state, current)
    check_projections(look, state)


def _check_table(
    look: Inspection, state: BranchState, key: str, entry: SubTableEntry, rows: Sequence[Row], current: Current | None
) -> None:
    table = open_pin(look, state.branch, key, entry)
    if table is None:
        return
    try:
        check_files(look, state.branch, key, table)
        check_row_count(look, state.branch, key, entry, table)
        if place_of(entry) not in look.broken:
            check_indexes(look, state.branch, key, entry, table)
            if current is not None:
                check_lost_indexes(look, state.branch, key, _before(rows, entry), current, table)
    except UNREADABLE as error:
        look.broken.add(place_of(entry))
        told = f"the pinned version v{entry.table_version} cannot be read: {error}"
        look.add(Damage.PIN, state.branch, key, told, pinned=entry.table_version)


def _before(rows: Sequence[Row], entry: SubTableEntry) -> list[SubTableEntry]:
    """What was shown of the same table before, the newest first."""
    found = [
        SubTableEntry(entry.location, row.table_version, row.table_branch, row.row_count or 0)
        for row in rows
        if row.object_type == TABLE_VERSION
        and (row.location or entry.location, row.table_branch) == (entry.location, entry.table_branch)
        and row.table_version is not None
        and row.table_version < entry.table_version
    ]
    return sorted(found, key=lambda e: -e.table_version)


def _with_whole_commit(
    look: Inspection, state: BranchState, rows: Sequence[Row], found: Sequence[Finding]
) -> list[Finding]:
    """The findings, those of lost data with the newest commit that can still be read as a whole."""
    if not any(f.finding in _NAMES_A_WHOLE_COMMIT for f in found):
        return list(found)
    whole = newest_whole(look, rows, state.commits())
    told = f"the newest whole commit is {whole.graph_commit_id}" if whole else "no commit of the branch is whole"
    return [replace(f, message=f"{f.message}; {told}") if f.finding in _NAMES_A_WHOLE_COMMIT else f for f in found]


def _check_beside(look: Inspection, known: Sequence[str], everything: bool) -> None:
    """What belongs to no branch; of the folders only where every branch could be read."""
    if not everything:
        return
    look.progress("leftovers", look.rows)
    for check in (leftovers.check_tags, leftovers.check_heartbeats, leftovers.check_forks):
        try:
            check(look)
        except UNREADABLE as error:
            look.add(Damage.MANIFEST, None, None, f"what lies beside the tables cannot be read: {error}")
    if len(look.states) == 1 + len(known):
        leftovers.check_folders(look)
