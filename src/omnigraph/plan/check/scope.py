"""Which names mean what at one place of a query.

Holds for every scope:
  1. A name is a parameter, a node variable or an edge variable, never two of them.
  2. Names of a block are seen in the `not` blocks inside it and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping

from omnigraph.base.errors import TypeCheckError
from omnigraph.catalog.catalog import Catalog, EdgeType, TableType
from omnigraph.catalog.types import PropertyType
from omnigraph.lang.diagnostics import known_names, type_error
from omnigraph.lang.gq import ast
from omnigraph.plan.typed import EntityId, Parameter, PropertyValue, Variable
from omnigraph.plan.values import STRING

ANONYMOUS = "_"
_NOT_ADDRESSABLE = ("src", "dst", "from", "to")


class Scope:
    """The variables of one block on top of those around it."""

    def __init__(self, catalog: Catalog, params: Mapping[str, PropertyType], outer: Scope | None = None) -> None:
        self.catalog = catalog
        self.params = params
        self.outer = outer
        self._own: dict[str, TableType] = {}

    def inner(self) -> Scope:
        return Scope(self.catalog, self.params, self)

    def bind(self, name: str, type_: TableType) -> None:
        """Give a name its type; one that an outer block bound stays there."""
        if self.find(name) is None:
            self._own[name] = type_

    def find(self, name: str) -> TableType | None:
        scope: Scope | None = self
        while scope is not None:
            if name in scope._own:
                return scope._own[name]
            scope = scope.outer
        return None

    def names(self) -> list[str]:
        """Every variable seen here."""
        return [*self._own, *(self.outer.names() if self.outer else [])]

    def variables(self) -> tuple[Variable, ...]:
        """Those bound in this very block."""
        return tuple(Variable(name, self._own[name]) for name in sorted(self._own))

    def resolve(self, var: ast.Var) -> Parameter | EntityId:
        """What a bare `$name` stands for."""
        if var.name in self.params:
            type_ = self.params[var.name]
            if type_.is_blob:
                raise type_error("T24", f"Blob parameter '${var.name}' is never a value in a read", var.at)
            return Parameter(var.name, type_)
        found = self.find(var.name)
        if isinstance(found, EdgeType):
            hint = f"Write ${var.name}.id or one of its properties."
            raise type_error("T23", f"edge variable '${var.name}' is used only as ${var.name}.property", var.at, hint)
        if found is None:
            raise self._not_bound(var.name, "T6", var)
        return EntityId(var.name, found)

    def property(self, ref: ast.PropertyRef, unbound_rule: str = "T6") -> PropertyValue:
        """What `$variable.name` reads."""
        if ref.variable in self.params:
            text = f"'${ref.variable}' is a parameter and has no property '{ref.name}'"
            raise type_error("T6", text, ref.at)
        owner = self.find(ref.variable)
        if owner is None:
            raise self._not_bound(ref.variable, unbound_rule, ref)
        if ref.name == "id":
            return PropertyValue(ref.variable, owner, "id", STRING)
        known = owner.find_property(ref.name)
        if known is None:
            raise _unknown_property(owner, ref)
        if known.type.is_blob:
            raise type_error("T24", f"Blob property '{owner.name}.{ref.name}' is never a value in a read", ref.name_at)
        return PropertyValue(ref.variable, owner, ref.name, known.type)

    def _not_bound(self, name: str, rule: str, node: ast.Var | ast.PropertyRef) -> TypeCheckError:
        if name == ANONYMOUS:
            return type_error(rule, "variable '$_' is not bound: it binds nothing", node.at, "Give it a name.")
        known = [*self.names(), *self.params]
        return type_error(rule, f"variable '${name}' is not bound", node.at, meant_variable(name, known))


def meant_variable(name: str, known: list[str]) -> str:
    return known_names(f"${name}", [f"${other}" for other in known], "Bound here:")


def _unknown_property(owner: TableType, ref: ast.PropertyRef) -> TypeCheckError:
    if isinstance(owner, EdgeType) and ref.name in _NOT_ADDRESSABLE:
        text = f"'{ref.name}' of edge type {owner.name} is not addressable"
        return type_error("T6", text, ref.name_at, "Name the endpoints of the traversal and use their id.")
    names = [*(known.name for known in owner.properties), "id"]
    text = f"{owner.kind} type {owner.name} has no property '{ref.name}'"
    return type_error("T6", text, ref.name_at, known_names(ref.name, names, "It has"))
