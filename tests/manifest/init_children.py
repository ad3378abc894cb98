"""Processes that initialise a graph: racing for one place, or dying half way. Spawned children import them by name."""

from typing import Any

from manifest_helpers import SCHEMA

from omnigraph import Conflict, Graph
from omnigraph.base.failpoints import arm, exit_now


def init_and_die(uri: str, failpoint: str) -> None:
    arm(failpoint, exit_now)
    Graph.init(uri, SCHEMA)


def init_each(uris: list[str], force: bool, start: Any, results: Any) -> None:
    """One init per place, all racers at once; (place, whether it was ours, what was said)."""
    for uri in uris:
        start.wait(240)
        try:
            Graph.init(uri, SCHEMA, force=force)
        except Conflict as lost:
            results.put((uri, False, str(lost)))
        else:
            results.put((uri, True, ""))
