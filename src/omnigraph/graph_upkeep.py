"""How a handle keeps its graph in order."""

from __future__ import annotations

from omnigraph.base.moments import Moment
from omnigraph.engine.upkeep.optimize import RunTasks, optimize
from omnigraph.engine.upkeep.optimized import OptimizeResult
from omnigraph.engine.upkeep.stats import TableStats, table_stats
from omnigraph.engine.write.changes import Annotations
from omnigraph.graph_reads import Reads
from omnigraph.manifest.snapshot import Snapshot


class Upkeep(Reads):
    """The part of a graph handle that folds and looks after tables."""

    def optimize(
        self,
        branch: str | None = "main",
        *,
        actor: str | None = None,
        message: str | None = None,
        run_tasks: RunTasks | None = None,
    ) -> OptimizeResult:
        """Fold small fragments of the tables the branch owns, bring indexes up to date; rows and ids stay as they are.

        One commit for all tables; nothing to do, no commit. `run_tasks`: who rewrites the fragments.
        """
        self.refuse_read_only()
        return optimize(self._ctx, lambda: self.view(branch), Annotations(actor, message), run_tasks)

    def table_stats(
        self,
        branch: str | None = None,
        *,
        snapshot: str | Snapshot | None = None,
        as_of: Moment | None = None,
    ) -> tuple[TableStats, ...]:
        """Fragments, rows without an index, versions and bytes of every table of a branch or an older commit."""
        return tuple(table_stats(self.view_of(branch, snapshot, as_of)[0]))
