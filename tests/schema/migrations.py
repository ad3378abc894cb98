"""Every row of the table of changes in docs/schema-changes.md, as schemas before and after and the steps between."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

BASE = """\
interface Named { name: String }
node Person @description("A person") implements Named {
  handle: String @key
  age: I32?
  nick: String? @index
  tier: enum(gold, silver)
  face: Vector(2)?
  @range(age, 0..150)
}
node Book { isbn: String @key  title: String }
node Shelf { label: String @key }
edge Wrote: Person -> Book { year: I32? }
edge Holds: Shelf -> Book
"""


@dataclass(frozen=True)
class Migration:
    row: str
    """The first cell of the row it stands for."""
    name: str
    after: str
    steps: tuple[dict[str, Any], ...]

    @property
    def supported(self) -> bool:
        return all(step["kind"] != "unsupported_change" for step in self.steps)


def _case(row: str, name: str, old: str, new: str, *steps: dict[str, Any], every: bool = False) -> Migration:
    assert old in BASE, f"{name}: {old!r} is not in the schema"
    return Migration(row, name, BASE.replace(old, new) if every else BASE.replace(old, new, 1), steps)


def _step(kind: str, type_kind: str = "node", type_name: str = "Person", **members: Any) -> dict[str, Any]:
    return {"kind": kind, "type_kind": type_kind, "type_name": type_name, **members}


def _type(kind: str, type_kind: str, **members: Any) -> dict[str, Any]:
    return {"kind": kind, "type_kind": type_kind, **members}


def _refused(entity: str, reason: str, code: str | None = None) -> dict[str, Any]:
    coded = {} if code is None else {"code": code}
    return {"kind": "unsupported_change", "entity": entity, "reason": reason, **coded}


def _changed(member: str, before: Any, after: Any) -> list[dict[str, Any]]:
    return [{"member": member, "from": before, "to": after}]


def _type_change(before: str, after: str, of: str) -> dict[str, Any]:
    return _refused(f"node:Person.{of}", f"changing property type from {before} to {after}", "OG-MF-106")


_TYPE = "a new interface, node or edge type"
_RENAME_TYPE = "a node or edge type renamed, with `@rename_from`"
_RENAME_PROPERTY = "a property renamed, with `@rename_from`"
_NULLABLE = "a new nullable property"
_ENUM = "an enum with more values"
_INDEX = "a new `@index`"
_META = "`@description`, `@instruction`, or `@default` of a property that exists"
_DROP = "a property, node or edge type removed"
_DEFAULT = "a new required property with `@default(literal)`"
_REQUIRED = "a new required property without one"
_RETYPE = "the type of a property, its `?` or its list brackets; an enum narrowed or made a String"
_OTHER = (
    "any other constraint on properties that exist, a constraint removed, an interface removed or renamed, "
    "`implements`, endpoints, `@card`, `@embed`, or an annotation of your own"
)
_NOTHING = "nothing: comments, order, layout"

MIGRATIONS: tuple[Migration, ...] = (
    _case(_TYPE, "interface", "node Book", "interface Aged { age: I32? }\nnode Book",
          _type("add_type", "interface", name="Aged")),
    _case(_TYPE, "node type", "node Book", "node Tag { word: String @key  weight: F64 }\nnode Book",
          _type("add_type", "node", name="Tag")),
    _case(_TYPE, "edge type", "edge Holds", "edge Knows: Person -> Person\nedge Holds",
          _type("add_type", "edge", name="Knows")),
    Migration(_RENAME_TYPE, "node type",
              BASE.replace("node Shelf", 'node Rack @rename_from("Shelf")').replace("Holds: Shelf", "Holds: Rack"),
              (_type("rename_type", "node", **{"from": "Shelf", "to": "Rack"}),)),
    _case(_RENAME_TYPE, "edge type", "edge Wrote: Person -> Book", 'edge Penned: Person -> Book @rename_from("Wrote")',
          _type("rename_type", "edge", **{"from": "Wrote", "to": "Penned"})),
    _case(_RENAME_PROPERTY, "property", "nick: String?", 'alias: String? @rename_from("nick")',
          _step("rename_property", **{"from": "nick", "to": "alias"})),
    _case(_RENAME_PROPERTY, "edge property", "year: I32?", 'since: I32? @rename_from("year")',
          _step("rename_property", "edge", "Wrote", **{"from": "year", "to": "since"})),
    _case(_RENAME_PROPERTY, "interface property", "{ name: String }", '{ title: String @rename_from("name") }',
          _step("rename_property", "interface", "Named", **{"from": "name", "to": "title"}),
          _step("rename_property", **{"from": "name", "to": "title"})),
    _case(_NULLABLE, "property", "age: I32?", "age: I32?  joined: Date?",
          _step("add_property", property_name="joined", property_type="Date?")),
    _case(_NULLABLE, "edge property", "year: I32?", "year: I32?  pages: U32?",
          _step("add_property", "edge", "Wrote", property_name="pages", property_type="U32?")),
    _case(_NULLABLE, "vector property", "age: I32?", "age: I32?  mind: Vector(3)?",
          _step("add_property", property_name="mind", property_type="Vector(3)?")),
    _case(_NULLABLE, "list property and an index", "age: I32?",
          "age: I32?  tags: [String]?  zip: String? @index",
          _step("add_property", property_name="tags", property_type="[String]?"),
          _step("add_property", property_name="zip", property_type="String?"),
          _step("add_constraint", constraint="@index(zip)")),
    _case(_NULLABLE, "property with rules of its own", "age: I32?",
          "age: I32?  score: F64? @unique  @range(score, 0..1)\n",
          _step("add_property", property_name="score", property_type="F64?"),
          _step("add_constraint", constraint="@range(score, 0.0..1.0)"),
          _step("add_constraint", constraint="@unique(score)")),
    _case(_ENUM, "enum", "enum(gold, silver)", "enum(none, gold, silver, bronze)",
          _step("extend_enum", property_name="tier", added_values=["bronze", "none"])),
    _case(_INDEX, "on a property", "age: I32?", "age: I32? @index", _step("add_constraint", constraint="@index(age)")),
    _case(_INDEX, "in the body", "title: String }", "title: String  @index(title) }",
          _step("add_constraint", "node", "Book", constraint="@index(title)")),
    _case(_META, "type description", '@description("A person")', '@description("Somebody")',
          _type("update_type_metadata", "node", name="Person",
                changes=_changed("description", "A person", "Somebody"))),
    _case(_META, "type instruction", "edge Holds: Shelf -> Book", 'edge Holds: Shelf -> Book @instruction("count")',
          _type("update_type_metadata", "edge", name="Holds", changes=_changed("instruction", None, "count"))),
    _case(_META, "property description", "age: I32?", 'age: I32? @description("years")',
          _step("update_property_metadata", property_name="age", changes=_changed("description", None, "years"))),
    _case(_META, "property default", "age: I32?", "age: I32? @default(7)",
          _step("update_property_metadata", property_name="age", changes=_changed("default", None, 7))),
    _case(_DROP, "property", "  nick: String? @index\n", "",
          _step("drop_property", property_name="nick", mode="soft", code="OG-DS-104", constraints=["@index(nick)"])),
    _case(_DROP, "vector property", "  face: Vector(2)?\n", "",
          _step("drop_property", property_name="face", mode="soft", code="OG-DS-105")),
    _case(_DROP, "edge property", " { year: I32? }", "",
          _step("drop_property", "edge", "Wrote", property_name="year", mode="soft", code="OG-DS-104")),
    _case(_DROP, "edge type", "edge Wrote: Person -> Book { year: I32? }\n", "",
          _type("drop_type", "edge", name="Wrote", mode="soft", code="OG-DS-103")),
    Migration(_DROP, "node type and its edges",
              BASE.replace("node Shelf { label: String @key }\n", "").replace("edge Holds: Shelf -> Book\n", ""),
              (_type("drop_type", "node", name="Shelf", mode="soft", code="OG-DS-102"),
               _type("drop_type", "edge", name="Holds", mode="soft", code="OG-DS-103"))),
    _case(_DEFAULT, "property", "age: I32?", "age: I32?  points: I64 @default(-3)",
          _step("add_property", property_name="points", property_type="I64", default=-3)),
    _case(_DEFAULT, "date in an edge", "year: I32?", 'year: I32?  on: Date @default("2020-02-29")',
          _step("add_property", "edge", "Wrote", property_name="on", property_type="Date", default="2020-02-29")),
    _case(_DEFAULT, "enum with rules", "age: I32?", 'age: I32?  kind: enum(a, b) @default(b) @check(kind, "^[ab]$")\n',
          _step("add_property", property_name="kind", property_type="enum(a, b)", default="b"),
          _step("add_constraint", constraint='@check(kind, "^[ab]$")')),
    _case(_REQUIRED, "property", "age: I32?", "age: I32?  born: Date",
          _refused("node:Person.born", "adding required property 'born' without a value for existing rows",
                   "OG-MF-103")),
    _case(_RETYPE, "type", "age: I32?", "age: I64?", _type_change("I32?", "I64?", "age")),
    _case(_RETYPE, "question mark taken", "nick: String? @index", "nick: String @index",
          _type_change("String?", "String", "nick"),
          _refused("node:Person.nick", "tightening nullable to required: rows may hold null where String is declared",
                   "OG-MF-104")),
    _case(_RETYPE, "question mark given", "name: String", "name: String?",
          _refused("interface:Named.name", "changing property type from String to String?", "OG-MF-106"),
          _type_change("String", "String?", "name")),
    _case(_RETYPE, "list", "title: String }", "title: [String] }",
          _refused("node:Book.title", "changing property type from String to [String]", "OG-MF-106")),
    _case(_RETYPE, "enum narrowed", "enum(gold, silver)", "enum(gold)",
          _type_change("enum(gold, silver)", "enum(gold)", "tier")),
    _case(_RETYPE, "enum made a String", "enum(gold, silver)", "String",
          _type_change("enum(gold, silver)", "String", "tier")),
    _case(_RETYPE, "more values and nullable", "enum(gold, silver)", "enum(gold, silver, tin)?",
          _type_change("enum(gold, silver)", "enum(gold, silver, tin)?", "tier")),
    _case(_RETYPE, "vector", "Vector(2)", "Vector(3)", _type_change("Vector(2)?", "Vector(3)?", "face")),
    _case(_OTHER, "unique added", "age: I32?", "age: I32? @unique",
          _refused("node:Person", "adding constraint @unique(age)")),
    _case(_OTHER, "range changed", "0..150", "0..99",
          _refused("node:Person", "adding constraint @range(age, 0..99)"),
          _refused("node:Person", "removing constraint @range(age, 0..150)")),
    _case(_OTHER, "check added", "title: String }", 'title: String  @check(title, "^T") }',
          _refused("node:Book", 'adding constraint @check(title, "^T")')),
    _case(_OTHER, "key removed", "label: String @key", "label: String",
          _refused("node:Shelf", "removing constraint @key(label)")),
    _case(_OTHER, "key dropped with its property", "{ label: String @key }", "{ }",
          _refused("node:Shelf", "removing constraint @key(label)"),
          _step("drop_property", "node", "Shelf", property_name="label", mode="soft", code="OG-DS-104")),
    _case(_OTHER, "index removed", "nick: String? @index", "nick: String?",
          _refused("node:Person", "removing constraint @index(nick)")),
    Migration(_OTHER, "interface removed",
              BASE.replace("interface Named { name: String }\n", "").replace("implements Named {", "{ name: String"),
              (_refused("node:Person", "changing implements from Named to nothing"),
               _refused("interface:Named", "removing or renaming interface 'Named'"))),
    _case(_OTHER, "interface renamed", "Named", "Called",
          _type("add_type", "interface", name="Called"),
          _refused("node:Person", "changing implements from Named to Called"),
          _refused("interface:Named", "removing or renaming interface 'Named'"), every=True),
    _case(_OTHER, "implements", "implements Named {", "{ name: String",
          _refused("node:Person", "changing implements from Named to nothing")),
    _case(_OTHER, "endpoints", "edge Holds: Shelf -> Book", "edge Holds: Shelf -> Person",
          _refused("edge:Holds", "changing endpoints from Shelf -> Book to Shelf -> Person")),
    _case(_OTHER, "card", "edge Holds: Shelf -> Book", "edge Holds: Shelf -> Book @card(0..2)",
          _refused("edge:Holds", "changing @card from 0.. to 0..2")),
    _case(_OTHER, "embed", "face: Vector(2)?", 'face: Vector(2)? @embed("name")',
          _refused("node:Person.face", "changing @embed of 'face'")),
    _case(_OTHER, "annotation of a type", "node Book", "node Book @shown(true)",
          _refused("node:Book", "changing annotation @shown")),
    _case(_OTHER, "annotation of a property", "age: I32?", 'age: I32? @unit("years")',
          _refused("node:Person.age", "changing annotation @unit")),
    _case(_NOTHING, "the same", "age: I32?", "age: I32?"),
    _case(_NOTHING, "comments and layout", "node Book { isbn: String @key  title: String }",
          "// on paper\nnode Book {\n  title: String\n  isbn: String\n  @key(isbn)\n}"),
)  # fmt: skip
