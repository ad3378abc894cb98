"""People, teams and who follows whom; and what a test can ask of them."""

from __future__ import annotations

from typing import Any

import omnigraph as og

SCHEMA = """
node Person {
  name: String @key
  age: I32?
  tier: enum(free, paid)?
  email: String? @unique
  score: F64?
  ratio: F32?
  born: Date?
  seen: DateTime?
  tags: [String]?
  vec: Vector(3)?
  big: U64?
  photo: Blob?
  @range(age, 0..150)
  @check(email, "@")
}
node Team { code: String @key  size: I32? }
node Note { text: String }
edge Follows: Person -> Person { weight: F64?  @unique(src, dst) }
edge MemberOf: Person -> Team @card(0..1)
edge Owns: Person -> Note @card(1..)
"""
SEED = """query seed() {
  insert Person { name: "ana", age: 31 }
  insert Person { name: "bo" }
  insert Team { code: "core" }
  insert Follows { from: "ana", to: "bo", weight: 0.5 }
  insert MemberOf { from: "ana", to: "core" }
}"""


def rows(graph: og.Graph, table_key: str, branch: str | None = None) -> list[dict[str, Any]]:
    return graph.view(branch).table(table_key).read().sort_by("id").to_pylist()


def people(graph: og.Graph, branch: str | None = None) -> dict[str, Any]:
    return {row["id"]: row for row in rows(graph, "node:Person", branch)}


def edges(graph: og.Graph, name: str, branch: str | None = None) -> list[tuple[str, str]]:
    return sorted((row["src"], row["dst"]) for row in rows(graph, f"edge:{name}", branch))


def run(graph: og.Graph, body: str, params: dict[str, Any] | None = None, head: str = "q()", **more: Any) -> Any:
    return graph.mutate(f"query {head} {{ {body} }}", params, **more)
