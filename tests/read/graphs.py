"""Random small graphs over one schema, as rows that a load takes and the naive evaluator reads.

The schema has a type for every way to have an id (a text, a number, several members, none) and every type of property
that can be read. Ids of different types are equal often, edges are parallel and loop often, everything optional is NULL
often, and numbers and texts are often the ones at which engines differ.
"""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from omnigraph.catalog.build import compile_source
from omnigraph.catalog.catalog import EdgeType, NodeType, Property, TableType
from omnigraph.catalog.types import INTEGER_RANGES, PropertyType, ScalarType
from read.case_scenes import Rows

SCHEMA = """
node Person {
  name: String @key  age: I32?  score: F64?  tier: enum(free, paid, trial)?  joined: Date?  seen: DateTime?
  active: Bool?  bio: String? @index  tags: [String]?
}
node Team { code: I32  region: String  size: U32?  budget: I64?  @key(code, region) }
node Note {
  text: String? @index  big: I64?  huge: U64?  ratio: F32?  wide: F64?  words: [String]?  nums: [I64]?  sizes: [U64]?
  marks: [F32]?  days: [Date]?  moments: [DateTime]?  flags: [Bool]?
}
node Item { number: I64 @key  price: F64?  made: Date? }
edge Follows: Person -> Person { weight: F64?  since: Date?  why: String? }
edge MemberOf: Person -> Team { role: enum(lead, member)?  rank: I32? }
edge Under: Team -> Team
edge Wrote: Person -> Note { at: DateTime?  sure: Bool? }
edge Cites: Note -> Note { pages: [I32]?  times: U64? }
edge Likes: Person -> Item { much: F32? }
"""
CATALOG = compile_source(SCHEMA)
# Sums of these are exact in any order, so engines have to agree to the last bit.
SUMMABLE = frozenset(
    {("Person", "age"), ("Team", "size"), ("Item", "price"), ("Follows", "weight"), ("MemberOf", "rank")}
)

NAMES = ("a", "b", "B", "ä", "\uffff", "\U0001f600", "%_", 'q"\\', "7", "")
TEXTS = ("", "a", "ab", "A", "%", "_", "aé", "\uffff", "\U0001f600", "The quick foxes", "fox jumped", "a\nb", "'")
_DAYS = (-719_162, -1, 0, 19_782, 2_932_896)
_MOMENTS = (-62_135_596_800_000, -1, 0, 1_709_208_000_001, 253_402_300_799_999)
_DOUBLES = (-1.7976931348623157e308, -0.5, -0.0, 0.0, 5e-324, 0.1, 2.0, 2.5, 2.0**53, 1e300)
_FLOATS = (-3.4028234663852886e38, -2.5, -0.0, 0.0, 2.0**-149, 0.10000000149011612, 2.0, 2.0**24, 3.4028234663852886e38)
_NODES_MAX = {"Person": 6, "Team": 3, "Note": 3, "Item": 2}
_EDGES_MAX = 7


def scalars(type_: PropertyType) -> st.SearchStrategy[Any]:
    """Values of one scalar type, as a load takes them; dates and moments as numbers."""
    if type_.is_enum:
        return st.sampled_from(type_.enum_values)
    if type_.scalar in INTEGER_RANGES:
        low, high = INTEGER_RANGES[type_.scalar]
        near = [low, low + 1, 0, 1, 2, 3, high - 1, high]
        return st.sampled_from(near) | st.sampled_from([v for v in (2**53, 2**53 + 1, -1) if low <= v <= high] or near)
    return {
        ScalarType.STRING: st.sampled_from(TEXTS) | st.text(st.characters(exclude_categories=["Cs"]), max_size=3),
        ScalarType.BOOL: st.booleans(),
        ScalarType.F32: st.sampled_from(_FLOATS),
        ScalarType.F64: st.sampled_from(_DOUBLES),
        ScalarType.DATE: st.sampled_from(_DAYS),
        ScalarType.DATETIME: st.sampled_from(_MOMENTS),
    }[type_.scalar]


def values(owner: TableType, known: Property) -> st.SearchStrategy[Any]:
    """Values of a property; NULL where it may be."""
    if (owner.name, known.name) in SUMMABLE:
        whole = known.type.scalar in INTEGER_RANGES
        present = st.integers(0, 5) if whole else st.integers(-8, 8).map(lambda n: n / 4)
    elif known.type.is_list:
        present = st.lists(scalars(PropertyType(known.type.scalar)), max_size=3)
    else:
        present = scalars(known.type)
    return st.none() | present | present if known.type.nullable else present


def _rows(table: TableType, keys: frozenset[str]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({p.name: values(table, p) for p in table.properties if p.name not in keys})


_FREE = {
    table.table_key: _rows(
        table, frozenset(p.name for p in table.key_properties) if isinstance(table, NodeType) else frozenset()
    )
    for table in CATALOG.tables()
}
_KEYS: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "Person": st.sampled_from(NAMES).map(lambda name: {"id": name, "name": name}),
    "Note": st.sampled_from(NAMES).map(lambda id_: {"id": id_}),
    "Item": st.sampled_from([-(2**63), 7, 2**63 - 1]).map(lambda n: {"id": str(n), "number": n}),
    "Team": st.tuples(st.sampled_from([-7, 7]), st.sampled_from(["eu", 'é"'])).map(
        lambda key: {"id": _compact([str(key[0]), key[1]]), "code": key[0], "region": key[1]}
    ),
}


def _compact(members: list[str]) -> str:
    return json.dumps(members, ensure_ascii=False, separators=(",", ":"))


@st.composite
def graphs(draw: st.DrawFn) -> Rows:
    """`{table_key: rows}`; every edge has both its ends."""
    tables: Rows = {}
    for node in CATALOG.nodes:
        most = _NODES_MAX[node.name]
        keys = st.lists(
            _KEYS[node.name], unique_by=lambda key: key["id"], min_size=draw(st.sampled_from([0, most])), max_size=most
        )
        tables[node.table_key] = [key | draw(_FREE[node.table_key]) for key in draw(keys)]
    for edge in CATALOG.edges:
        tables[edge.table_key] = _edges(draw, edge, tables)
    return tables


def _edges(draw: st.DrawFn, edge: EdgeType, tables: Rows) -> list[dict[str, Any]]:
    sources, targets = ([row["id"] for row in tables[f"node:{name}"]] for name in (edge.src_type, edge.dst_type))
    if not sources or not targets:
        return []
    ends = st.tuples(st.sampled_from(sources), st.sampled_from(targets))
    pairs = draw(st.lists(ends, max_size=_EDGES_MAX))
    # Ids whose order is not that of the rows, some of them equal to ids of other tables.
    ids = draw(st.permutations([*NAMES[:4], "10", "2", "z"]))
    return [
        {"id": id_, "src": src, "dst": dst} | draw(_FREE[edge.table_key])
        for id_, (src, dst) in zip(ids, pairs, strict=False)
    ]
