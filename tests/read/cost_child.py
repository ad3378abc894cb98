"""Reads a graph under strace; what it passes it marks by looking for files that are not there."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import omnigraph as og

TIMES = 5
MARK = "/omnigraph-mark"
POINT = "query q($n: String) { match { $p: Person { name: $n } } return { $p.name, $p.age } }"
HOP = "query q($n: String) { match { $p: Person { name: $n } $p follows $q } return { $q.name } order { $q.name } }"


def marked(name: str, act: Callable[[], object]) -> object:
    os.path.exists(f"{MARK}-begin-{name}")
    found = act()
    os.path.exists(f"{MARK}-end-{name}")
    return found


def main(place: str) -> None:
    reader = og.Graph.open(place, "r")
    writer = og.Graph.open(place)
    for n in range(4):
        for source in (POINT, HOP):
            reader.query(source, {"n": f"p{n}"})

    def ask(source: str, **more: str) -> list[object]:
        return [reader.query(source, {"n": f"p{n}"}, **more).rows for n in range(TIMES)]

    point = marked("point", lambda: ask(POINT))
    hop = marked("hop", lambda: ask(HOP))
    writer.branch_create("draft")
    ask(POINT, branch="draft")
    # The branch holds what main holds, so what is in memory of main serves it too.
    assert marked("branch", lambda: ask(HOP, branch="draft")) == hop
    assert marked("branch-point", lambda: ask(POINT, branch="draft")) == point
    writer.mutate('query m() { update Person set { age: 99 } where name = "p1" }')
    changed = marked("after-a-commit", lambda: ask(HOP))
    assert changed == hop
    assert marked("settled", lambda: ask(POINT)) != point


if __name__ == "__main__":
    main(sys.argv[1])
