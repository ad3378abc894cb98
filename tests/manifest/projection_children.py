"""Handles of other processes that bring the commit tables up to date at one moment; children import them."""

from typing import Any

from omnigraph import Graph


def open_and_close(uri: str, start: Any) -> None:
    graph = Graph.open(uri, "r")
    start.wait(240)
    graph.context.projections.catch_up(graph.context.manifest.state())
