"""The process whose power is cut: it does one order after the other, each on a disk of its own, under strace.

It marks what it passes by looking for files that are not there; strace sees that and the disk does not change.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from crash_world import EFFECTS, SCHEMA, plan_of, rows_of
from power_trace import MARK

from omnigraph.base import failpoints
from omnigraph.base.errors import OmniError
from omnigraph.base.ids import new_ulid
from omnigraph.commit.protocol import commit_plan
from omnigraph.engine.write.changes import Append
from omnigraph.graph import Graph
from omnigraph.settings import Settings


class Marks(dict[str, Any]):
    """Armed at every failpoint: notes it in the trace and goes on, or fails at the one that is asked for."""

    def __init__(self, prefix: str, fail_at: str | None) -> None:
        super().__init__()
        self._prefix, self._fail_at = prefix, fail_at

    def mark(self, name: str) -> None:
        with suppress(FileNotFoundError):
            os.close(os.open(f"{MARK}/{self._prefix}/{name}", os.O_RDONLY))

    def __len__(self) -> int:
        return 1

    def __contains__(self, name: object) -> bool:
        return True

    def __getitem__(self, name: str) -> tuple[Callable[[], None], int]:
        return (lambda: self._passed(name)), 0

    def __delitem__(self, name: str) -> None:
        return

    def _passed(self, name: str) -> None:
        self.mark(name)
        if name == self._fail_at:
            failpoints.fail()


def obey(order: dict[str, Any], marks: Marks) -> None:
    path, settings = order["path"], Settings(**order["settings"])
    if order["does"] == "init":
        graph = Graph.init(path, SCHEMA, settings=settings)
        marks.mark("acknowledged")
        graph.close()
        return
    graph = Graph.open(path, settings=settings)
    if order["does"] == "open":
        marks.mark("acknowledged")
        return
    marks.mark("opened")
    if order["does"] in ("apply", "optimize"):
        graph.schema_apply(order["source"]) if order["does"] == "apply" else graph.optimize()
        marks.mark("acknowledged")
        graph.close()
        return
    for number, (effect, tables) in enumerate(order["writes"]):
        if effect == "rows":
            graph.write({t: Append(rows_of(t, [f"row-{number}"], "row", number)) for t in tables})
        else:
            commit_plan(graph.context, plan_of(graph, EFFECTS[effect], tables, new_ulid()))
        marks.mark("acknowledged")
    graph.close()


def main() -> None:
    for number, line in enumerate(sys.stdin):
        order = json.loads(line)
        marks = failpoints._armed = Marks(str(number), order.get("fail_at"))
        marks.mark("begin")
        said = "done"
        try:
            obey(order, marks)
        except OmniError as error:
            marks.mark("refused")
            said = f"refused {type(error).__name__}"
        marks.mark("end")
        os.write(1, f"{said}\n".encode())


if __name__ == "__main__":
    main()
