"""Commits as drawn lines: each file of `drawings` is the commits, children first, and what is to be seen of them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from omnigraph.cli.drawing import ASCII, UNICODE, Node, Row, draw

FILES = sorted(Path(__file__).with_name("drawings").glob("*.txt"))
UP, DOWN, LEFT, RIGHT = 1, 2, 4, 8


@dataclass(frozen=True)
class Case:
    """`first` is the tip of the leftmost line, `beyond` what exists and is not drawn."""

    nodes: list[Node]
    first: str | None
    beyond: tuple[str, ...]
    unicode: bool
    expected: str


def read_case(path: Path) -> Case:
    """Above the line of dashes `name: parents` and settings such as `first=m3`, below it the drawing."""
    given, _, expected = path.read_text(encoding="utf-8").partition("---\n")
    nodes, told = [], {"first": "", "beyond": "", "ascii": ""}
    for line in given.splitlines():
        if line.startswith("#"):
            continue
        if "=" in line:
            name, _, value = line.partition("=")
            told[name] = value
        else:
            name, _, parents = line.partition(":")
            nodes.append(Node(name, tuple(parents.split())))
    return Case(nodes, told["first"] or None, tuple(told["beyond"].split()), not told["ascii"], expected)


def shown(rows: Iterator[Row]) -> str:
    lines = (f"{row.text} {row.node or ''}{' (gone)' if row.is_missing else ''}".rstrip() for row in rows)
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_a_history_is_drawn_as_its_file_shows(path: Path) -> None:
    case = read_case(path)
    assert shown(draw(case.nodes, case.first, case.beyond, case.unicode)) == case.expected


def random_history(chance: random.Random, size: int, lines: int) -> list[Node]:
    """Commits on several lines that fork and merge at random, children first."""
    heads: list[str] = ["c0"]
    nodes = [Node("c0")]
    for number in range(1, size):
        name = f"c{number}"
        line = chance.randrange(min(lines, len(heads) + 1))
        start = chance.choice(heads) if line == len(heads) else heads[line]
        other = chance.choice(heads)
        merges = other != start and chance.random() < 0.3
        nodes.append(Node(name, (start, other) if merges else (start,)))
        if line == len(heads):
            heads.append(name)
        else:
            heads[line] = name
    return nodes[::-1]


def followed(rows: list[Row], at: int, column: int) -> set[str]:
    """The commits that the lines leaving a node downwards lead to, found by following what is drawn."""
    glyphs = {text: sides for sides, text in UNICODE.items()}
    found: set[str] = set()
    # A line is where it is and which side it came in by; it goes straight over a crossing.
    waiting, seen = [(at + 1, column, UP)], set()
    while waiting:
        row, place, came = waiting.pop()
        if (row, place, came) in seen or row >= len(rows):
            continue
        seen.add((row, place, came))
        text = rows[row].text
        here = text[place] if place < len(text) else " "
        if here in "●○":
            if came == UP:
                found.add(str(rows[row].node))
            continue
        sides = glyphs[here]
        assert sides & came, f"a line breaks off at row {row}, column {place}"
        leave = sides & ~came
        if sides == UP | DOWN | LEFT | RIGHT:
            leave = {UP: DOWN, LEFT: RIGHT, RIGHT: LEFT}[came]
        for side in (DOWN, LEFT, RIGHT):
            if leave & side and not (side == DOWN and came == DOWN):
                step = {DOWN: (1, 0, UP), LEFT: (0, -1, RIGHT), RIGHT: (0, 1, LEFT)}[side]
                waiting.append((row + step[0], place + step[1], step[2]))
    return found


@pytest.mark.parametrize("seed", range(40))
def test_following_the_lines_from_any_commit_leads_to_its_parents(seed: int) -> None:
    chance = random.Random(seed)
    nodes = random_history(chance, chance.randrange(2, 40), chance.randrange(1, 6))
    first = chance.choice([None, nodes[0].id])
    rows = list(draw(nodes, first))
    assert [row.node for row in rows if row.node is not None] == [node.id for node in nodes]
    for node in nodes:
        at = next(i for i, row in enumerate(rows) if row.node == node.id)
        column = next(i for i, piece in enumerate(rows[at].pieces) if piece.text == "●")
        if node.parents:
            assert set(node.parents) <= followed(rows, at, column), f"{node.id} of {shown(iter(rows))}"


@pytest.mark.parametrize("seed", range(10))
def test_plain_characters_draw_the_same_as_the_others(seed: int) -> None:
    nodes = random_history(random.Random(seed), 30, 4)
    table = str.maketrans({**{UNICODE[k]: ASCII[k] for k in UNICODE}, "●": "*", "○": "o"})
    assert shown(draw(nodes)).translate(table) == shown(draw(nodes, unicode=False))
    assert shown(draw(nodes, unicode=False)).isascii()


def test_a_long_history_stays_as_narrow_as_its_branches() -> None:
    nodes = [Node(f"c{n}", (f"c{n - 1}",)) for n in range(9_999, 0, -1)] + [Node("c0")]
    rows = list(draw(nodes))
    assert len(rows) == 10_000
    assert {row.text for row in rows} == {"●"}
    busy = random_history(random.Random(1), 5_000, 5)
    # Five heads and the lines of merges that still lead to an older commit.
    assert max(len(row.pieces) for row in draw(busy)) < 60


def test_nothing_is_drawn_of_no_commits() -> None:
    assert list(draw([], "main")) == []
