"""Keeps the manifest quick: its fragments are folded together, its content never changes."""

from __future__ import annotations

from omnigraph.manifest.store import BranchState, ManifestStore
from omnigraph.storage.ledger import compact_now


def compact_manifest(manifest: ManifestStore, state: BranchState, fragments_max: int) -> bool:
    """Compact the branch's manifest when it has gathered `fragments_max` fragments; whether it was done."""
    if state.table.fragment_count() < fragments_max:
        return False
    return compact_now(manifest.ref(state.branch))
