"""How far the tables of a deleted branch had come, so that a new branch of the same name starts beyond it.

A sleeping writer may hold handles of the deleted branch. What it commits late must not fit on the new one.
"""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from omnigraph.manifest import layout
from omnigraph.storage.objects import ObjectStore


def fence_of(objects: ObjectStore, branch: str) -> dict[str, int]:
    """The newest version number any branch of this name reached, by table location."""
    found = objects.get(layout.fence_key(branch))
    if found is None:
        return {}
    tables = orjson.loads(found.data)["tables"]
    return {str(location): int(version) for location, version in tables.items()}


def raise_fence(objects: ObjectStore, branch: str, heads: Mapping[str, int]) -> None:
    """Remember these numbers, and every higher one remembered before."""
    known = fence_of(objects, branch)
    tables = {location: max(known.get(location, 0), heads.get(location, 0)) for location in {*known, *heads}}
    objects.put(layout.fence_key(branch), orjson.dumps({"branch": branch, "tables": tables}))
