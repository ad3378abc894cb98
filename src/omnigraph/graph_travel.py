"""How a handle looks back: commits, the log, tags. Nothing here changes anything."""

from __future__ import annotations

from omnigraph.base.moments import Moment
from omnigraph.engine.log import CommitFilter, LogEntry, at_most, branch_history, branch_log, whole_log
from omnigraph.engine.targets import find_commit
from omnigraph.graph_reads import Reads
from omnigraph.manifest.lineage import GraphCommit
from omnigraph.manifest.tags import Tag, list_tags


class Travel(Reads):
    """The looking-back half of a graph handle."""

    def list_commits(
        self,
        branch: str | None = None,
        *,
        actor: str | None = None,
        kind: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        limit: int | None = None,
    ) -> list[GraphCommit]:
        """The history of a branch, newest first: commits that pass every filter given, at most `limit`."""
        history = branch_history(self._ctx.manifest.state(self._on(branch)))
        return at_most(limit, CommitFilter(actor, kind, since, until).chosen(history))

    def get_commit(self, commit_id: str) -> GraphCommit:
        """A commit of any branch, by its id."""
        return find_commit(self._ctx.manifest, commit_id, self._branch).commit

    def head_commit_id_for_branch(self, branch: str | None = None) -> str | None:
        return self._ctx.manifest.state(self._on(branch)).head_id

    def log(self, branch: str | None = None, *, graph: bool = False, limit: int | None = None) -> list[LogEntry]:
        """The history of a branch with the branches and tags that name each commit, newest first.

        With `graph`, the commits of every branch, or of all that `branch` descends from, children before parents.
        """
        if not graph:
            return at_most(limit, branch_log(self._ctx.manifest, self._on(branch)))
        self._on(branch)
        return at_most(limit, whole_log(self._ctx.manifest, branch))

    def tag_list(self) -> list[Tag]:
        """Every tag, by name."""
        return list_tags(self._ctx.objects)
