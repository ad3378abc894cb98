"""What a handle tells of changes: between targets, of commits, of one entity, along a branch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, islice

import orjson

from omnigraph.base.errors import BadRequest, NotFound
from omnigraph.commit.context import CommitContext
from omnigraph.engine.changes.blocks import Allowance, commit_block
from omnigraph.engine.changes.chain import Chain
from omnigraph.engine.changes.desk import Desk
from omnigraph.engine.changes.feed import Feed, Poll
from omnigraph.engine.changes.history import history_of
from omnigraph.engine.changes.model import Block, ChangeFilter, ChangeSet, FeedPage, Past
from omnigraph.engine.changes.net import NetDiff
from omnigraph.engine.export import export
from omnigraph.engine.targets import resolve
from omnigraph.engine.view import Current
from omnigraph.graph_reads import OpenMode, Reads
from omnigraph.lang.diagnostics import did_you_mean
from omnigraph.manifest.store import BranchState


class History(Reads):
    """The part of a graph handle that compares. Nothing here changes anything."""

    def __init__(self, context: CommitContext, mode: OpenMode) -> None:
        super().__init__(context, mode)
        self._desk = Desk(context.settings)

    def diff(
        self,
        from_target: str,
        to_target: str,
        *,
        kinds: Iterable[str] = (),
        type_names: Iterable[str] = (),
        ops: Iterable[str] = (),
        stats_only: bool = False,
    ) -> ChangeSet:
        """What `to_target` has otherwise than `from_target`: branches, tags, commit ids or `NAME~n`, on any branches.

        With `stats_only` no change is listed, only counted.
        """
        found = self.net_diff(from_target, to_target, kinds=kinds, type_names=type_names, ops=ops)
        return found.change_set(stats_only)

    def net_diff(
        self,
        from_target: str,
        to_target: str,
        *,
        kinds: Iterable[str] = (),
        type_names: Iterable[str] = (),
        ops: Iterable[str] = (),
    ) -> NetDiff:
        """The same to be read change by change, however many there are."""
        wanted = ChangeFilter.of(kinds, type_names, ops)
        one, two = self.snapshot_of(from_target), self.snapshot_of(to_target)
        return NetDiff(self.current(), one, two, wanted, self.settings)

    def commit_changes(
        self,
        commit_id: str,
        *,
        kinds: Iterable[str] = (),
        type_names: Iterable[str] = (),
        ops: Iterable[str] = (),
        limit: int | None = None,
        page_bytes: int | None = None,
        page_token: str | None = None,
    ) -> Block:
        """A commit against its first parent, with the images before and after; the next page by `next_page_token`.

        Any target names a commit: its id, a tag, `main~1`.
        """
        wanted = ChangeFilter.of(kinds, type_names, ops)
        room = Allowance.of(limit, page_bytes)
        found = resolve(self._ctx.manifest, commit_id)
        past = self._chain(self._ctx.manifest.state(found.through))
        place = past.place(found.commit.graph_commit_id)
        if place is None:
            raise NotFound(f"commit '{commit_id}' is not in the history of a branch", "See omnigraph commit list.")
        return commit_block(past, place, wanted, self._desk, room, page_token)

    def history(self, type: str, id: str, *, branch: str | None = None, limit: int | None = None) -> list[Past]:
        """The commits that changed one node or edge, newest first; `type` is `Person`, or `node:Person` where needed.

        The last one is the first insert, or says that cleanup removed what is older.
        """
        if limit is not None and limit < 1:
            raise BadRequest(f"limit is {limit}, it must be at least 1")
        try:
            id.encode()
        except UnicodeEncodeError:
            raise BadRequest("the id is not valid Unicode text", "No node or edge has such an id.") from None
        past = self._chain(self._ctx.manifest.state(self._on(branch)))
        return list(islice(history_of(past, _table_key(past.current, type), id), limit))

    def changes_poll(
        self,
        *,
        branch: str | None = None,
        start: str | None = None,
        cursor: str | None = None,
        page_token: str | None = None,
        kinds: Iterable[str] = (),
        type_names: Iterable[str] = (),
        ops: Iterable[str] = (),
        commits: int | None = None,
        limit: int | None = None,
        page_bytes: int | None = None,
    ) -> FeedPage:
        """The next changes along a branch; hand its token or cursor back to go on.

        `start` is `now` (the default), `beginning` or `after:COMMIT_ID`; later polls give `cursor` or `page_token`.
        """
        wanted = ChangeFilter.of(kinds, type_names, ops)
        asked = Poll(wanted, start, cursor, page_token, commits, limit, page_bytes)
        return self._feed(self._ctx.manifest.state(self._on(branch))).poll(asked)

    def changes_baseline(
        self, *, branch: str | None = None, kinds: Iterable[str] = (), type_names: Iterable[str] = ()
    ) -> Iterator[bytes]:
        """The head of a branch as NDJSON, and as its last line the commit and the cursor that goes on from there.

        Without that line it is incomplete. The cursor belongs to the same filter.
        """
        wanted = ChangeFilter.of(kinds, type_names)
        state = self._ctx.manifest.state(self._on(branch))
        feed, past = self._feed(state), self._chain(state)
        wanted.refuse_unknown(past.known_keys)
        whole = past.current.view(state.snapshot(), state.incarnation)
        tables = {key: entry for key, entry in whole.entries.items() if wanted.wants_table(key)}
        snapshot = replace(whole.snapshot, tables=tables)
        view = replace(whole, snapshot=snapshot)
        told = {"snapshot_commit_id": snapshot.graph_commit_id, "resume_cursor": feed.cursor(wanted, feed.head)}
        return chain(export(view, (), self.settings), [orjson.dumps({"baseline": told}) + b"\n"])

    def _chain(self, state: BranchState) -> Chain:
        return Chain(self._ctx.manifest, state, self.current(state))

    def _feed(self, state: BranchState) -> Feed:
        genesis = self._ctx.manifest.remembered(None).incarnation
        return Feed(self._chain(state), genesis, self._desk)


def _table_key(current: Current, type: str) -> str:
    if type in current.entries:
        return type
    found = [key for key in current.entries if key.partition(":")[2] == type]
    if len(found) > 1:
        raise BadRequest(f"'{type}' is the name of a node type and of an edge type", f"Use {' or '.join(found)}.")
    if not found:
        names = {name for key in current.entries for name in (key, key.partition(":")[2])}
        raise NotFound(f"unknown type '{type}'", did_you_mean(type, names) or "See omnigraph schema show.")
    return found[0]
