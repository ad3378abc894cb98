"""Who may fill the place a clone goes to: it is empty, or holds what an interrupted clone of the same graph left.

Holds:
  1. Two clones never fill one place at once: the lock of branch control of the place is held all the time.
  2. A copy that somebody has written to since is a graph like any other: no clone touches it again.
  3. While the claim is there and no manifest is, the place opens as nothing, and says what to do.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import orjson

from omnigraph.base.clock import iso_us, now_us
from omnigraph.base.errors import BadRequest, Conflict
from omnigraph.base.failpoints import reach
from omnigraph.commit.context import CommitContext
from omnigraph.commit.locks import HeldLock
from omnigraph.manifest import layout
from omnigraph.storage.files import versions_of
from omnigraph.storage.places import Root, probe_store

_ELSEWHERE = "Choose a place that is empty or does not exist."


@dataclass(frozen=True)
class Claim:
    """`resumed`: an earlier clone left something here. `finished`: it had done everything but saying so."""

    lock: HeldLock
    resumed: bool = False
    finished: bool = False


def refuse_same_place(source: Root, target: Root) -> None:
    one, other = _plain(source), _plain(target)
    if one == other:
        raise BadRequest(f"'{target.uri}' is the graph itself", "Name another place for the copy.")
    if f"{other}/".startswith(f"{one}/"):
        raise BadRequest(f"'{target.uri}' lies inside the graph '{source.uri}'", _ELSEWHERE)
    if f"{one}/".startswith(f"{other}/"):
        raise BadRequest(f"the graph '{source.uri}' lies inside '{target.uri}'", _ELSEWHERE)


def _plain(root: Root) -> str:
    return os.path.realpath(root.uri) if root.is_local else root.uri.rstrip("/")


@contextmanager
def claimed(target: CommitContext, identity: str) -> Iterator[Claim]:
    """Hold the place; `identity` tells graphs apart, wherever they lie. The claim stays until `release`."""
    _refuse_taken(target, identity)
    probe_store(target.root)
    with target.locks.hold(layout.BRANCH_CONTROL_LOCK) as lock:
        _refuse_taken(target, identity)
        data = orjson.dumps({"identity": identity, "claimed_at": iso_us(now_us())})
        made = target.objects.put_if_absent(layout.CLONE_CLAIM, data) is not None
        if made and target.objects.exists(layout.INIT_CLAIM):
            # Each claims first and then looks for the other's claim, so of two at once one sees it.
            release(target)
            raise Conflict(f"'{target.root.uri}' is being initialized", _ELSEWHERE)
        reach("clone.claimed")
        finished = not made and target.manifest.exists()
        if finished and len(versions_of(target.manifest.ref())) > 1:
            # A clone places one version of it: whoever wrote more has taken the copy into use.
            release(target)
            raise Conflict(f"'{target.root.uri}' is a graph already", _ELSEWHERE)
        yield Claim(lock, not made, finished)


def release(target: CommitContext) -> None:
    target.objects.delete(layout.CLONE_CLAIM)


def _refuse_taken(target: CommitContext, identity: str) -> None:
    uri = target.root.uri
    if target.root.is_local and os.path.exists(uri) and not os.path.isdir(uri):
        raise BadRequest(f"'{uri}' is a file, not a directory", "Choose another place for the copy.")
    held = target.objects.get(layout.CLONE_CLAIM)
    if held is not None:
        if _identity(held.data) != identity:
            raise Conflict(f"'{uri}' holds an unfinished clone of another graph", "Remove it, or choose another place.")
        return
    if target.manifest.exists():
        raise Conflict(f"'{uri}' is a graph already", _ELSEWHERE)
    found = next((name for name in _names(target.root) if name.split("/", 1)[0] != layout.LOCK_DIR), None)
    if found is not None:
        raise Conflict(f"'{uri}' is not empty: it has {found}", _ELSEWHERE)


def _names(root: Root) -> Iterable[str]:
    """What lies there. Folders count on a disk; on a store they are no more than names that were used once."""
    return root.objects.list("") if root.is_local else (file.key for file in root.objects.walk(""))


def _identity(data: bytes) -> str:
    try:
        return str(orjson.loads(data)["identity"])
    except (ValueError, KeyError, TypeError):
        return ""
