"""The graphs of the hand-written cases."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from omnigraph.catalog.build import compile_source
from omnigraph.catalog.catalog import Catalog

Rows = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True, eq=False)
class Scene:
    name: str
    schema: str
    rows: Rows
    loadable: bool = True

    @cached_property
    def catalog(self) -> Catalog:
        return compile_source(self.schema)


def keyed(column: str, *rows: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows of a node with a single String key: the key is the id."""
    return [{"id": row[column], **row} for row in rows]


def edges(*triples: tuple[Any, ...]) -> list[dict[str, Any]]:
    """(id, src, dst[, properties])."""
    return [{"id": id_, "src": src, "dst": dst, **(more[0] if more else {})} for id_, src, dst, *more in triples]


SPEC = Scene(
    "spec",
    """
node Person { name: String @key  age: I32?  tier: enum(free, paid)? }
node Team   { code: String @key  size: I32? }
edge Follows:  Person -> Person { weight: F64? }
edge MemberOf: Person -> Team @card(0..1)
""",
    {
        "node:Person": keyed("name", {"name": "ana", "age": 31}, {"name": "bo"}),
        "node:Team": keyed("code", {"code": "core"}),
        "edge:Follows": edges(("f1", "ana", "bo", {"weight": 0.5})),
        "edge:MemberOf": edges(("m1", "ana", "core")),
    },
)

# a ⇉ b → c → a is a cycle, d and e loop, c → d → e is a tail, f stands alone; teams share ids with persons.
WALKS = Scene(
    "walks",
    """
node Person { name: String @key  age: I32? }
node Team   { code: String @key  size: I32? }
edge Follows:  Person -> Person { weight: F64? }
edge MemberOf: Person -> Team { since: I32? }
edge Contains: Team -> Team
""",
    {
        "node:Person": keyed(
            "name", *({"name": n, "age": a} for n, a in zip("abcdef", (1, 2, 3, 4, 5, None), strict=True))
        ),
        "node:Team": keyed("code", {"code": "a", "size": 1}, {"code": "t", "size": 2}, {"code": "u"}),
        "edge:Follows": edges(
            ("f1", "a", "b", {"weight": 0.1}),
            ("f2", "a", "b", {"weight": 0.2}),
            ("f3", "b", "c", {"weight": 0.3}),
            ("f4", "c", "a", {"weight": 0.4}),
            ("f5", "c", "d"),
            ("f6", "d", "d", {"weight": 0.6}),
            ("f7", "d", "e", {"weight": 0.7}),
            ("f8", "e", "e", {"weight": 0.8}),
            ("f9", "e", "e", {"weight": 0.9}),
        ),
        "edge:MemberOf": edges(
            ("m1", "a", "t", {"since": 1}),
            ("m2", "a", "u", {"since": 2}),
            ("m3", "b", "t", {"since": 3}),
            ("m4", "c", "a", {"since": 4}),
            ("m5", "a", "a"),
        ),
        "edge:Contains": edges(("c1", "t", "u"), ("c2", "u", "a")),
    },
)

# Edges that a graph may still hold of nodes it no longer has; a load refuses them.
DANGLING = Scene(
    "dangling",
    SPEC.schema,
    {
        "node:Person": keyed("name", {"name": "ana"}, {"name": "bo"}),
        "edge:Follows": edges(("f1", "ana", "gone"), ("f2", "ana", "bo"), ("f3", "gone", "bo")),
        "edge:MemberOf": edges(("m1", "bo", "gone")),
    },
    loadable=False,
)

EMPTY = Scene("empty", SPEC.schema, {"node:Person": [], "node:Team": [], "edge:Follows": [], "edge:MemberOf": []})

VALUES = Scene(
    "values",
    """
node Thing {
  name: String @key  flag: Bool?  i32: I32?  i64: I64?  u32: U32?  u64: U64?  f32: F32?  f64: F64?
  text: String?  kind: enum(high, low)?  day: Date?  at: DateTime?  tags: [String]?  nums: [I64]?  days: [Date]?
  vec: Vector(2)?
}
node Place { code: I32  region: String  size: I32?  @key(code, region) }
node Note { text: String? }
edge Near: Thing -> Place { metres: U32? }
edge About: Note -> Thing
""",
    {
        "node:Thing": keyed(
            "name",
            {
                "name": "big", "flag": True, "i32": 2**31 - 1, "i64": 2**63 - 1, "u32": 2**32 - 1, "u64": 2**64 - 1,
                "f32": 0.1, "f64": 1e300, "text": "Straße 50%", "kind": "high", "day": "2024-02-29",
                "at": "2024-02-29T12:00:00.001Z", "tags": ["a", "b_c", "ß"], "nums": [2**63 - 1, 3],
                "days": ["2024-02-29"], "vec": [1, 0],
            },
            {
                "name": "low", "flag": False, "i32": -(2**31), "i64": -(2**63), "u32": 0, "u64": 0, "f32": -2.5,
                "f64": -0.5, "text": "straße 50x", "kind": "low", "day": "1969-12-31", "at": "1969-12-31T23:59:59.999Z",
                "tags": [], "nums": [-1], "days": [], "vec": [0.6, 0.8],
            },
            {
                "name": "mid", "i32": 2, "i64": 2**53 + 1, "u32": 7, "u64": 2**53, "f32": 2, "f64": 2.0**53,
                "text": "", "kind": "low", "day": "2024-03-01", "at": "2024-02-29T13:00:00Z", "tags": ["A"],
                "nums": [3, 3], "vec": [0, 0],
            },
            {"name": "none"},
        ),
        "node:Place": [
            {"id": '["7","eu"]', "code": 7, "region": "eu", "size": 3},
            {"id": '["7","us"]', "code": 7, "region": "us"},
        ],
        "node:Note": [{"id": "n1", "text": "one"}, {"id": "n2"}],
        "edge:Near": edges(("e1", "big", '["7","eu"]', {"metres": 5}), ("e2", "mid", '["7","us"]')),
        "edge:About": edges(("q1", "n1", "big"), ("q2", "n2", "big")),
    },
)  # fmt: skip

# Texts in the order of their bytes; by UTF-16 units "\U0001f600" would come before "\uffff".
LETTERS = Scene(
    "letters",
    "node Word { text: String @key  mark: String?  n: I32? }",
    {
        "node:Word": keyed(
            "text",
            {"text": "Z", "mark": "x", "n": 2},
            {"text": "a", "mark": "x", "n": 1},
            {"text": "é", "mark": "y"},
            {"text": "\uffff", "mark": "y", "n": 1},
            {"text": "\U0001f600", "n": 2},
        )
    },
)

SCENES = (SPEC, WALKS, DANGLING, EMPTY, VALUES, LETTERS)
