"""Where two histories met last. Pure: commits in, a commit id out.

Holds at every return:
  1. The base is an ancestor of both heads, or one of them, and no common ancestor descends from it: what both sides
     have had in common is never taken for a change of one of them.
  2. Of several such commits, as criss-cross merges leave them, it is the one nearest to both heads together; of those
     the one with the larger graph version.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Protocol


class Parented(Protocol):
    """A commit, as far as its descent matters."""

    @property
    def graph_commit_id(self) -> str: ...
    @property
    def manifest_version(self) -> int: ...
    @property
    def parent_commit_id(self) -> str | None: ...
    @property
    def merged_parent_commit_id(self) -> str | None: ...


def merge_base(commits: Mapping[str, Parented], ours: str, theirs: str) -> str | None:
    """The commit to compare both sides with, or None for unrelated histories.

    A parent that `commits` does not have, because its branch is gone, is no candidate and leads nowhere.
    """
    from_ours, from_theirs = distances(commits, ours), distances(commits, theirs)
    common = from_ours.keys() & from_theirs.keys()
    below = _ancestors_of(commits, common)
    best = [name for name in common if name not in below]

    def order(name: str) -> tuple[int, int, str]:
        return from_ours[name] + from_theirs[name], -commits[name].manifest_version, name

    return min(best, key=order, default=None)


def distances(commits: Mapping[str, Parented], head: str) -> dict[str, int]:
    """How many steps each ancestor lies away from the head, over all parents."""
    found = {head: 0} if head in commits else {}
    queue = deque(found)
    while queue:
        name = queue.popleft()
        for parent in parents(commits[name]):
            if parent in commits and parent not in found:
                found[parent] = found[name] + 1
                queue.append(parent)
    return found


def parents(commit: Parented) -> tuple[str, ...]:
    return tuple(p for p in (commit.parent_commit_id, commit.merged_parent_commit_id) if p is not None)


def missing_parents(commits: Mapping[str, Parented], heads: Iterable[str]) -> set[str]:
    """Ancestors of the heads that somebody names and `commits` does not have."""
    known = {name for head in heads for name in distances(commits, head)}
    return {parent for name in known for parent in parents(commits[name]) if parent not in commits}


def _ancestors_of(commits: Mapping[str, Parented], common: Iterable[str]) -> set[str]:
    """Those that lie below some common ancestor; whatever lies below one is a common ancestor itself."""
    return {parent for name in common for parent in parents(commits[name])}
