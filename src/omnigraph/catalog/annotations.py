"""The rules of annotations after properties and in type headers.

Holds at every return: each annotation is allowed where it stands; the engine's own became fields or constraints.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import assert_never

from omnigraph.catalog.catalog import Annotation, Constraint, Embed, Index, Key, Kind, Property, Unique
from omnigraph.catalog.types import PropertyType, ScalarType
from omnigraph.catalog.values import default_value
from omnigraph.lang.diagnostics import nearest_name, parse_error
from omnigraph.lang.pg import ast
from omnigraph.lang.pg.printer import print_arguments

_ROW_NAMES = ("_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version")
_RESERVED: dict[Kind, tuple[str, ...]] = {
    "interface": (*_ROW_NAMES, "id"),
    "node": (*_ROW_NAMES, "id"),
    "edge": (*_ROW_NAMES, "id", "src", "dst", "from", "to"),
}
_ONCE = ("key", "unique", "index", "embed", "default", "rename_from", "description", "instruction")
_MEANT = (*_ONCE, "range", "check", "card")
STRUCTURAL = ("key", "unique", "index", "embed")


@dataclass(frozen=True)
class TypeNotes:
    """What the header of a type says about it."""

    description: str | None
    instruction: str | None
    rename_from: str | None
    annotations: tuple[Annotation, ...]


def compile_type(written: ast.TypeExpr) -> PropertyType:
    """The property type as written, with the rules a grammar cannot say."""
    match written.form:
        case ast.TypeForm.VECTOR:
            return PropertyType(ScalarType.VECTOR, written.nullable, dimension=written.dimension)
        case ast.TypeForm.ENUM:
            value, times = Counter(written.values).most_common(1)[0]
            if times > 1:
                raise parse_error(f"duplicate enum value '{value}'", written.at)
            return PropertyType(ScalarType.STRING, written.nullable, enum_values=tuple(sorted(written.values)))
        case ast.TypeForm.LIST:
            if written.base == ScalarType.BLOB.value:
                raise parse_error("Blob is not supported as a list element", written.at)
            return PropertyType(ScalarType(written.base), written.nullable, is_list=True)
        case ast.TypeForm.SCALAR:
            return PropertyType(ScalarType(written.base), written.nullable)
        case _:
            assert_never(written.form)


def compile_property(written: ast.PropertyDecl, owner: str, kind: Kind) -> tuple[Property, tuple[Constraint, ...]]:
    """The property, and the constraints its annotations stand for."""
    if written.name in _RESERVED[kind]:
        raise parse_error(f"property name '{written.name}' is reserved on {kind} types", written.at)
    type_ = compile_type(written.type)
    _refuse_repeats(written.annotations)
    place = f"{owner}.{written.name}"
    for annotation in written.annotations:
        if annotation.name in STRUCTURAL:
            _refuse_misplaced(annotation, type_, place, kind)
        elif annotation.name == "instruction":
            raise parse_error("@instruction is only supported on node and edge types", annotation.at)
    named = {annotation.name: annotation for annotation in written.annotations}
    known = Property(
        written.name,
        type_,
        description=_text_of(named.get("description")),
        default=_default(type_, named.get("default"), place),
        embed=_embed(named.get("embed")),
        annotations=_opaque(written.annotations),
        rename_from=_text_of(named.get("rename_from")),
    )
    return known, _marks(written)


def compile_notes(annotations: tuple[ast.Annotation, ...]) -> TypeNotes:
    _refuse_repeats(annotations)
    named = {annotation.name: annotation for annotation in annotations}
    if "default" in named:
        raise parse_error("@default is only supported on properties", named["default"].at)
    return TypeNotes(
        _text_of(named.get("description")),
        _text_of(named.get("instruction")),
        _text_of(named.get("rename_from")),
        _opaque(annotations),
    )


def _marks(written: ast.PropertyDecl) -> tuple[Constraint, ...]:
    found: list[Constraint] = []
    for annotation in written.annotations:
        match annotation.name:
            case "key":
                found.append(Key((written.name,)))
            case "unique":
                found.append(Unique((written.name,)))
            case "index":
                found.append(Index((written.name,)))
    return tuple(found)


def _refuse_repeats(annotations: tuple[ast.Annotation, ...]) -> None:
    seen: set[str] = set()
    for annotation in annotations:
        if annotation.name in seen and annotation.name in _ONCE:
            raise parse_error(f"@{annotation.name} may be given only once", annotation.at)
        seen.add(annotation.name)


def _refuse_misplaced(annotation: ast.Annotation, type_: PropertyType, place: str, kind: Kind) -> None:
    name = annotation.name
    if kind == "edge" and name in ("key", "embed"):
        raise parse_error(f"@{name} is not supported on edge property {place}", annotation.at)
    if type_.is_list:
        raise parse_error(f"@{name} is not supported on list property {place}", annotation.at)
    if type_.is_blob:
        raise parse_error(f"@{name} is not supported on Blob property {place}", annotation.at)
    if type_.is_vector and name in ("key", "unique"):
        raise parse_error(f"@{name} is not supported on Vector property {place}", annotation.at)
    if name == "embed" and not type_.is_vector:
        raise parse_error(f"@embed is only supported on Vector properties, {place} is {type_}", annotation.at)
    if name != "embed" and (annotation.value is not None or annotation.keywords):
        raise parse_error(f"@{name} after a property takes no argument", annotation.at)


def _text_of(annotation: ast.Annotation | None) -> str | None:
    """The one non-empty string of `@description`, `@instruction` or `@rename_from`."""
    if annotation is None:
        return None
    match annotation:
        case ast.Annotation(value=ast.Literal(value=str() as text), keywords=()) if text:
            return text
        case _:
            raise parse_error(f"@{annotation.name} requires one non-empty string", annotation.at)


def _default(type_: PropertyType, annotation: ast.Annotation | None, place: str) -> str | int | float | bool | None:
    if annotation is None:
        return None
    if annotation.value is None or annotation.keywords:
        raise parse_error(f"@default on {place} requires exactly one literal", annotation.at)
    try:
        return default_value(type_, annotation.value)
    except ValueError as why:
        raise parse_error(f"{place}: {why}", annotation.value.at) from None


def _embed(annotation: ast.Annotation | None) -> Embed | None:
    if annotation is None:
        return None
    match annotation.value:
        case ast.Literal(value=str() as source) if source:
            pass
        case ast.Ident(text=source):
            pass
        case _:
            raise parse_error("@embed requires the name of a String property", annotation.at)
    model = None
    for keyword in annotation.keywords:
        if keyword.name != "model":
            raise parse_error(f"@embed does not know keyword '{keyword.name}', only model", keyword.at)
        if not isinstance(keyword.value.value, str) or not keyword.value.value:
            raise parse_error("@embed model must be a non-empty string", keyword.at)
        model = keyword.value.value
    return Embed(source, model)


def _opaque(annotations: tuple[ast.Annotation, ...]) -> tuple[Annotation, ...]:
    foreign = (a for a in annotations if a.name not in _ONCE)
    return tuple(sorted(Annotation(a.name, print_arguments(a)) for a in foreign))


def look_alikes(schema: ast.SchemaAst) -> list[tuple[ast.Annotation, str]]:
    """Annotations that mean nothing here, with the one each looks like; they are kept, so only a person can tell."""
    written: list[ast.Annotation] = []
    for declared in schema.declarations:
        written += () if isinstance(declared, ast.InterfaceDecl) else declared.annotations
        written += [annotation for property_ in declared.properties for annotation in property_.annotations]
    meant = [(annotation, nearest_name(annotation.name, _MEANT)) for annotation in written]
    return [(annotation, like) for annotation, like in meant if like is not None and annotation.name not in _MEANT]
