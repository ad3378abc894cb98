"""Lance branches of one dataset: made, listed, removed. What a branch means is decided by the manifest."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote
from uuid import uuid4

import lance
import orjson

from omnigraph.base.clock import now_us
from omnigraph.base.errors import Conflict, NotFound
from omnigraph.storage.durable import sync_name, sync_place, sync_version
from omnigraph.storage.failures import Unreadable, translated
from omnigraph.storage.files import lies_inside, owner_of
from omnigraph.storage.places import Root
from omnigraph.storage.tables import Table, TableRef, has_version, newest_number, open_newest, open_table

INCARNATION = "omnigraph.incarnation"
_REFERENCES = "_refs/branches"
_RESPELLED = frozenset('\\{}^%`]">[~<#|*')
_commit = lance.LanceDataset.commit


@dataclass(frozen=True)
class BranchRef:
    """One Lance branch as its reference file tells."""

    name: str
    parent_branch: str | None
    parent_version: int
    incarnation: str
    """Differs between any two branches that ever had the same name."""


def list_branches(ref: TableRef) -> dict[str, BranchRef]:
    with translated(f"list branches of {ref.location}"):
        try:
            found: dict[str, Any] = open_newest(ref.main).dataset.branches.list()
        except ValueError:
            # One of them was deleted between Lance's listing and its reading.
            return references(ref)
    return {
        name: _branch(name, b["parent_branch"], b["parent_version"], b.get("metadata"), b.get("branch_identifier"))
        for name, b in found.items()
    }


def references(ref: TableRef) -> dict[str, BranchRef]:
    """The branches that have a reference, read one by one; the table itself need not be there."""
    found = {name: read_branch(ref, name) for name in branch_files(ref)}
    return {name: branch for name, branch in found.items() if branch is not None}


def branch_files(ref: TableRef) -> list[str]:
    """The names of branches by one listing; the table itself need not open."""
    keys = ref.root.objects.list(f"{ref.location}/{_REFERENCES}")
    return [unquote(key.rsplit("/", 1)[1].removesuffix(".json")) for key in keys if key.endswith(".json")]


def read_branch(ref: TableRef, name: str) -> BranchRef | None:
    """One branch, by one read; None when there is no branch of that name."""
    key = reference_key(ref, name)
    found = ref.root.objects.get(key)
    if found is None:
        return None
    try:
        told = orjson.loads(found.data)
        identifier = (told.get("identifier") or {}).get("version_mapping")
        return _branch(name, told["parentBranch"], told["parentVersion"], told.get("metadata"), identifier)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Unreadable(f"{key} is no reference of a branch: {error}", "Run omnigraph verify.") from error


def is_still(ref: TableRef, known: BranchRef) -> bool:
    """Whether a branch that was listed is there; one that was deleted may have been made again under its name.

    Its reference goes before its files do, so whoever misses a file of a branch that still is, found damage.
    """
    found = read_branch(ref, known.name)
    return found is not None and found.incarnation == known.incarnation


def reference_key(ref: TableRef, name: str) -> str:
    """The object below the root that makes a branch of the table exist."""
    return f"{ref.location}/{_reference(name)}"


def _reference(name: str) -> str:
    return f"{_REFERENCES}/{quote(name, safe='')}.json"


def _branch(name: str, parent: str | None, version: Any, metadata: Any, identifier: Any) -> BranchRef:
    own = str(identifier[-1][1]) if identifier else ""
    return BranchRef(name, parent, int(version), (metadata or {}).get(INCARNATION) or own)


def fork_branch_from_state(ref: TableRef, source_branch: str | None, target_branch: str, source_version: int) -> Table:
    """A new Lance branch of the table at `source_version`; no data is copied."""
    if read_branch(ref, target_branch) is not None:
        raise Conflict(f"{ref.location} already has a branch '{target_branch}'")
    source = open_table(TableRef(ref.root, ref.location, source_branch), source_version)
    with translated(f"fork {ref.location}"):
        with _without_twin(ref):
            _create(source, target_branch)
        sync_place(TableRef(ref.root, ref.location, target_branch), "")
        sync_name(ref.main, _reference(target_branch))
    return open_table(TableRef(ref.root, ref.location, target_branch), None)


def _create(source: Table, name: str) -> None:
    ref, made = source.ref, TableRef(source.ref.root, source.ref.location, name)
    try:
        source.dataset.create_branch(name, (ref.branch or "main", source.version))
    except OSError:
        # All but the reference was written, if it is only the twin of the place that cannot be.
        if twin_of(ref.root) is None or not has_version(made, source.version):
            raise
        version_file = ref.root.objects.get(made.version_file(source.version))
        parent = ref.root.objects.get(reference_key(ref, ref.branch)) if ref.branch is not None else None
        ancestors = orjson.loads(parent.data)["identifier"]["version_mapping"] if parent is not None else []
        told = {
            "parentBranch": ref.branch,
            "identifier": {"version_mapping": [*ancestors, [source.version, uuid4().hex]]},
            "parentVersion": source.version,
            "createAt": now_us() // 1_000_000,
            "manifestSize": len(version_file.data) if version_file is not None else 0,
            "metadata": {},
        }
        if ref.root.objects.put_if_absent(reference_key(ref, name), orjson.dumps(told)) is None:
            raise


def twin_of(root: Root) -> str | None:
    """The directory that Lance takes for a local graph's when it writes a reference; None where it is the same.

    It spells some characters in another way and does not read them back: `/data/%C3%A9` for `/data/é`.
    """
    twin = "".join(f"%{ord(c):02X}" if c in _RESPELLED else c if c.isascii() else quote(c) for c in root.uri)
    return twin if root.is_local and twin != root.uri else None


@contextmanager
def _without_twin(ref: TableRef) -> Iterator[None]:
    """Empty directories that Lance makes beside the graph while it makes a branch go again."""
    twin = twin_of(ref.root)
    made: list[str] = []
    path = f"{twin}/{ref.location}/{_REFERENCES}" if twin is not None else ""
    while path and not os.path.lexists(path):
        made.append(path)
        path = os.path.dirname(path)
    try:
        yield
    finally:
        with suppress(OSError):
            for path in made:
                os.rmdir(path)


def delete_branch(ref: TableRef, name: str) -> None:
    """Its reference goes first, so a branch that is half deleted is in no list."""
    around = [n for n in list_branches(ref) if lies_inside(name, n)]
    if around:
        raise Conflict(
            f"the files of branch '{name}' of {ref.location} lie inside those of branch '{around[0]}'",
            "Nothing was deleted. Delete the other branch first.",
        )
    with translated(f"delete branch {name} of {ref.location}"):
        try:
            open_table(ref.main, None).dataset.branches.delete(name)
        except ValueError as error:
            raise NotFound(f"{ref.location} has no branch '{name}'") from error
        sync_name(ref.main, _reference(name))


def remove_leftovers(ref: TableRef) -> int:
    """Remove what lies where a branch without a reference would be; the newest version number found there, or 0.

    The folder of `team` is also the way to that of `team/x`: what belongs to another branch stays.
    """
    assert ref.branch is not None
    newest = newest_number(ref)
    if not newest:
        return 0
    related = [n for n in list_branches(ref) if n.startswith(f"{ref.branch}/") or ref.branch.startswith(f"{n}/")]
    if not related:
        ref.root.objects.remove_tree(ref.path)
        return newest
    names = [*related, ref.branch]
    found = [file.key for file in ref.root.objects.walk(ref.path)]
    mine = [key for key in found if owner_of(key.removeprefix(f"{ref.location}/"), names)[0] == ref.branch]
    ref.root.objects.delete_files(mine)
    return newest


def raise_above(ref: TableRef, version: int) -> Table:
    """Restore a branch to itself until its number is higher than `version`; content is unchanged.

    Lance refuses a commit prepared at a version below a restore, so nothing prepared on an earlier branch of the same
    name can land here.
    """
    table = open_table(ref, None)
    with translated(f"fence {ref.path}"):
        while table.version <= version:
            transaction = lance.Transaction(table.version, lance.LanceOperation.Restore(table.version))
            table = Table(ref, _commit(table.dataset, transaction, max_retries=0, detached=False))
        sync_version(table)
    return table
