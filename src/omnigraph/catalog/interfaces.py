"""Gives nodes the properties of the interfaces they implement.

Holds at every return: each property of each interface is in the node with the identical type, declared or injected.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from omnigraph.catalog.annotations import STRUCTURAL, compile_type
from omnigraph.lang.diagnostics import did_you_mean, parse_error
from omnigraph.lang.pg import ast

_HINT = "rename_from"


def with_injected(node: ast.NodeDecl, interfaces: Mapping[str, ast.InterfaceDecl]) -> tuple[ast.PropertyDecl, ...]:
    """The node's own properties, then those its interfaces add."""
    own = {declared.name: declared for declared in node.properties}
    injected: dict[str, tuple[str, ast.PropertyDecl]] = {}
    seen: set[str] = set()
    for ref in node.implements:
        if ref.name not in interfaces:
            text = f"node '{node.name}' implements unknown interface '{ref.name}'"
            raise parse_error(text, ref.at, did_you_mean(ref.name, interfaces))
        if ref.name in seen:
            raise parse_error(f"node '{node.name}' implements '{ref.name}' twice", ref.at)
        seen.add(ref.name)
        for offered in interfaces[ref.name].properties:
            if offered.name in own:
                _refuse_other_type(node, own[offered.name], ref, offered)
                continue
            given = _as_injected(offered)
            if offered.name in injected:
                _refuse_disagreement(node, injected[offered.name], ref, given)
            if offered.name not in injected or _hint(given) is not None:
                injected[offered.name] = (ref.name, given)
    return (*node.properties, *(given for _, given in injected.values()))


def _as_injected(offered: ast.PropertyDecl) -> ast.PropertyDecl:
    # A hint goes along: a node's column is renamed with the interface's property, not dropped and added.
    given = (*STRUCTURAL, _HINT)
    kept = sorted((a for a in offered.annotations if a.name in given), key=lambda a: a.name)
    return replace(offered, annotations=tuple(kept))


def _hint(declared: ast.PropertyDecl) -> ast.Value | None:
    return next((annotation.value for annotation in declared.annotations if annotation.name == _HINT), None)


def _refuse_other_type(node: ast.NodeDecl, own: ast.PropertyDecl, ref: ast.TypeRef, offered: ast.PropertyDecl) -> None:
    mine, theirs = compile_type(own.type), compile_type(offered.type)
    if mine != theirs:
        text = f"property {node.name}.{own.name} has type {mine}, but interface '{ref.name}' declares {theirs}"
        raise parse_error(text, own.at)


def _refuse_disagreement(
    node: ast.NodeDecl, first: tuple[str, ast.PropertyDecl], ref: ast.TypeRef, given: ast.PropertyDecl
) -> None:
    name, before = first
    same_type = compile_type(before.type) == compile_type(given.type)
    hints = {_hint(before), _hint(given)} - {None}
    marks = [[a for a in declared.annotations if a.name != _HINT] for declared in (before, given)]
    if not same_type or marks[0] != marks[1] or len(hints) > 1:
        what = "annotations" if same_type else "type"
        text = f"interfaces '{name}' and '{ref.name}' disagree on the {what} of property '{given.name}'"
        raise parse_error(f"{text} injected into node '{node.name}'", ref.at)
