"""A pipeline file as values. Reading it touches neither the graph nor Spark.

Holds for every Definition:
  1. Names of sources and transforms are SQL identifiers and differ from each other, also in lower case.
  2. Paths are as written; `beside` says where they lie: relative ones start where the file lies.
  3. Every part knows its line and dotted path, for what later checks have to say about it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from omnigraph.base.errors import BadRequest, NotFound
from omnigraph.engine.write.load import Mode, OnError
from omnigraph.pipeline.job.problems import Problems, Spot
from omnigraph.pipeline.job.tree import Branch, read_tree
from omnigraph.settings import environment_value

NDJSON = "ndjson"
Severity = Literal["error", "warn"]
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TOP = ("version", "target", "sources", "transforms", "nodes", "edges", "quality", "load", "report")
_NO_FILES = frozenset({"jdbc"})


@dataclass(frozen=True)
class Expression:
    text: str
    spot: Spot


@dataclass(frozen=True)
class Source:
    name: str
    format: str
    paths: tuple[str, ...]
    options: Mapping[str, str] = field(repr=False)
    """Not printed: they may hold a password."""
    spot: Spot


@dataclass(frozen=True)
class Transform:
    name: str
    sql: str
    spot: Spot


@dataclass(frozen=True)
class TypeMapping:
    """Rows for one type. `src` and `dst` are empty for nodes and have a member per key column for edges."""

    kind: Literal["node", "edge"]
    type: str
    origin: Expression
    columns: tuple[tuple[str, Expression], ...]
    where: Expression | None
    src: tuple[Expression, ...]
    dst: tuple[Expression, ...]
    spot: Spot


@dataclass(frozen=True)
class Rule:
    name: str
    on: Expression
    check: Expression
    severity: Severity


@dataclass(frozen=True)
class Target:
    spot: Spot
    graph: str | None = None
    branch: str | None = None
    base: str | None = None
    mode: Mode | None = None
    merge_into: str | None = None
    """The branch that gets the loaded one's changes if every quality rule holds."""


@dataclass(frozen=True)
class LoadSection:
    on_error: OnError = "fail"
    rejects: str | None = None
    max_errors: int | None = None
    index: bool = True
    message: str | None = None
    spot: Spot = Spot(1, "load")


@dataclass(frozen=True)
class Definition:
    file: str
    target: Target
    sources: tuple[Source, ...] = ()
    transforms: tuple[Transform, ...] = ()
    mappings: tuple[TypeMapping, ...] = ()
    rules: tuple[Rule, ...] = ()
    load: LoadSection = LoadSection()
    report: str | None = None

    @property
    def folder(self) -> str:
        return os.path.dirname(self.file)

    def beside(self, path: str) -> str:
        """A path of the file, from where the program runs."""
        return beside(self.folder, path)

    def graph(self, names: Collection[str]) -> str | None:
        """The graph the file names: one of the known names as it is, or a place."""
        named = self.target.graph
        return named if named is None or named in names else self.beside(named)


def beside(folder: str, path: str) -> str:
    return path if "://" in path else os.path.join(folder, os.path.expanduser(path))


def read_definition(file: str) -> Definition:
    """The pipeline a file describes; every problem of its form is told at once."""
    try:
        with open(file, encoding="utf-8") as opened:
            text = opened.read()
    except FileNotFoundError:
        raise NotFound(f"pipeline file '{file}' not found", "Give the path of a pipeline.yaml.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadRequest(f"pipeline file '{file}' cannot be read: {error}") from error
    problems = Problems(file)
    top = read_tree(text, problems)
    found = _definition(file, top) if top is not None else None
    problems.refuse()
    assert found is not None
    return found


def _definition(file: str, top: Branch) -> Definition:
    given = top.members(_TOP, required=("version", "target"))
    if "version" in given and given["version"].scalar() != "1":
        given["version"].problems.add(given["version"].spot, "wrong_value", "version must be 1")
    mappings = [_mapping(item, "node") for item in given["nodes"].items()] if "nodes" in given else []
    mappings += [_mapping(item, "edge") for item in given["edges"].items()] if "edges" in given else []
    found = Definition(
        file,
        _target(given["target"]) if "target" in given else Target(top.spot),
        tuple(_source(name, part) for name, part in given["sources"].entries()) if "sources" in given else (),
        tuple(_transform(name, part) for name, part in given["transforms"].entries()) if "transforms" in given else (),
        tuple(mapping for mapping in mappings if mapping is not None),
        _rules(given["quality"]) if "quality" in given else (),
        _load(given["load"]) if "load" in given else LoadSection(),
        given["report"].text() if "report" in given else None,
    )
    _check_names(found, top.problems)
    if not found.mappings and not any(s.format == NDJSON for s in found.sources) and not len(top.problems):
        top.problems.add(top.spot, "missing_key", "there is nothing to load: add nodes, edges or an ndjson source")
    return found


def _target(part: Branch) -> Target:
    names = ("graph", "branch", "from", "merge_into")
    given = part.members((*names, "mode"))
    texts = {name: given[name].text() if name in given else None for name in names}
    mode: Any = given["mode"].one_of(get_args(Mode)) if "mode" in given else None
    return Target(part.spot, texts["graph"], texts["branch"], texts["from"], mode, texts["merge_into"])


def _source(name: str, part: Branch) -> Source:
    given = part.members(("format", "path", "options"), required=("format",))
    format_ = (given["format"].text() or "").lower() if "format" in given else ""
    paths: tuple[str, ...] = ()
    if "path" in given:
        parts = given["path"].items() if given["path"].is_list else [given["path"]]
        paths = tuple(path for path in (each.text() for each in parts) if path is not None)
    options = dict(_option(*entry) for entry in given["options"].entries()) if "options" in given else {}
    if format_ and "path" not in given and format_ not in _NO_FILES and format_ in _FILE_FORMATS:
        part.problems.add(part.spot.member("path"), "missing_key", "'path' is missing")
    if format_ == NDJSON and options:
        part.problems.add(given["options"].spot, "unknown_key", "an ndjson source has no options")
    return Source(name, format_, paths, options, part.spot)


_FILE_FORMATS = frozenset({"csv", "json", "ndjson", "parquet", "orc", "text", "avro", "xml", "binaryfile"})


def _option(name: str, part: Branch) -> tuple[str, str]:
    if not part.is_mapping:
        return name, part.scalar() or ""
    given = part.members(("env",), required=("env",))
    variable = given["env"].text() if "env" in given else None
    value = environment_value(variable) if variable else None
    if variable and value is None:
        part.problems.add(part.spot, "missing_value", f"environment variable {variable} is not set")
    return name, value or ""


def _transform(name: str, part: Branch) -> Transform:
    return Transform(name, part.text() or "", part.spot)


def _mapping(part: Branch, kind: Literal["node", "edge"]) -> TypeMapping | None:
    ends = ("src", "dst") if kind == "edge" else ()
    needed = ("type", "from", *(("map",) if kind == "node" else ends))
    given = part.members(("type", "from", "map", "where", *ends), required=needed)
    columns = [(n, _expression(e)) for n, e in given["map"].entries()] if "map" in given else []
    type_ = given["type"].text() if "type" in given else None
    origin = _expression(given["from"]) if "from" in given else None
    where = _expression(given["where"]) if "where" in given else None
    src, dst = (_end(given[end]) if end in given else () for end in ("src", "dst"))
    if type_ is None or origin is None:
        return None
    known = tuple((name, column) for name, column in columns if column is not None)
    return TypeMapping(kind, type_, origin, known, where, src, dst, part.spot)


def _end(part: Branch) -> tuple[Expression, ...]:
    members = part.items() if part.is_list else [part]
    if not members:
        part.wrong("a column or a list of columns")
    return tuple(found for found in map(_expression, members) if found is not None)


def _expression(part: Branch) -> Expression | None:
    text = part.expression()
    return None if text is None else Expression(text, part.spot)


def _rules(part: Branch) -> tuple[Rule, ...]:
    found: list[Rule] = []
    for item in part.items():
        given = item.members(("name", "on", "check", "severity"), required=("name", "on", "check"))
        name = given["name"].text() if "name" in given else None
        on = _expression(given["on"]) if "on" in given else None
        check = _expression(given["check"]) if "check" in given else None
        severity = given["severity"].one_of(get_args(Severity)) if "severity" in given else "error"
        if name is None or on is None or check is None or severity is None:
            continue
        if name in [rule.name for rule in found]:
            item.problems.add(given["name"].spot, "duplicate_name", f"two rules are named '{name}'")
        found.append(Rule(name, on, check, severity))  # type: ignore[arg-type]
    return tuple(found)


def _load(part: Branch) -> LoadSection:
    given = part.members(("on_error", "rejects", "max_errors", "index", "message"))
    on_error = given["on_error"].one_of(get_args(OnError)) if "on_error" in given else None
    index = given["index"].flag() if "index" in given else None
    section = LoadSection(
        on_error or "fail",  # type: ignore[arg-type]
        given["rejects"].text() if "rejects" in given else None,
        given["max_errors"].count() if "max_errors" in given else None,
        True if index is None else index,
        given["message"].text() if "message" in given else None,
        part.spot,
    )
    if section.rejects is not None and section.on_error == "fail":
        told = "a rejects file is only written with on_error: quarantine"
        part.problems.add(given["rejects"].spot, "wrong_value", told)
    return section


def _check_names(found: Definition, problems: Problems) -> None:
    taken: dict[str, str] = {}
    parts: list[Source | Transform] = [*found.sources, *found.transforms]
    for part in parts:
        if not _NAME.fullmatch(part.name):
            told = f"'{part.name}' cannot be a name in SQL; use letters, digits and _"
            problems.add(part.spot, "bad_name", told)
        if part.name.lower() in taken:
            problems.add(
                part.spot, "duplicate_name", f"'{part.name}' is the name of {taken[part.name.lower()]} already"
            )
        taken[part.name.lower()] = "a source" if isinstance(part, Source) else "a transform"
