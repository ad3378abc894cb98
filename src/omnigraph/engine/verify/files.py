"""Files: whatever a kept version refers to is there, with the size it records.

Versions that no branch shows any more are looked at too, for commits of the past are read from them. Their indexes
are not: they can be built only for heads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from omnigraph.engine.verify.findings import Damage
from omnigraph.engine.verify.inspection import UNREADABLE, Inspection, Place, place_of
from omnigraph.manifest.lineage import GraphCommit
from omnigraph.manifest.rows import TABLE_VERSION, Row
from omnigraph.manifest.snapshot import TableState
from omnigraph.manifest.store import BranchState
from omnigraph.storage.inventory import RecordedFile, recorded_files
from omnigraph.storage.tables import Table, has_version, is_torn, open_table


def check_files(look: Inspection, branch: str | None, key: str, table: Table) -> None:
    """The data and deletion files of one version."""
    place = (table.ref.location, table.ref.branch, table.version)
    lost = _lost(look, table)
    if lost and _is_kept(look, place):
        look.broken.add(place)
        for file, size in lost:
            what = "is missing" if size is None else f"has {size} bytes, recorded are {file.size}"
            if look.is_first("file", file.path):
                told = f"v{table.version} refers to {file.path}, which {what}"
                look.add(Damage.MISSING_FILE, branch, key, told, pinned=table.version, path=file.path)


def _lost(look: Inspection, table: Table) -> list[tuple[RecordedFile, int | None]]:
    listing = look.listing(table.ref.location)

    def wrong(files: Iterable[RecordedFile]) -> list[RecordedFile]:
        sizes = ((file, listing.size_of(file.path)) for file in files)
        return [file for file, size in sizes if size is None or file.size not in (None, size)]

    suspects = wrong(recorded_files(table))
    if suspects:
        # What was written after the listing is in the next one.
        listing.renew()
        suspects = wrong(suspects)
    return [(file, listing.size_of(file.path)) for file in suspects]


def _is_kept(look: Inspection, place: Place) -> bool:
    """Whether the version is still there: what is collected goes before its files."""
    return has_version(look.ref(place), place[2])


def check_history(look: Inspection, state: BranchState, rows: Sequence[Row]) -> None:
    """The versions that commits of the past pin, the newest first; those that cleanup took are none."""
    shown = {place_of(entry) for entry in state.entries.values()}
    for key, place in _past(rows):
        if place in shown or not look.is_first("version", place):
            continue
        look.progress("history", look.rows)
        ref, version = look.ref(place), place[2]
        try:
            if not has_version(ref, version):
                continue
            if not is_torn(ref, version):
                check_files(look, state.branch, key, open_table(ref, version, key))
                continue
            why = "its version file is torn"
        except UNREADABLE as error:
            why = str(error)
        if _is_kept(look, place):
            look.broken.add(place)
            told = f"v{version}, which older commits show, cannot be opened: {why}"
            look.add(Damage.PIN, state.branch, key, told, pinned=version, path=ref.version_file(version))


def _past(rows: Sequence[Row]) -> Iterator[tuple[str, Place]]:
    places = {row.table_key: row.location for row in rows if row.location is not None and row.table_key is not None}
    pins = [row for row in rows if row.object_type == TABLE_VERSION and row.table_key and row.table_version]
    for row in reversed(pins):
        location = row.location or places.get(row.table_key or "")
        if location is not None and row.table_version is not None:
            yield row.table_key or "", (location, row.table_branch, row.table_version)


def newest_whole(look: Inspection, rows: Sequence[Row], commits: Sequence[GraphCommit]) -> GraphCommit | None:
    """The newest commit of a branch of which every table can be read."""
    waiting, tables, at = sorted(rows, key=lambda row: row.created_at_version), TableState(), 0
    found = None
    for commit in sorted(commits, key=lambda c: c.manifest_version):
        start = at
        while at < len(waiting) and waiting[at].created_at_version <= commit.manifest_version:
            at += 1
        tables.apply(waiting[start:at])
        places = {place_of(entry) for entry in tables.resolve(commit.manifest_branch).values()}
        if not places & look.broken and all(has_version(look.ref(place), place[2]) for place in places):
            found = commit
    return found
