"""One look at a graph: what is read, what was found, and what has been checked already."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pyarrow as pa

from omnigraph.base.errors import OmniError
from omnigraph.commit.context import CommitContext
from omnigraph.engine.verify.findings import Damage, Finding
from omnigraph.engine.write.intake import Progress
from omnigraph.manifest.snapshot import SubTableEntry
from omnigraph.manifest.store import BranchState, ManifestStore, branch_label
from omnigraph.storage.objects import FoundFile
from omnigraph.storage.tables import TableRef, has_version

UNREADABLE = (OmniError, pa.ArrowException, ValueError, OSError)
"""What reading may raise where bytes are not what they were."""
Place = tuple[str, str | None, int]
"""A table version: location, fork (None: main), number."""


def place_of(entry: SubTableEntry) -> Place:
    return entry.location, entry.table_branch, entry.table_version


class Listing:
    """The files below a table's folder, with their sizes; listed when first asked for."""

    def __init__(self, ctx: CommitContext, location: str) -> None:
        self._ctx = ctx
        self._location = location
        self._files: dict[str, FoundFile] | None = None

    def renew(self) -> None:
        """List again: what was written since the last listing is there now."""
        self._files = {file.key: file for file in self._ctx.objects.walk(self._location)}

    def size_of(self, path: str) -> int | None:
        """The bytes of a file; None when it is not there."""
        found = self._listed().get(path)
        return found.size if found is not None else None

    def bytes_below(self, folder: str) -> int | None:
        """The bytes of all files in a folder; None when there are none."""
        sizes = [f.size for key, f in self._listed().items() if key.startswith(f"{folder}/")]
        return sum(sizes) if sizes else None

    def _listed(self) -> dict[str, FoundFile]:
        if self._files is None:
            self.renew()
        assert self._files is not None
        return self._files


@dataclass
class Inspection:
    """Shared by all checks of one run. `manifest` remembers nothing that another handle has read."""

    ctx: CommitContext
    progress: Progress
    manifest: ManifestStore
    states: dict[str | None, BranchState] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    checked: set[object] = field(default_factory=set)
    """What was looked at already: branches share tables, and what holds for a version holds wherever it is shown."""
    broken: set[Place] = field(default_factory=set)
    """Table versions that cannot be read whole."""
    explained: set[tuple[str | None, str]] = field(default_factory=set)
    """Tables of branches that an interrupted write moved: its recovery will settle them."""
    rows: int = 0
    _listings: dict[str, Listing] = field(default_factory=dict)

    @staticmethod
    def of(ctx: CommitContext, progress: Progress | None) -> Inspection:
        fresh = ManifestStore(ctx.root)
        return Inspection(replace(ctx, manifest=fresh), progress or (lambda stage, rows: None), fresh)

    def add(
        self,
        damage: Damage,
        branch: str | None,
        table_key: str | None,
        message: str,
        *,
        pinned: int | None = None,
        head: int | None = None,
        path: str | None = None,
        repair: str = "",
        operations: tuple[str, ...] = (),
    ) -> None:
        label = branch_label(branch)
        self.findings.append(Finding(damage, label, table_key, message, pinned, head, path, repair, operations))

    def is_first(self, *what: object) -> bool:
        """Whether this was not checked before; it counts as checked from now on."""
        if what in self.checked:
            return False
        self.checked.add(what)
        return True

    def is_gone(self, state: BranchState) -> bool:
        """Whether a branch was deleted since it was read, and perhaps made again."""
        if state.branch is None:
            return False
        found = self.manifest.branch(state.branch)
        return found is None or found.incarnation != state.incarnation

    def is_collected(self, state: BranchState) -> bool:
        """Whether the branch went on since it was read, and a version it showed then was taken away."""
        places = [place_of(entry) for entry in state.entries.values()]
        gone = any(not has_version(self.ref(place), place[2]) for place in places)
        return gone and self.manifest.state(state.branch).entries != state.entries

    def listing(self, location: str) -> Listing:
        return self._listings.setdefault(location, Listing(self.ctx, location))

    def ref(self, place: Place) -> TableRef:
        return self.ctx.ref(place[0], place[1])

    def read_rows(self, stage: str, count: int) -> None:
        self.rows += count
        self.progress(stage, self.rows)
