"""What is synced beside writers who remove files of their own meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest
from storage_helpers import people

from omnigraph.base.errors import Unavailable
from omnigraph.storage.durable import _sync, sync_place


def test_a_file_that_its_owner_removes_while_a_folder_is_synced_is_not_missed(tmp_path: Path) -> None:
    """A name that leads nowhere is what a walk has seen and an open does not find."""
    table = people(tmp_path, None)
    folder = Path(table.ref.uri, "data")
    (folder / "removed.lance").symlink_to(folder / "nowhere")
    assert table.ref.root.syncs
    sync_place(table.ref, "")
    with pytest.raises(Unavailable, match=r"removed\.lance"):
        _sync(table.ref, ["data/removed.lance"])
