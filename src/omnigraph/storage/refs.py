"""Lance branches of one dataset: made, listed, removed. What a branch means is decided by the manifest."""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.base.errors import Conflict, NotFound
from omnigraph.storage.durable import sync_place
from omnigraph.storage.failures import translated
from omnigraph.storage.tables import Table, TableRef, open_table

INCARNATION = "omnigraph.incarnation"


@dataclass(frozen=True)
class BranchRef:
    """One Lance branch as its reference file tells."""

    name: str
    parent_branch: str | None
    parent_version: int
    metadata: dict[str, str]

    @property
    def incarnation(self) -> str | None:
        return self.metadata.get(INCARNATION)


def list_branches(ref: TableRef) -> dict[str, BranchRef]:
    with translated(f"list branches of {ref.location}"):
        found = open_table(ref.main, None).dataset.branches.list()
    return {
        name: BranchRef(name, b["parent_branch"], int(b["parent_version"]), dict(b.get("metadata") or {}))
        for name, b in found.items()
    }


def fork_branch_from_state(ref: TableRef, source_branch: str | None, target_branch: str, source_version: int) -> Table:
    """A new Lance branch of the table at `source_version`; no data is copied."""
    if target_branch in list_branches(ref):
        raise Conflict(f"{ref.location} already has a branch '{target_branch}'")
    source = open_table(TableRef(ref.root, ref.location, source_branch), source_version)
    with translated(f"fork {ref.location}"):
        source.dataset.create_branch(target_branch, (source_branch or "main", source_version))
        sync_place(TableRef(ref.root, ref.location, target_branch), "")
        sync_place(ref.main, "_refs")
    return open_table(TableRef(ref.root, ref.location, target_branch), None)


def set_branch_metadata(ref: TableRef, name: str, metadata: dict[str, str]) -> None:
    with translated(f"annotate branch {name}"):
        open_table(ref.main, None).dataset.branches.replace_metadata(name, metadata)
        sync_place(ref.main, "_refs")


def delete_branch(ref: TableRef, name: str) -> None:
    with translated(f"delete branch {name} of {ref.location}"):
        try:
            open_table(ref.main, None).dataset.branches.delete(name)
        except ValueError as error:
            raise NotFound(f"{ref.location} has no branch '{name}'") from error
