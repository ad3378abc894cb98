"""What an algorithm is asked, checked before anything is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from omnigraph.base.errors import BadRequest, NotFound
from omnigraph.catalog.catalog import Catalog, EdgeType, NodeType
from omnigraph.lang.diagnostics import did_you_mean

Algorithm = Literal["pagerank", "components", "degree"]
Direction = Literal["out", "in", "both"]


@dataclass(frozen=True)
class Asked:
    """`damping`, `iterations` and `tolerance` are those of `pagerank`, `direction` that of `degree`."""

    algorithm: str
    edges: Sequence[str]
    damping: float = 0.85
    iterations: int = 20
    tolerance: float = 1e-6
    direction: str = "out"

    def __post_init__(self) -> None:
        if self.algorithm not in get_args(Algorithm):
            known = get_args(Algorithm)
            hint = did_you_mean(self.algorithm, known) or f"Use one of {', '.join(known)}."
            raise BadRequest(f"unknown algorithm '{self.algorithm}'", hint)
        if self.direction not in get_args(Direction):
            raise BadRequest(f"unknown direction '{self.direction}'", "Use out, in or both.")
        if not self.edges:
            raise BadRequest("no edge type was named", "Name at least one: --edge Knows.")
        if not 0 <= self.damping < 1:
            raise BadRequest(f"damping must be at least 0 and below 1, not {self.damping}")
        if self.iterations < 1:
            raise BadRequest(f"iterations must be at least 1, not {self.iterations}")
        if not self.tolerance >= 0:
            raise BadRequest(f"tolerance must not be negative, and is {self.tolerance}")


@dataclass(frozen=True)
class Scope:
    """The edge types that are followed, and the node types at their ends, each once, by name."""

    edges: tuple[EdgeType, ...]
    nodes: tuple[NodeType, ...]

    @staticmethod
    def of(catalog: Catalog, names: Sequence[str]) -> Scope:
        edges = tuple(_edge(catalog, name) for name in dict.fromkeys(names))
        ends = sorted({end for edge in edges for end in (edge.src_type, edge.dst_type)})
        nodes = [catalog.find_node(end) for end in ends]
        return Scope(edges, tuple(node for node in nodes if node is not None))


def _edge(catalog: Catalog, name: str) -> EdgeType:
    found = catalog.find_table(f"edge:{name}")
    if not isinstance(found, EdgeType):
        known = [table.name for table in catalog.tables() if isinstance(table, EdgeType)]
        hint = did_you_mean(name, known) or f"The graph has: {', '.join(known) or 'none'}."
        raise NotFound(f"there is no edge type '{name}'", hint)
    return found
