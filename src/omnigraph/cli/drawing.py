"""Commits drawn as lines that fork and meet. Pure: what is drawn depends on the nodes alone.

Holds for every drawing:
  1. Every node has one row; the lines between a node and its parents are unbroken.
  2. A line ends at the commit it leads to, at a mark for a commit that no branch has, or at the last row.
  3. `┼` is always two lines that cross; lines that meet look like `├ ┤ ┬ ┴ ╭ ╮ ╰ ╯`.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass

_UP, _DOWN, _LEFT, _RIGHT = 1, 2, 4, 8
_THROUGH = _UP | _DOWN
_ALONG = _LEFT | _RIGHT
UNICODE: Mapping[int, str] = {
    0: " ",
    _THROUGH: "│",
    _ALONG: "─",
    _DOWN | _RIGHT: "╭",
    _DOWN | _LEFT: "╮",
    _UP | _RIGHT: "╰",
    _UP | _LEFT: "╯",
    _THROUGH | _RIGHT: "├",
    _THROUGH | _LEFT: "┤",
    _DOWN | _ALONG: "┬",
    _UP | _ALONG: "┴",
    _THROUGH | _ALONG: "┼",
}
ASCII: Mapping[int, str] = dict(zip(UNICODE, " |-..''||.'+", strict=True))
_MARKS = {True: "●○", False: "*o"}


@dataclass(frozen=True)
class Node:
    """A commit to draw; the first parent first."""

    id: str
    parents: tuple[str, ...] = ()


@dataclass(frozen=True)
class Piece:
    """One character of a row and the number of the line it belongs to."""

    text: str
    lane: int


@dataclass(frozen=True)
class Row:
    """A row of the drawing. `node`: the commit it shows; `is_missing`: one that no branch has."""

    pieces: tuple[Piece, ...]
    node: str | None = None
    is_missing: bool = False

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self.pieces)


def draw(
    nodes: Sequence[Node], first: str | None = None, beyond: Collection[str] = (), unicode: bool = True
) -> Iterator[Row]:
    """The rows of a drawing of nodes that come children before parents.

    `first` is the tip of the leftmost line. `beyond` are parents that exist and are not drawn: their lines go on.
    """
    drawn = {node.id for node in nodes}
    lanes = _Lanes([first] if first in drawn else [], first, unicode)
    reachable = drawn | {*beyond}
    for node in nodes:
        column = yield from lanes.reach(node.id)
        yield lanes.marked(column, node.id)
        yield from lanes.leave(column, node.parents, reachable)


@dataclass
class _Lanes:
    """Which commit each line leads to; None where there is no line."""

    ahead: list[str | None]
    kept_for: str | None
    """A tip whose line is not drawn yet; its lane is the first."""
    unicode: bool
    ended: int | None = None
    """A lane whose line just ended; one that begins right below would look like its continuation."""

    def reach(self, node: str) -> Generator[Row, None, int]:
        """Let every line that leads to a node meet; its lane."""
        columns = [i for i, ahead in enumerate(self.ahead) if ahead == node]
        if not columns:
            return self._free(0, node)
        column, others = columns[0], columns[1:]
        if others:
            sides = self._sides()
            for other in others:
                sides[other] = _UP
            if self._is_unseen(column):
                sides[column] = _DOWN
            _join(sides, column, others[-1])
            yield self._row(sides, others[-1])
            for other in others:
                self.ahead[other] = None
        if node == self.kept_for:
            self.kept_for = None
        self._trim()
        return column

    def marked(self, column: int, node: str, is_missing: bool = False) -> Row:
        row = self._row(self._sides(), column)
        mark = Piece(_MARKS[self.unicode][is_missing], column)
        pieces = (*row.pieces[: 2 * column], mark, *row.pieces[2 * column + 1 :])
        return Row(pieces, node, is_missing)

    def leave(self, column: int, parents: tuple[str, ...], reachable: Collection[str]) -> Iterator[Row]:
        """Lead the line on to the first parent and begin, or join, the lines to the others."""
        self.ended = None
        missing: list[tuple[int, str]] = []
        for parent in parents[1:]:
            sides = self._sides()
            known = next((i for i, ahead in enumerate(self.ahead) if ahead == parent and i != column), None)
            lane = self._free(column + 1, parent) if known is None else known
            sides += [0] * (lane + 1 - len(sides))
            if known is None or self._is_unseen(lane):
                sides[lane] = _DOWN
                self.kept_for = None if parent == self.kept_for else self.kept_for
            _join(sides, min(column, lane), max(column, lane))
            yield self._row(sides, lane)
            if parent not in reachable:
                missing.append((lane, parent))
        self.ahead[column] = parents[0] if parents else None
        if parents and parents[0] not in reachable:
            missing.append((column, parents[0]))
        for lane, parent in missing:
            yield self.marked(lane, parent, is_missing=True)
            self.ahead[lane] = None
            self.ended = lane
        if not parents:
            self.ended = column
        self._trim()

    def _free(self, start: int, node: str) -> int:
        for lane in range(start, len(self.ahead)):
            if self.ahead[lane] is None and lane != self.ended:
                self.ahead[lane] = node
                return lane
        while len(self.ahead) < start or len(self.ahead) == self.ended:
            self.ahead.append(None)
        self.ahead.append(node)
        return len(self.ahead) - 1

    def _is_unseen(self, lane: int) -> bool:
        return lane == 0 and self.kept_for is not None and self.ahead[0] == self.kept_for

    def _sides(self) -> list[int]:
        return [_THROUGH if ahead is not None and not self._is_unseen(i) else 0 for i, ahead in enumerate(self.ahead)]

    def _trim(self) -> None:
        while self.ahead and self.ahead[-1] is None:
            self.ahead.pop()

    def _row(self, sides: list[int], drawn: int) -> Row:
        """`drawn`: the lane whose line runs sideways here, if one does."""
        glyphs = UNICODE if self.unicode else ASCII
        pieces: list[Piece] = []
        for lane, here in enumerate(sides):
            is_along = here in (_ALONG, 0)
            pieces.append(Piece(glyphs[here], drawn if is_along else lane))
            if lane + 1 < len(sides):
                pieces.append(Piece(glyphs[_ALONG if here & _RIGHT else 0], drawn))
        return Row(tuple(pieces))


def _join(sides: list[int], left: int, right: int) -> None:
    for lane in range(left, right):
        sides[lane] |= _RIGHT
        sides[lane + 1] |= _LEFT
