"""A table's versions and files read from outside, for a copy: forks whose base lies elsewhere are read too.

Nothing here opens the data of a fork, so it does not matter whether its base can be reached.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.base.errors import OmniError
from omnigraph.storage.failures import Unreadable, translated
from omnigraph.storage.files import unit_of, versions_of
from omnigraph.storage.objects import Missing
from omnigraph.storage.places import Root
from omnigraph.storage.tables import TableRef, has_version, is_torn
from omnigraph.storage.version_files import index_ids, rebased

_TRIES = 5
_FEW = 16
_PAUSE_S = 0.2


def newest_whole(ref: TableRef) -> int:
    """The newest version that is not torn."""
    for version in sorted(versions_of(ref), reverse=True):
        if not is_torn(ref, version):
            return version
    raise Unreadable(f"no version of {ref.path} can be opened")


def units_at(ref: TableRef, versions: Collection[int]) -> set[str]:
    """What these versions refer to, in whichever folder of the table it lies."""
    wanted = frozenset(versions)
    if len(wanted) <= _FEW:
        return {unit for version in wanted for unit in _units_of(ref, version)}
    for turn in range(1, _TRIES + 1):
        try:
            return _units_of_many(ref, wanted)
        except (OmniError, ValueError) as error:
            # Lance looks at every version there is; one that nobody pins may go while it does.
            if turn == _TRIES:
                raise _unlisted(ref, wanted, error) from error
            time.sleep(_PAUSE_S)
    raise AssertionError("the loop above returns or raises")


def _units_of_many(ref: TableRef, versions: frozenset[int]) -> set[str]:
    units: set[str] = set()
    seen: set[int] = set()
    with translated(f"list the files of {ref.path}"):
        dataset = lance.dataset(ref.uri, version=max(versions), storage_options=ref.options)
        for batch in dataset.tracked_files():
            wanted = batch.filter(pc.is_in(batch.column("version"), value_set=pa.array(sorted(versions), pa.int64())))
            seen.update(pc.unique(wanted.column("version")).to_pylist())
            units |= {unit for path in wanted.column("path").to_pylist() if (unit := unit_of(path)) is not None}
    if seen != versions:
        raise Unreadable(f"what version {min(versions - seen)} refers to is not known")
    # Lance does not list the indexes that a fork has from its base.
    for version in versions if ref.branch is not None else ():
        units |= _index_units(ref, version)
    return units


def _units_of(ref: TableRef, version: int) -> set[str]:
    try:
        with translated(f"open {ref.path}"):
            dataset: Any = lance.dataset(ref.uri, version=version, storage_options=ref.options)
            fragments = [fragment.metadata for fragment in dataset.get_fragments()]
    except (OmniError, ValueError) as error:
        raise _unlisted(ref, [version], error) from error
    paths = [f"data/{file.path}" for fragment in fragments for file in fragment.files]
    paths += [str(f.deletion_file.path(f.id)) for f in fragments if f.deletion_file is not None]
    return {unit for path in paths if (unit := unit_of(path)) is not None} | _index_units(ref, version)


def _index_units(ref: TableRef, version: int) -> set[str]:
    return {f"_indices/{name}" for name in index_ids(version_bytes(ref, version), version)}


def _unlisted(ref: TableRef, versions: Iterable[int], error: Exception) -> OmniError:
    gone = [version for version in versions if not has_version(ref, version)]
    if gone:
        return Missing(f"version {gone[0]} of {ref.path} is missing in '{ref.root.uri}'")
    return Unreadable(f"the files of {ref.path} cannot be listed: {error}")


def version_bytes(ref: TableRef, version: int) -> bytes:
    found = ref.root.objects.get(ref.version_file(version))
    if found is None:
        raise Missing(f"version {version} of {ref.path} is missing in '{ref.root.uri}'")
    return found.data


def moved_version(ref: TableRef, version: int, to: Root) -> bytes:
    """The file of a fork's version as it has to be below another root."""
    return rebased(version_bytes(ref, version), version, lambda base: f"{to.uri}/{place_inside(base, ref.location)}")


def place_inside(base: str, location: str) -> str:
    """Where a recorded base of this table lies below a graph's root, whichever root it was recorded with."""
    path = base.rstrip("/")
    _, tree, branch = path.rpartition(f"/{location}/tree/")
    if tree and branch:
        return f"{location}/tree/{branch}"
    if path.endswith(f"/{location}"):
        return location
    raise Unreadable(f"a fork of {location} has its base at '{base}', which is no place of a graph")
