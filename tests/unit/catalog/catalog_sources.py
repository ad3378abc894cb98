"""Schemas the catalog tests share."""

from __future__ import annotations

from omnigraph.catalog.build import compile_source
from omnigraph.catalog.catalog import Catalog, EdgeType, NodeType, Property

DOMAIN = "01M7GW3ND4077VY1EYHQZB0KYA"

LIBRARY = """\
interface Named { name: String @index }
node Author @description("A writer") implements Named {
  handle: String @key
  born: Date?
  rating: F64?
  tier: enum(gold, silver, none)
  tags: [String]?
  bio: String? @index
  bio_vec: Vector(8)? @embed("bio", model="mock-1") @index
  @range(rating, 0.0..5.0)
  @check(handle, "^[a-z0-9_]+$")
}
node Book { isbn: String @key  title: String @index }
edge Wrote: Author -> Book @card(0..) { year: I32?  @unique(src, dst) }
"""

# The same meaning, said in another order, with comments, hints and the other form of each constraint.
LIBRARY_RESAID = """\
// books and who wrote them
edge Wrote: Author -> Book { @unique(src, dst) year: I32? }
node Book @rename_from("Tome") { title: String  isbn: String @rename_from("number")
  @index(title) @key(isbn) }
/* people */
node Author @description("A writer") implements Named {
  tier: enum(none, gold, silver)  tags: [String]?
  @check(handle, "^[a-z0-9_]+$") @range(rating, 0..5)
  bio_vec: Vector(8)? @index @embed(bio, model="mock-1")
  handle: String bio: String? rating: F64? born: Date?
  @index(bio) @key(handle) @index(bio)
}
interface Named { name: String @index }
"""


def node_of(body: str, before: str = "") -> NodeType:
    found = compile_source(f"{before}\nnode N {{ {body} }}").find_node("N")
    assert found is not None
    return found


def edge_of(body: str, header: str = "") -> EdgeType:
    found = compile_source(f"node A {{}}\nedge E: A -> A {header} {{ {body} }}").find_edge("E")
    assert found is not None
    return found


def property_of(catalog: Catalog, node: str, name: str) -> Property:
    owner = catalog.find_node(node)
    assert owner is not None
    found = owner.find_property(name)
    assert found is not None
    return found
