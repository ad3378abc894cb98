"""Random well-typed reads over the schema of `read.graphs`, as texts with parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

from hypothesis import strategies as st

from omnigraph.catalog.catalog import EdgeType, NodeType, Property, TableType
from omnigraph.catalog.types import FLOATS, INTEGER_RANGES, NUMERICS, PropertyType, ScalarType
from omnigraph.catalog.values import datetime_text
from omnigraph.lang.pg.printer import print_value
from omnigraph.plan.values import STRING
from read.graphs import CATALOG, NAMES, SUMMABLE, TEXTS, scalars

ID = Property("id", STRING)
_COMPARATORS = ("=", "!=", "<", "<=", ">", ">=")
_NODE_NAMES, _EDGE_NAMES = ("p", "q", "c", "z", "m"), ("w", "b", "k")
_VARIABLES_MAX = 4
# Persons have most edges.
_NODES = (*CATALOG.nodes, *(node for node in CATALOG.nodes if node.name == "Person"))
_ORDERED = frozenset({ScalarType.STRING, ScalarType.DATE, ScalarType.DATETIME})
_SEARCHED = (("Person", "bio"), ("Note", "text"), ("Person", "name"))


@dataclass(frozen=True)
class AskedQuery:
    source: str
    params: dict[str, Any]


@dataclass
class _Block:
    """The variables of one block, those of the blocks around it included."""

    nodes: dict[str, NodeType] = field(default_factory=dict)
    edges: dict[str, EdgeType] = field(default_factory=dict)
    depth: int = 0

    def inner(self) -> _Block:
        return _Block(dict(self.nodes), dict(self.edges), self.depth + 1)

    def fresh(self, names: tuple[str, ...]) -> str:
        """Equal in blocks side by side, different in blocks inside each other."""
        own = [f"{name}{self.depth or ''}" for name in names]
        return next(name for name in own if name not in self.nodes and name not in self.edges)

    @property
    def is_full(self) -> bool:
        return len(self.nodes) + len(self.edges) >= _VARIABLES_MAX + self.depth

    def properties(self, keep: Callable[[PropertyType], bool]) -> list[tuple[str, TableType, Property]]:
        owners: dict[str, TableType] = {**self.nodes, **self.edges}
        return [(v, t, p) for v, t in owners.items() for p in (*t.properties, ID) if keep(p.type)]


def is_scalar(type_: PropertyType) -> bool:
    return not type_.is_list


def written(scalar: ScalarType, value: Any) -> str:
    """The value as a literal of the query language."""
    if scalar is ScalarType.DATE:
        return f'date("{_day(value)}")'
    if scalar is ScalarType.DATETIME:
        return f'datetime("{datetime_text(value)}")'
    return print_value(value)


def given(scalar: ScalarType, value: Any) -> Any:
    """The value as a JSON parameter."""
    return {ScalarType.DATE: _day, ScalarType.DATETIME: datetime_text}.get(scalar, lambda v: v)(value)


def _day(days: int) -> str:
    return (date(1970, 1, 1) + timedelta(days=days)).isoformat()


class _Writer:
    def __init__(self, draw: st.DrawFn, texts: bool) -> None:
        self.draw, self.texts = draw, texts
        self.declared: list[str] = []
        self.params: dict[str, Any] = {}

    def chance(self, one_in: int) -> bool:
        return self.draw(st.integers(1, one_in)) == 1

    def choice(self, options: Any) -> Any:
        return self.draw(st.sampled_from(list(options)))

    def clauses(self, block: _Block) -> list[str]:
        """The clauses of a block; in a `not` block the first one takes a variable from outside."""
        found: list[str] = []
        if block.depth == 0:
            found.append(self.start(block))
        kinds = [self.filter, self.traversal, self.traversal, self.traversal]
        for turn in range(self.draw(st.integers(0 if found else 1, 3))):
            kind = self.choice(kinds if block.depth == 0 or turn == 0 else [*kinds, self.binding])
            found.append(kind(block))
        if block.depth == 0 and self.chance(6) and not block.is_full:
            found.append(self.start(block))
        if self.texts and self.chance(2):
            found.extend(self.text_match(block))
        for _ in range(self.draw(st.integers(1, 2)) if block.depth < 3 and self.chance(3 + block.depth) else 0):
            found.append(f"not {{ {' '.join(self.clauses(block.inner()))} }}")
        if not self.chance(3):
            return found
        # Which way an edge without a bound end goes is decided by the first clause that mentions it.
        return [*found[:1], *self.draw(st.permutations(found[1:]))]

    def start(self, block: _Block) -> str:
        if self.chance(6):
            edge = self.choice(CATALOG.edges)
            ends = []
            for name in (edge.src_type, edge.dst_type):
                ends.append(block.fresh(_NODE_NAMES))
                block.nodes[ends[-1]] = CATALOG.find_node(name)
            return f"${ends[0]} {_spoken(edge)} ${ends[1]}"
        return self.binding(block, block.fresh(_NODE_NAMES))

    def binding(self, block: _Block, name: str | None = None) -> str:
        name = name or (self.choice(block.nodes) if block.is_full or self.chance(2) else block.fresh(_NODE_NAMES))
        node = block.nodes.setdefault(name, self.choice(_NODES))
        entries = [self.map_entry(node)] if self.chance(4) else []
        return f"${name}: {node.name} {{ {', '.join(entries)} }}" if entries else f"${name}: {node.name}"

    def map_entry(self, node: NodeType) -> str:
        known = self.choice((*node.properties, ID))
        if known.type.scalar is ScalarType.DATETIME and self.chance(4):
            return f"{known.name}: now()"
        if known.name in ("id", "name") and self.chance(2):
            return f"{known.name}: {print_value(self.choice(NAMES))}"
        one = PropertyType(known.type.scalar, enum_values=known.type.enum_values)
        return f"{known.name}: {self.value(one, exact=True)}"

    def traversal(self, block: _Block) -> str:
        name = self.choice(block.nodes)
        touching = [e for e in CATALOG.edges if block.nodes[name].name in (e.src_type, e.dst_type)]
        edge = self.choice(touching)
        other = edge.dst_type if block.nodes[name].name == edge.src_type else edge.src_type
        known = [v for v, node in block.nodes.items() if node.name == other]
        if known and (block.is_full or self.chance(3)):
            far = self.choice(known)
        elif block.is_full or self.chance(4):
            far = "_"
        else:
            far = block.fresh(_NODE_NAMES)
            block.nodes[far] = CATALOG.find_node(other)
        left, right = (name, far) if self.chance(2) else (far, name)
        walk, equal = _spoken(edge), edge.src_type == edge.dst_type
        if equal and self.chance(2):
            walk = f"<{walk}>"
        if not block.is_full and self.chance(3):
            variable = block.fresh(_EDGE_NAMES)
            block.edges[variable] = edge
            return f"${left} ${variable}:{walk} ${right}"
        if self.chance(2):
            low = self.draw(st.integers(1, 3))
            walk += f"{{{low},{self.draw(st.integers(low, 4))}}}"
        return f"${left} {walk} ${right}"

    def filter(self, block: _Block) -> str:
        variable, _, known = self.choice(block.properties(lambda _: True))
        type_, left = known.type, f"${variable}.{known.name}"
        if type_.is_list:
            return f"{left} contains {self.operand(block, PropertyType(type_.scalar))}"
        if type_.is_string and not type_.is_enum and self.chance(3):
            return f"{left} {self.choice(['contains', 'starts_with'])} {self.operand(block, STRING)}"
        if self.chance(8):
            return f"{self.parameter(PropertyType(type_.scalar, is_list=True))} contains {left}"
        # Equality seldom holds, so it is asked seldom.
        operator = self.choice(
            (*_COMPARATORS, *_COMPARATORS[1:]) if type_.scalar is not ScalarType.BOOL else ("=", "!=")
        )
        right = self.operand(block, type_)
        return f"{right} {operator} {left}" if self.chance(4) else f"{left} {operator} {right}"

    def operand(self, block: _Block, type_: PropertyType) -> str:
        """Something to compare with a scalar of that type."""
        if type_.scalar is ScalarType.DATETIME and self.chance(6):
            return "now()"
        if self.chance(4):
            same = block.properties(lambda t: is_scalar(t) and _comparable(t, type_))
            if same:
                variable, _, known = self.choice(same)
                return f"${variable}.{known.name}"
        return self.value(type_)

    def value(self, type_: PropertyType, exact: bool = False) -> str:
        """A literal or a parameter; in a map a literal is of the property's own kind."""
        if self.chance(3):
            return self.parameter(type_)
        scalar = type_.scalar
        if scalar in NUMERICS and not exact:
            scalar = self.choice([scalar, ScalarType.F64, ScalarType.I64, ScalarType.U64])
        drawn = self.draw(scalars(PropertyType(scalar, enum_values=type_.enum_values)))
        return written(scalar, drawn if scalar not in FLOATS else float(drawn))

    def parameter(self, type_: PropertyType) -> str:
        scalar = type_.scalar
        if scalar in NUMERICS and not type_.is_list and self.chance(2):
            scalar = self.choice([*INTEGER_RANGES, *FLOATS])
        one = scalars(PropertyType(scalar, enum_values=type_.enum_values)).map(lambda v: given(scalar, v))
        nullable = self.chance(3)
        name = f"x{len(self.params)}"
        base = f"[{scalar.value}]" if type_.is_list else scalar.value
        self.declared.append(f"${name}: {base}{'?' if nullable else ''}")
        self.params[name] = self.draw(st.lists(one, max_size=3) if type_.is_list else one)
        if nullable and self.chance(2):
            self.params[name] = None
        return f"${name}"

    def text_match(self, block: _Block) -> list[str]:
        fields = [f"${v}.{name}" for v, node in block.nodes.items() for owner, name in _SEARCHED if node.name == owner]
        if not fields:
            return []
        words = print_value(self.choice((*TEXTS, "fox", "quick fox", "jumping", "foxs")))
        return [f"{self.choice(['search', 'match_text', 'fuzzy'])}({self.choice(fields)}, {words})"]

    def returned(self, block: _Block) -> tuple[list[str], list[str]]:
        """The items of `return`, and what may order them."""
        if self.chance(3):
            return self.grouped(block)
        items, keys = [], [f"${v}.{p.name}" for v, _, p in block.properties(is_scalar)]
        for place in range(self.draw(st.integers(1, 3))):
            if self.chance(5):
                items.append(f"${self.choice(block.nodes)} as i{place}")
            elif self.params and self.chance(8):
                items.append(f"${self.choice(self.params)} as x_{place}")
            else:
                variable, _, known = self.choice(block.properties(lambda _: True))
                items.append(f"${variable}.{known.name} as c{place}")
                keys += [f"c{place}"] if is_scalar(known.type) else []
        return items, keys

    def grouped(self, block: _Block) -> tuple[list[str], list[str]]:
        items, keys = [], []
        for place in range(self.draw(st.integers(0, 2))):
            variable, _, known = self.choice(block.properties(is_scalar))
            items.append(f"${variable}.{known.name} as g{place}")
            keys.append(f"g{place}")
        for place in range(self.draw(st.integers(1, 2))):
            items.append(f"{self.aggregate(block)} as n{place}")
            keys.append(f"n{place}")
        return items, keys

    def aggregate(self, block: _Block) -> str:
        options = [f"count(${name})" for name in block.nodes]
        for variable, owner, known in block.properties(lambda _: True):
            read, scalar = f"${variable}.{known.name}", is_scalar(known.type)
            options.append(f"count({read})")
            if scalar and (known.type.is_numeric or known.type.scalar in _ORDERED):
                options += [f"min({read})", f"max({read})"]
            if (owner.name, known.name) in SUMMABLE:
                options += [f"{function}({read})" for function in ("sum", "avg") for _ in range(3)]
        return self.choice(options)


@st.composite
def queries(draw: st.DrawFn, texts: bool = False) -> AskedQuery:
    """A read that the checker accepts; `texts` adds search, match_text and fuzzy."""
    writer, block = _Writer(draw, texts), _Block()
    clauses = writer.clauses(block)
    items, keys = writer.returned(block)
    source = f"match {{ {' '.join(clauses)} }} return {{ {', '.join(items)} }}"
    if writer.chance(2):
        chosen = draw(st.lists(st.sampled_from(keys), min_size=1, max_size=3, unique=True)) if keys else []
        directed = [f"{key}{writer.choice(['', ' asc', ' desc'])}" for key in chosen]
        source += f" order {{ {', '.join(directed)} }}" if directed else ""
    if writer.chance(3):
        source += f" limit {draw(st.integers(0, 6))}"
    return AskedQuery(f"query q({', '.join(writer.declared)}) {{ {source} }}", writer.params)


def _spoken(edge: EdgeType) -> str:
    return edge.name[0].lower() + edge.name[1:]


def _comparable(one: PropertyType, other: PropertyType) -> bool:
    return one.scalar is other.scalar or (one.scalar in NUMERICS and other.scalar in NUMERICS)
