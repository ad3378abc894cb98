"""The changes along a branch, commit by commit, for readers that come back.

Holds for every poll:
  1. It walks the first-parent chain up to the head seen when the first page of it was asked for.
  2. Handing each answer's token or cursor back gives every later change at least once and none out of order.
  3. A schema boundary is a block without changes, never skipped; history that cleanup removed is an error, never a gap
     that goes unseen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from omnigraph.base.errors import BadRequest, ChangeFeedGap, NotFound, Reclaimed
from omnigraph.engine.changes.blocks import Allowance, CommitDiff, bounded, position_of
from omnigraph.engine.changes.chain import Chain, Shown
from omnigraph.engine.changes.desk import Desk
from omnigraph.engine.changes.model import Block, ChangeFilter, FeedPage
from omnigraph.engine.changes.pairs import Entries
from omnigraph.engine.changes.tokens import CURSOR, PAGE_TOKEN, Position, decode_token, encode_token, rejected
from omnigraph.manifest.store import branch_label

COMMITS, COMMITS_MAX = 128, 512
NOW, BEGINNING, AFTER = "now", "beginning", "after:"


@dataclass(frozen=True)
class Poll:
    """What a reader asks for; at most one of `start`, `cursor` and `page_token`."""

    wanted: ChangeFilter = ChangeFilter()
    start: str | None = None
    cursor: str | None = None
    page_token: str | None = None
    commits: int | None = None
    limit: int | None = None
    page_bytes: int | None = None


@dataclass(frozen=True)
class _Standing:
    """Where a poll begins: all up to `place` was told, and of the next commit all up to `inside`."""

    place: int
    until: int
    inside: Position | None = None


class Feed:
    """One branch at one moment, and the identity its cursors carry."""

    def __init__(self, chain: Chain, genesis_id: str, desk: Desk) -> None:
        self._chain = chain
        self._genesis_id = genesis_id
        self._desk = desk
        if not chain.state.incarnation:
            branch = branch_label(chain.state.branch)
            raise BadRequest(
                f"branch '{branch}' has no identity yet, so no cursor could name it", "Open the graph read-write once."
            )

    def poll(self, asked: Poll) -> FeedPage:
        wanted, commits = asked.wanted, bounded("commits", asked.commits, COMMITS, COMMITS_MAX)
        wanted.refuse_unknown(self._chain.known_keys)
        room = Allowance.of(asked.limit, asked.page_bytes)
        standing = self._standing(asked)
        blocks: list[Block] = []
        place = standing.place
        for parent, shown in self._steps(standing, commits):
            if room.is_spent:
                break
            inside = standing.inside if place == standing.place else None
            try:
                block, is_all = self._block(parent, shown, wanted, room, inside)
            except Reclaimed as error:
                if blocks:
                    break  # What could be read is told first; the next poll meets the gap.
                raise ChangeFeedGap(shown.commit.graph_commit_id, asked.cursor) from error
            if not is_all and not block.changes:
                break  # The page is full: this commit begins the next one.
            blocks.append(block)
            if not is_all:
                return FeedPage(blocks, next_page_token=self._page_token(wanted, place, standing.until, block))
            place += 1
        caught_up = place >= len(self._chain.commits) - 1
        return FeedPage(blocks, cursor=self.cursor(wanted, place), caught_up=caught_up)

    def cursor(self, wanted: ChangeFilter, place: int) -> str:
        """What a later poll hands back to be told what follows the commit at `place`."""
        return encode_token({"k": "cursor", **self._identity(wanted), "c": self._chain.commits[place].graph_commit_id})

    @property
    def head(self) -> int:
        return len(self._chain.commits) - 1

    def _steps(self, standing: _Standing, commits: int) -> Iterator[tuple[Entries, Shown]]:
        last = min(standing.place + commits, standing.until)
        if last <= standing.place:
            return
        shown = self._chain.shown(standing.place, last)
        parent = next(shown)
        for step in shown:
            yield parent.entries, step
            parent = step

    def _block(
        self, parent: Entries, shown: Shown, wanted: ChangeFilter, room: Allowance, inside: Position | None
    ) -> tuple[Block, bool]:
        """The block of a commit as far as it fits, and whether that is all of it."""
        diff = CommitDiff(self._chain.current, parent, shown, wanted)
        if diff.boundary_type is not None:
            return Block(diff.commit, [], boundary="schema"), True
        changes, is_all = diff.page(self._desk, room, inside)
        return Block(diff.commit, changes), is_all

    def _identity(self, wanted: ChangeFilter) -> dict[str, Any]:
        state = self._chain.state
        return {"g": self._genesis_id, "b": branch_label(state.branch), "i": state.incarnation, "f": wanted.digest}

    def _page_token(self, wanted: ChangeFilter, place: int, until: int, block: Block) -> str:
        commits = self._chain.commits
        return encode_token(
            {
                "k": "feed",
                **self._identity(wanted),
                "c": commits[place].graph_commit_id,
                "h": commits[until].graph_commit_id,
                "p": position_of(block.changes[-1]).to_json(),
            }
        )

    def _standing(self, asked: Poll) -> _Standing:
        given = [name for name in ("start", "cursor", "page_token") if getattr(asked, name) is not None]
        if len(given) > 1:
            raise BadRequest(f"{' and '.join(given)} were given together", "Give one of them.")
        if asked.cursor is not None:
            members = self._checked(CURSOR, "cursor", asked.cursor, asked.wanted)
            return _Standing(self._place(CURSOR, members.get("c")), self.head)
        if asked.page_token is not None:
            members = self._checked(PAGE_TOKEN, "feed", asked.page_token, asked.wanted)
            place, until = (self._place(PAGE_TOKEN, members.get(name)) for name in ("c", "h"))
            return _Standing(place, until, Position.from_json(members.get("p")))
        return _Standing(self._started(asked.start or NOW), self.head)

    def _started(self, start: str) -> int:
        if start == NOW:
            return self.head
        if start == BEGINNING:
            return 0
        if not start.startswith(AFTER):
            raise BadRequest(f"unknown start '{start}'", "Use now, beginning or after:COMMIT_ID.")
        commit_id = start.removeprefix(AFTER)
        place = self._chain.place(commit_id)
        if place is None:
            branch = branch_label(self._chain.state.branch)
            raise NotFound(f"commit '{commit_id}' is not in the history of branch '{branch}'", "See omnigraph log.")
        return place

    def _checked(self, what: str, kind: str, token: str, wanted: ChangeFilter) -> dict[str, Any]:
        """The members of a token that was made for this branch and this filter."""
        members, mine = decode_token(what, token), self._identity(wanted)
        if members.get("k") != kind:
            raise rejected(what, "it is a token of another kind")
        if members.get("g") != mine["g"]:
            raise rejected(what, "it belongs to another graph")
        if members.get("b") != mine["b"]:
            hint = f"Poll that branch: --branch {members.get('b')}. For '{mine['b']}' start without a cursor."
            raise rejected(what, f"it belongs to branch '{members.get('b')}'", hint)
        if members.get("i") != mine["i"]:
            raise rejected(what, f"it belongs to an earlier branch of the name '{mine['b']}'")
        if members.get("f") != mine["f"]:
            hint = "Give the same --kind, --type and --op as the poll or baseline it came from, or start anew."
            raise rejected(what, "it was made with another filter", hint)
        return members

    def _place(self, what: str, commit_id: Any) -> int:
        place = self._chain.place(str(commit_id))
        if place is None:
            raise rejected(what, "its commit is not in the history of the branch")
        return place
