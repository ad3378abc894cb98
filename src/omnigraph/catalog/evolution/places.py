"""Where in a schema text an entity of a plan stands."""

from __future__ import annotations

from omnigraph.lang.diagnostics import Position
from omnigraph.lang.pg import ast

_KINDS: dict[str, type[ast.Declaration]] = {
    "interface": ast.InterfaceDecl,
    "node": ast.NodeDecl,
    "edge": ast.EdgeDecl,
}


def position_of(tree: ast.SchemaAst, entity: str, annotation: str | None = None) -> Position | None:
    """The place of `node:Person` or `node:Person.age`, or of an annotation on it; None if the text has it not."""
    owner, _, member = entity.partition(".")
    kind, _, name = owner.partition(":")
    found = _declaration(tree, kind, name)
    if found is None:
        return None
    if not member:
        annotations = () if isinstance(found, ast.InterfaceDecl) else found.annotations
        return _placed(annotations, annotation) or found.at
    declared = _property(tree, found, member)
    return None if declared is None else _placed(declared.annotations, annotation) or declared.at


def _declaration(tree: ast.SchemaAst, kind: str, name: str) -> ast.Declaration | None:
    return next((d for d in tree.declarations if isinstance(d, _KINDS[kind]) and d.name == name), None)


def _property(tree: ast.SchemaAst, owner: ast.Declaration, name: str) -> ast.PropertyDecl | None:
    """The property where it is written: in the type itself, or in the interface the type has it from."""
    own = next((declared for declared in owner.properties if declared.name == name), None)
    if own is not None or not isinstance(owner, ast.NodeDecl):
        return own
    interfaces = (_declaration(tree, "interface", ref.name) for ref in owner.implements)
    offered = (_property(tree, interface, name) for interface in interfaces if interface is not None)
    return next((declared for declared in offered if declared is not None), None)


def _placed(annotations: tuple[ast.Annotation, ...], name: str | None) -> Position | None:
    return next((annotation.at for annotation in annotations if annotation.name == name), None)
