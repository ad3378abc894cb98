"""The changes of one commit against its first parent, page by page.

Holds for every block:
  1. Nodes come before edges, then by type id, then by entity id.
  2. A page holds as many changes as fit its limits; one that is too large for any page travels alone.
  3. A commit whose properties differ from its parent's, or that dropped a type with rows, is never told as changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import orjson

from omnigraph.base.errors import BadRequest, ChangeDiffRefusal, LimitExceeded
from omnigraph.engine.changes.chain import Chain, Shown
from omnigraph.engine.changes.desk import Desk
from omnigraph.engine.changes.model import Block, Change, ChangeFilter
from omnigraph.engine.changes.pairs import Entries, TablePair, moved_pairs
from omnigraph.engine.changes.tables import OpenPair, open_pair
from omnigraph.engine.changes.tokens import PAGE_TOKEN, Position, decode_token, encode_token, rejected
from omnigraph.engine.view import Current

LIMIT, LIMIT_MAX = 1_000, 8_192
PAGE_BYTES, PAGE_BYTES_MAX = 4 << 20, 32 << 20


@dataclass
class Allowance:
    """What is left of a page."""

    changes: int
    bytes: int
    used: int = 0

    @staticmethod
    def of(limit: int | None, page_bytes: int | None) -> Allowance:
        return Allowance(
            bounded("limit", limit, LIMIT, LIMIT_MAX), bounded("page_bytes", page_bytes, PAGE_BYTES, PAGE_BYTES_MAX)
        )

    def takes(self, change: Change) -> bool:
        """Whether the change still fits; it is counted if so."""
        size = len(orjson.dumps(change.to_json()))
        if self.used and (self.changes < 1 or size > self.bytes):
            return False
        self.changes, self.bytes, self.used = self.changes - 1, self.bytes - size, self.used + 1
        return True

    @property
    def is_spent(self) -> bool:
        return bool(self.used) and (self.changes < 1 or self.bytes < 1)


def bounded(name: str, given: int | None, default: int, most: int) -> int:
    """An option within its bounds."""
    if given is None:
        return default
    if given < 1:
        raise BadRequest(f"{name} is {given}, it must be at least 1")
    if given > most:
        raise LimitExceeded(f"{name} is {given}, at most {most} are given", "Ask for less.", limit=name, value=most)
    return given


class CommitDiff:
    """One commit beside its first parent. Refused, or reclaimed, before anything is told."""

    def __init__(self, current: Current, parent: Entries, shown: Shown, wanted: ChangeFilter) -> None:
        self.commit = shown.commit
        self._wanted = wanted
        pairs = sorted(moved_pairs(parent, shown.entries, current.entries), key=lambda pair: pair.order)
        self._pairs = [open_pair(current.root, pair, current) for pair in pairs]
        self.boundary_type = next((p.pair.table_key.partition(":")[2] for p in self._pairs if _is_boundary(p)), None)

    def page(self, desk: Desk, room: Allowance, after: Position | None = None) -> tuple[list[Change], bool]:
        """As many changes as fit of those that follow a position, and whether they are the last ones."""
        told: list[Change] = []
        for pair in self._pairs:
            if not self._wanted.wants_table(*pair.pair.keys) or (after and pair.pair.order < after.table):
                continue
            here = after if after is not None and pair.pair.order == after.table else None
            with desk.row_changes(pair) as found:
                for change in _following(pair.changes(found.changes, here.floor if here else b""), here):
                    if not self._wanted.wants_op(change.op):
                        continue
                    if not room.takes(change):
                        found.keep()
                        return told, False
                    told.append(change)
        return told, True


def position_of(change: Change) -> Position:
    return Position.at(change.kind == "edge", change.type_id, change.id)


def _following(changes: Iterator[Change], after: Position | None) -> Iterator[Change]:
    """Skip what was told. Of long ids only the beginning is known, so the one itself is waited for."""
    waiting = after is not None
    for change in changes:
        if waiting and after is not None:
            if after.is_here(change.id):
                waiting = False
                continue
            if not after.is_before(change.id):
                continue
            waiting = False
        yield change


def _is_boundary(opened: OpenPair) -> bool:
    return opened.properties_differ or _is_dropped(opened.pair)


def _is_dropped(pair: TablePair) -> bool:
    return pair.after is None and pair.before is not None and pair.before[1].row_count > 0


def commit_block(
    chain: Chain,
    place: int,
    wanted: ChangeFilter,
    desk: Desk,
    room: Allowance,
    page_token: str | None = None,
) -> Block:
    """The changes of the commit at a place of a chain, or a page of them."""
    commit = chain.commits[place]
    wanted.refuse_unknown(chain.known_keys)
    after = _position(page_token, commit.graph_commit_id, wanted)
    if place == 0:
        raise ChangeDiffRefusal(reason="parentless_commit", graph_commit_id=commit.graph_commit_id)
    parent, shown = chain.shown(place - 1, place)
    diff = CommitDiff(chain.current, parent.entries, shown, wanted)
    if diff.boundary_type is not None:
        raise ChangeDiffRefusal(
            reason="schema_boundary", graph_commit_id=commit.graph_commit_id, type_name=diff.boundary_type
        )
    changes, is_all = diff.page(desk, room, after)
    token = None
    if not is_all:
        told = {"k": "page", "c": commit.graph_commit_id, "f": wanted.digest}
        token = encode_token({**told, "p": position_of(changes[-1]).to_json()})
    return Block(commit, changes, next_page_token=token)


def _position(page_token: str | None, commit_id: str, wanted: ChangeFilter) -> Position | None:
    if page_token is None:
        return None
    members = decode_token(PAGE_TOKEN, page_token)
    if members.get("k") != "page":
        raise rejected(PAGE_TOKEN, "it is not one of a commit")
    if members.get("c") != commit_id:
        raise rejected(PAGE_TOKEN, f"it belongs to commit {members.get('c')}")
    if members.get("f") != wanted.digest:
        raise rejected(PAGE_TOKEN, "it was made with another filter")
    return Position.from_json(members.get("p"))
