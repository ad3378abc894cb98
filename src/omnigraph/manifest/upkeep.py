"""Keeps the manifest and the commit tables quick: their fragments are folded together, their content never changes."""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.manifest import layout
from omnigraph.manifest.store import BranchState, ManifestStore
from omnigraph.storage.ledger import compact_now
from omnigraph.storage.places import Root
from omnigraph.storage.tables import TableRef, open_newest, table_exists


def compact_manifest(manifest: ManifestStore, state: BranchState, fragments_max: int) -> bool:
    """Compact the branch's manifest when it has gathered `fragments_max` fragments; whether it was done."""
    if state.table.fragment_count() < fragments_max:
        return False
    return compact_now(manifest.ref(state.branch))


@dataclass(frozen=True)
class Folded:
    """A table with its number of fragments before and after, and its version afterwards."""

    name: str
    before: int
    after: int
    version: int


def fold_manifest(manifest: ManifestStore, state: BranchState) -> Folded:
    """Compact the branch's manifest now. The caller holds the branch lock."""
    return _folded(layout.MANIFEST, manifest.ref(state.branch))


def fold_derived(root: Root, branch: str | None) -> list[Folded]:
    """Compact the commit table of the branch and those that all branches share."""
    refs = [TableRef(root, layout.COMMITS, branch)]
    refs += [TableRef(root, name) for name in (layout.COMMIT_ACTORS, layout.RECOVERIES)]
    return [_folded(ref.location, ref) for ref in refs if table_exists(ref)]


def _folded(name: str, ref: TableRef) -> Folded:
    before = open_newest(ref)
    if before.fragment_count() < 2 or not compact_now(ref):
        return Folded(name, before.fragment_count(), before.fragment_count(), before.version)
    after = open_newest(ref)
    return Folded(name, before.fragment_count(), after.fragment_count(), after.version)
