"""The rules of body constraints, and of what defaults and embeddings must fit.

Holds at every return: a constraint names properties that exist and may carry it; its pattern or bounds are usable.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.catalog import Check, Constraint, Index, Key, Kind, Property, Range, Unique
from omnigraph.catalog.types import PropertyType
from omnigraph.catalog.values import range_bound
from omnigraph.lang.diagnostics import Position, did_you_mean, parse_error
from omnigraph.lang.pg import ast

Properties = Mapping[str, Property]
_ENDPOINTS = ("src", "dst")


def compile_constraint(written: ast.Constraint, owner: str, kind: Kind, known: Properties) -> Constraint:
    if kind == "edge" and written.name in ("key", "range", "check"):
        raise parse_error(f"@{written.name} constraint is not supported on edges", written.at)
    match written.name:
        case "range":
            return _range(written, owner, known)
        case "check":
            return _check(written, owner, known)
    columns = _columns(written, owner, known, kind)
    match written.name:
        case "key":
            return Key(columns)
        case "unique":
            return Unique(columns)
        case _:
            return Index(columns)


def refuse_bad_key(constraints: list[tuple[Constraint, Position]], owner: str, known: Properties) -> None:
    """At most one key, of required scalar properties."""
    keys = [(constraint, at) for constraint, at in constraints if isinstance(constraint, Key)]
    if len(keys) > 1:
        raise parse_error(f"node '{owner}' has multiple @key constraints", keys[1][1])
    for key, at in keys:
        for column in key.columns:
            if known[column].type.nullable:
                raise parse_error(f"@key property {owner}.{column} must be required, it is {known[column].type}", at)


def refuse_bad_embed(source: Property, owner: str, known: Properties, at: Position) -> None:
    """The text an embedding is made of must be a String property of the same type."""
    assert source.embed is not None
    text = known.get(source.embed.source)
    if text is None:
        message = f"@embed on {owner}.{source.name} names unknown property '{source.embed.source}'"
        raise parse_error(message, at, did_you_mean(source.embed.source, known))
    if not text.type.is_string:
        raise parse_error(f"@embed source {owner}.{text.name} must be a String property, it is {text.type}", at)


def value_constraints(constraints: list[Constraint]) -> Mapping[str, list[Range | Check]]:
    """The constraints on single values, by the property they are about."""
    found: defaultdict[str, list[Range | Check]] = defaultdict(list)
    for constraint in constraints:
        if isinstance(constraint, Range | Check):
            found[constraint.column].append(constraint)
    return found


def refuse_bad_default(declared: Property, owner: str, bounds: list[Range | Check], at: Position) -> None:
    """A default keeps the property's own `@range` and `@check`."""
    value, place = declared.default, f"{owner}.{declared.name}"
    for constraint in bounds:
        if isinstance(constraint, Check):
            if not _matches(str(value), constraint.pattern):
                text = f"@default value '{value}' on {place} does not match pattern '{constraint.pattern}'"
                raise parse_error(text, at)
            continue
        assert isinstance(value, int | float)
        lo, hi = constraint.lo, constraint.hi
        if (lo is not None and value < lo) or (hi is not None and value > hi):
            raise parse_error(f"@default value {value} on {place} is outside {constraint}", at)


def _columns(written: ast.Constraint, owner: str, known: Properties, kind: Kind) -> tuple[str, ...]:
    columns: dict[str, None] = {}
    for arg in written.args:
        if not isinstance(arg, ast.Ident):
            raise parse_error(f"@{written.name} takes only property names", arg.at)
        if arg.text in columns:
            raise parse_error(f"@{written.name} repeats property '{arg.text}'", arg.at)
        if kind == "edge" and arg.text in _ENDPOINTS:
            if written.name != "unique":
                raise parse_error(f"@{written.name} on '{arg.text}' is not supported: endpoints are indexed", arg.at)
        else:
            _refuse_member(written.name, _member(written.name, arg, owner, known).type, f"{owner}.{arg.text}", arg.at)
        columns[arg.text] = None
    if not columns:
        raise parse_error(f"@{written.name} requires at least one property name", written.at)
    return tuple(columns)


def _member(name: str, arg: ast.Ident, owner: str, known: Properties) -> Property:
    if arg.text not in known:
        text = f"@{name} names unknown property '{arg.text}' of '{owner}'"
        raise parse_error(text, arg.at, did_you_mean(arg.text, known))
    return known[arg.text]


def _refuse_member(name: str, type_: PropertyType, place: str, at: Position) -> None:
    if type_.is_list:
        raise parse_error(f"@{name} is not supported on list property {place}", at)
    if type_.is_blob:
        raise parse_error(f"@{name} is not supported on Blob property {place}", at)
    if type_.is_vector and name != "index":
        raise parse_error(f"@{name} is not supported on Vector property {place}", at)


def _range(written: ast.Constraint, owner: str, known: Properties) -> Range:
    match written.args:
        case (ast.Ident() as column, ast.Bound() as bound):
            pass
        case _:
            _refuse_form(written, "a property name and lo..hi")
    declared = _member("range", column, owner, known)
    if not declared.type.is_numeric:
        raise parse_error(f"@range requires a numeric property, {owner}.{column.text} is {declared.type}", column.at)
    try:
        lo = None if bound.lo is None else range_bound(declared.type, bound.lo, lower=True)
        hi = None if bound.hi is None else range_bound(declared.type, bound.hi, lower=False)
    except ValueError as why:
        raise parse_error(f"{owner}.{column.text}: {why}", bound.at) from None
    if lo is not None and hi is not None and lo > hi:
        raise parse_error(f"@range on {owner}.{column.text} admits no value: min {lo} > max {hi}", bound.at)
    return Range(column.text, lo, hi)


def _check(written: ast.Constraint, owner: str, known: Properties) -> Check:
    match written.args:
        case (ast.Ident() as column, ast.Literal(value=str() as pattern) as literal):
            pass
        case _:
            _refuse_form(written, "a property name and a string")
    declared = _member("check", column, owner, known)
    if not declared.type.is_string:
        raise parse_error(f"@check requires a String property, {owner}.{column.text} is {declared.type}", column.at)
    try:
        # A null is enough to have the pattern compiled, and unlike a text it does not make pyarrow import pandas.
        pc.match_substring_regex(pa.nulls(1, pa.string()), pattern=pattern)
    except pa.ArrowInvalid as why:
        raise parse_error(f"@check pattern on {owner}.{column.text} is invalid: {why}", literal.at) from None
    return Check(column.text, pattern)


def _refuse_form(written: ast.Constraint, form: str) -> NoReturn:
    raise parse_error(f"@{written.name} requires {form}", written.at)


def _matches(value: str, pattern: str) -> bool:
    return bool(pc.match_substring_regex(pa.scalar(value), pattern=pattern).as_py())
