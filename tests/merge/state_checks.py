"""How what a graph tells is held against what the model says."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from state_actions import NEW, Expected
from state_model import COLUMNS, ENDS, Content, Net, Row, net

import omnigraph as og


def in_turn(values: Sequence[Any], start: int) -> Iterator[Any]:
    """All of them over and over, from some place on."""
    begin = start % len(values)
    return itertools.cycle((*values[begin:], *values[:begin]))


def heads(graph: og.Graph) -> dict[str, str | None]:
    return {name: graph.head_commit_id_for_branch(name) for name in graph.branch_list()}


def check_refusal(expected: Expected, error: og.OmniError) -> None:
    assert type(error) in expected.errors, f"expected {expected.errors}, got {type(error).__name__}: {error}"
    if expected.refused is None:
        return
    assert isinstance(error, og.MergeConflicts)
    told = {
        (c["table_key"], c["row_id"], c["kind"], tuple(sorted(c.get("properties", ())))) for c in error.merge_conflicts
    }
    if expected.refused.disputes:
        assert told == expected.refused.disputes
        return
    # Of rows that clash only those the merge brings are named.
    broken = expected.refused.broken
    plain = {(key, id_, kind) for key, id_, kind, _ in told}
    assert plain <= broken
    assert {b for b in broken if b[2] != "unique_violation"} == {b for b in plain if b[2] != "unique_violation"}
    assert {b[0] for b in broken if b[2] == "unique_violation"} == {b[0] for b in plain if b[2] == "unique_violation"}


def settled(expected: Content, found: Content) -> Content:
    """What was expected, with the ids the graph gave to new edges."""
    result = {}
    for key, rows in expected.items():
        new = [row for id_, row in rows.items() if id_.startswith(NEW)]
        kept = {id_: row for id_, row in rows.items() if not id_.startswith(NEW)}
        fresh = {id_: row for id_, row in found[key].items() if id_ not in kept} if new else {}
        assert sorted(map(repr, new)) == sorted(map(repr, fresh.values()))
        result[key] = {**kept, **fresh}
    assert_same(result, found)
    return result


def assert_same(expected: Content, found: Content) -> None:
    unlike = [f"{n.table_key} {n.id_}: expected {n.before}, found {n.after}" for n in net(expected, found)]
    assert not unlike, "; ".join(unlike)


Told = tuple[str, str, str, Row | None, Row | None]


def changed(change: Any) -> Told:
    key = change.table_key
    return key, change.id, change.op, image_row(key, change.before), image_row(key, change.after)


def image_row(key: str, image: Any) -> Row | None:
    if image is None:
        return None
    ends = image.endpoints if key in ENDS else ()
    return (*ends, *(image.properties.get(c) for c in COLUMNS[key] if c not in ("src", "dst")))


def place(told: Told) -> tuple[str, bytes]:
    return told[0], told[1].encode()


def in_order(changes: list[Net]) -> list[Told]:
    return sorted(((n.table_key, n.id_, n.op, n.before, n.after) for n in changes), key=place)
