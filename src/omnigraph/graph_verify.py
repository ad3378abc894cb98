"""How a handle looks whether its graph is whole, and mends it."""

from __future__ import annotations

from collections.abc import Sequence

from omnigraph.engine.repair.result import RepairResult
from omnigraph.engine.repair.run import repair
from omnigraph.engine.verify.findings import VerifyResult
from omnigraph.engine.verify.run import verify
from omnigraph.engine.write.intake import Progress
from omnigraph.graph_reads import Reads


class Verifies(Reads):
    """The part of a graph handle that looks for damage. `omnigraph.verify(uri)` does the same where a graph is too
    damaged to be opened."""

    def verify(self, branches: str | Sequence[str] = (), *, progress: Progress | None = None) -> VerifyResult:
        """Read everything of these branches, or of all, and tell what is broken; nothing is changed.

        `progress` is told the stage and the rows read so far.
        """
        names = [branches] if isinstance(branches, str) else branches
        return verify(self._ctx, names, progress)

    def repair(self, *, confirm: bool = False, force: bool = False, progress: Progress | None = None) -> RepairResult:
        """Mend what can be mended; without `confirm` nothing is touched, only told.

        `force`: also show rows that another tool wrote, if they keep every rule of the schema.
        """
        if confirm:
            self.refuse_read_only()
        return repair(self._ctx, confirm=confirm, force=force, progress=progress)
