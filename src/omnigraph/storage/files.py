"""Which files of a table some version refers to, asked of Lance; what is left was staged and never committed."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.storage.failures import Unreadable, translated
from omnigraph.storage.objects import FoundFile
from omnigraph.storage.tables import ASIDE, VERSIONS, TableRef, has_version, open_table, version_number

STAGED_FOLDERS = ("data", "_deletions", "_indices", "_transactions")
"""Where a writer may leave files that no version refers to. Everything else below a table is never staged."""
LANCE_FOLDERS = frozenset({*STAGED_FOLDERS, VERSIONS, "_refs", "tree"})


def unit_of(path: str) -> str | None:
    """What a file below a table's folder stands or falls with; None where nothing is ever staged.

    Large values lie in a folder beside their data file that has its name, and the files of an index in one folder.
    """
    folder, _, below = path.partition("/")
    if folder == VERSIONS and below.startswith(ASIDE) and below.endswith(".manifest"):
        return path  # what somebody set aside to look at and did not live to take away
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


@dataclass(frozen=True)
class Units:
    """What versions refer to: those that stay, and those that are to go."""

    needed: set[str]
    of_doomed: set[str]


def referenced_units(ref: TableRef) -> set[str]:
    """What the versions of a table, or of one fork of it, refer to, wherever it lies.

    Names are made of random numbers, so a name that any version mentions is kept in every folder.
    """
    return units_without(ref, ()).needed


def units_without(ref: TableRef, doomed: Collection[int]) -> Units:
    """What the versions of a table refer to, told apart by whether the version is to go."""
    listed = set(versions_of(ref))
    units = Units(set(), set())
    seen: set[int] = set()
    going = pa.array(sorted(doomed), pa.int64())
    with translated(f"list the files of {ref.path}"):
        try:
            for batch in open_table(ref, None).dataset.tracked_files():
                seen.update(pc.unique(batch.column("version")).to_pylist())
                goes = pc.is_in(batch.column("version"), value_set=going)
                for into, chosen in ((units.needed, pc.invert(goes)), (units.of_doomed, goes)):
                    paths = pc.unique(batch.column("path").filter(chosen)).to_pylist()
                    into.update(unit for unit in map(unit_of, paths) if unit is not None)
        except ValueError as error:
            raise Unreadable(f"the files of {ref.path} cannot be listed: {error}") from error
    unseen = [v for v in sorted(listed - seen) if has_version(ref, v)]
    if unseen:
        raise Unreadable(f"{ref.path}: what version {unseen[0]} refers to is not known")
    return units


def versions_of(ref: TableRef) -> dict[int, FoundFile]:
    """Every version there is, by its number, and the file that makes it exist."""
    found = {}
    for file in ref.root.objects.walk(f"{ref.path}/{VERSIONS}"):
        version = version_number(file.key)
        if version is not None and ref.version_file(version) == file.key:
            found[version] = file
    return found


def remove_versions(ref: TableRef, versions: Iterable[int]) -> None:
    """Take versions away, oldest first. The caller knows that nobody needs them; their files are still there."""
    ref.root.objects.delete_files([ref.version_file(version) for version in sorted(versions)])
