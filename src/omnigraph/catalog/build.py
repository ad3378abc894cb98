"""Compiles a syntax tree into a Catalog without ids.

Holds at every return: every rule of the schema language holds; a tree that breaks one is refused with its position.
Names and endpoints are refused as catalog errors, everything inside a declaration as a parse error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from omnigraph.base.errors import SourceError
from omnigraph.catalog.annotations import compile_notes, compile_property
from omnigraph.catalog.catalog import (
    Cardinality,
    Catalog,
    Constraint,
    EdgeType,
    InterfaceType,
    Kind,
    NodeType,
    Property,
)
from omnigraph.catalog.constraints import (
    compile_constraint,
    refuse_bad_default,
    refuse_bad_embed,
    refuse_bad_key,
    value_constraints,
)
from omnigraph.catalog.interfaces import with_injected
from omnigraph.lang.diagnostics import Position, catalog_error, did_you_mean, parse_error
from omnigraph.lang.pg import ast
from omnigraph.lang.pg.parser import parse_schema

Body = tuple[tuple[Property, ...], tuple[Constraint, ...]]


def compile_source(text: str, file: str | None = None) -> Catalog:
    """The catalog of a schema text, without ids."""
    return build(parse_schema(text, file))


def build(tree: ast.SchemaAst) -> Catalog:
    """The catalog of a syntax tree, without ids."""
    try:
        return _build(tree)
    except SourceError as error:
        error.file = tree.file
        raise


def _build(tree: ast.SchemaAst) -> Catalog:
    interfaces = [d for d in tree.declarations if isinstance(d, ast.InterfaceDecl)]
    nodes = [d for d in tree.declarations if isinstance(d, ast.NodeDecl)]
    edges = [d for d in tree.declarations if isinstance(d, ast.EdgeDecl)]
    _refuse_duplicates("interface", interfaces)
    _refuse_duplicates("node type", nodes)
    _refuse_duplicates("edge type", edges)
    _refuse_folded_edges(edges)
    offered = {declared.name: declared for declared in interfaces}
    node_names = {declared.name for declared in nodes}
    return Catalog(
        tuple(sorted((_interface(declared) for declared in interfaces), key=lambda t: t.name)),
        tuple(sorted((_node(declared, offered) for declared in nodes), key=lambda t: t.name)),
        tuple(sorted((_edge(declared, node_names, offered) for declared in edges), key=lambda t: t.name)),
    )


def _refuse_duplicates(what: str, declared: Iterable[ast.Declaration]) -> None:
    seen: set[str] = set()
    for declaration in declared:
        if declaration.name in seen:
            raise catalog_error(f"duplicate {what}: {declaration.name}", declaration.at)
        seen.add(declaration.name)


def _refuse_folded_edges(edges: Iterable[ast.EdgeDecl]) -> None:
    seen: dict[str, str] = {}
    for edge in edges:
        other = seen.setdefault(edge.name.lower(), edge.name)
        if other != edge.name:
            raise catalog_error(f"edge name collision after case folding: '{other}' and '{edge.name}'", edge.at)


def _interface(declared: ast.InterfaceDecl) -> InterfaceType:
    _refuse_repeated_names(declared.name, declared.properties)
    compiled = [compile_property(written, declared.name, "interface") for written in declared.properties]
    properties = tuple(sorted((known for known, _ in compiled), key=lambda p: p.name))
    return InterfaceType(declared.name, properties, _once([mark for _, marks in compiled for mark in marks]))


def _node(declared: ast.NodeDecl, interfaces: Mapping[str, ast.InterfaceDecl]) -> NodeType:
    _refuse_repeated_names(declared.name, declared.properties)
    notes = compile_notes(declared.annotations)
    properties, constraints = _body(declared, with_injected(declared, interfaces), "node")
    return NodeType(
        declared.name,
        properties,
        constraints,
        description=notes.description,
        instruction=notes.instruction,
        annotations=notes.annotations,
        rename_from=notes.rename_from,
        implements=tuple(sorted(ref.name for ref in declared.implements)),
    )


def _edge(declared: ast.EdgeDecl, nodes: set[str], interfaces: Mapping[str, object]) -> EdgeType:
    for ref, end in ((declared.source, "source"), (declared.target, "target")):
        if ref.name not in nodes:
            hint = did_you_mean(ref.name, nodes)
            if ref.name in interfaces:
                hint = f"'{ref.name}' is an interface, and interfaces cannot be edge endpoints."
            raise catalog_error(f"edge '{declared.name}' references unknown {end} type '{ref.name}'", ref.at, hint)
    _refuse_repeated_names(declared.name, declared.properties)
    notes = compile_notes(declared.annotations)
    properties, constraints = _body(declared, declared.properties, "edge")
    card = Cardinality() if declared.card is None else Cardinality(declared.card.min, declared.card.max)
    return EdgeType(
        declared.name,
        properties,
        constraints,
        description=notes.description,
        instruction=notes.instruction,
        annotations=notes.annotations,
        rename_from=notes.rename_from,
        src_type=declared.source.name,
        dst_type=declared.target.name,
        cardinality=card,
    )


def _body(owner: ast.NodeDecl | ast.EdgeDecl, written: tuple[ast.PropertyDecl, ...], kind: Kind) -> Body:
    """Properties sorted by name and constraints in canonical order, checked against each other."""
    known: dict[str, Property] = {}
    placed: list[tuple[Constraint, Position]] = []
    for declared in written:
        compiled, marks = compile_property(declared, owner.name, kind)
        known[compiled.name] = compiled
        placed.extend((mark, declared.at) for mark in marks)
    for constraint in owner.constraints:
        placed.append((compile_constraint(constraint, owner.name, kind, known), constraint.at))
    refuse_bad_key(placed, owner.name, known)
    constraints = [constraint for constraint, _ in placed]
    bounds = value_constraints(constraints)
    for declared in written:
        compiled = known[declared.name]
        if compiled.embed is not None:
            refuse_bad_embed(compiled, owner.name, known, declared.at)
        if compiled.default is not None:
            refuse_bad_default(compiled, owner.name, bounds[compiled.name], declared.at)
    return tuple(sorted(known.values(), key=lambda p: p.name)), _once(constraints)


def _refuse_repeated_names(owner: str, written: Iterable[ast.PropertyDecl]) -> None:
    seen: set[str] = set()
    for declared in written:
        if declared.name in seen:
            raise parse_error(f"duplicate property: {owner}.{declared.name}", declared.at)
        seen.add(declared.name)


def _once(constraints: list[Constraint]) -> tuple[Constraint, ...]:
    """Equal constraints once, in an order that does not depend on how the source is laid out."""
    return tuple(sorted(dict.fromkeys(constraints), key=str))
