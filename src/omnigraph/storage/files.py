"""Which files of a table some version refers to, asked of Lance; what is left was staged and never committed."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow.compute as pc

from omnigraph.storage.failures import Unreadable, translated
from omnigraph.storage.tables import VERSIONS, TableRef, open_table

STAGED_FOLDERS = ("data", "_deletions", "_indices", "_transactions")
"""Where a writer may leave files that no version refers to. Everything else below a table is never staged."""
LANCE_FOLDERS = frozenset({*STAGED_FOLDERS, VERSIONS, "_refs", "tree"})


def unit_of(path: str) -> str | None:
    """What a file below a table's folder stands or falls with; None where nothing is ever staged.

    Large values lie in a folder beside their data file that has its name, and the files of an index in one folder.
    """
    folder, _, below = path.partition("/")
    if folder not in STAGED_FOLDERS or not below:
        return None
    name = below.split("/", 1)[0]
    return f"{folder}/{name.split('.', 1)[0]}" if folder == "data" else f"{folder}/{name}"


def owner_of(path: str, branches: Iterable[str]) -> tuple[str | None, str]:
    """Which branch a file below a table's folder belongs to, and its path below that branch's folder.

    None for main. The folder of `team` is also the way to `team/x`, and `team/data` could be both: the longest name
    that is followed by one of Lance's own folders decides.
    """
    if not path.startswith("tree/"):
        return None, path
    inside = path.removeprefix("tree/")
    for name in sorted((n for n in branches if inside.startswith(f"{n}/")), key=len, reverse=True):
        below = inside[len(name) + 1 :]
        if below.split("/", 1)[0] in LANCE_FOLDERS and "/" in below:
            return name, below
    return None, path


def lies_inside(name: str, other: str) -> bool:
    """Whether the folder of branch `name` lies within one that Lance makes for branch `other`."""
    return name.startswith(f"{other}/") and name[len(other) + 1 :].split("/", 1)[0] in LANCE_FOLDERS


def referenced_units(ref: TableRef) -> set[str]:
    """What the versions of a table, or of one fork of it, refer to, wherever it lies.

    Names are made of random numbers, so a name that any version mentions is kept in every folder.
    """
    listed = {key.rsplit("/", 1)[1] for key in ref.root.objects.list(f"{ref.path}/{VERSIONS}")}
    units: set[str] = set()
    versions: set[str] = set()
    with translated(f"list the files of {ref.path}"):
        for batch in open_table(ref, None).dataset.tracked_files():
            for path in pc.unique(batch.column("path")).to_pylist():
                unit = unit_of(path)
                if unit is not None:
                    units.add(unit)
                elif path.startswith(f"{VERSIONS}/"):
                    versions.add(path.removeprefix(f"{VERSIONS}/"))
    unseen = {name for name in listed if name.endswith(".manifest")} - versions
    unseen = {name for name in unseen if ref.root.objects.exists(f"{ref.path}/{VERSIONS}/{name}")}
    if unseen:
        raise Unreadable(f"{ref.path}: what version file {sorted(unseen)[0]} refers to is not known")
    return units
