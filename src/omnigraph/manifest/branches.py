"""Graph branches as the manifest knows them: names, creation, listing. The manifest alone decides what exists."""

from __future__ import annotations

import re

from omnigraph.base.errors import BadRequest, Conflict, NotFound
from omnigraph.manifest import layout
from omnigraph.manifest.store import ManifestStore
from omnigraph.storage.refs import fork_branch_from_state, read_branch

_SEGMENT = re.compile(r"[A-Za-z0-9._-]+")
_NAME_MAX = 128


def checked_name(name: str, what: str = "branch") -> str:
    """`name` trimmed, or the reason why it cannot name a branch, or what else is named by the same rules."""
    name = name.strip()
    if not name:
        raise BadRequest(f"{what} name cannot be empty")
    if len(name) > _NAME_MAX:
        raise BadRequest(f"{what} name is longer than {_NAME_MAX} characters")
    if name.startswith(layout.SCHEMA_LOCK_BRANCH):
        raise BadRequest(f"'{name}' does not allow internal system ref")
    segments = name.split("/")
    if any(not _SEGMENT.fullmatch(s) or ".." in s or s.endswith(".lock") for s in segments):
        raise BadRequest(
            f"'{name}' is not a {what} name", "Use segments of letters, digits, '.', '_' and '-' joined by '/'."
        )
    return name


def visible_branches(manifest: ManifestStore) -> list[str]:
    """`main` first, then the others sorted; internal ones are left out."""
    others = sorted(n for n in manifest.branches() if n != layout.SCHEMA_LOCK_BRANCH)
    return ["main", *others]


def create_manifest_branch(manifest: ManifestStore, source: str | None, name: str) -> str:
    """A new branch of the manifest at the head of `source`; its incarnation id is returned."""
    refs = manifest.branches()
    if source is not None and source not in refs:
        raise NotFound(f"branch '{source}' not found", "See omnigraph branch list.")
    if name in refs:
        raise Conflict(f"branch '{name}' already exists", "Choose another name, or delete it first.")
    clash = next((n for n in refs if n.startswith(f"{name}/") or name.startswith(f"{n}/")), None)
    if clash is not None:
        raise Conflict(
            f"branch names may not be path ancestors or descendants: '{name}' and '{clash}'",
            "Choose another name, or delete that branch first.",
        )
    state = manifest.state(source)
    fork_branch_from_state(manifest.ref(), source, name, state.version)
    manifest.forget(name)
    made = read_branch(manifest.ref(), name)
    assert made is not None
    return made.incarnation
