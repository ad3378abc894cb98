"""What `omnigraph embed` is told: which texts of which types become which vectors, in a file or a seed manifest."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from omnigraph.base.errors import BadRequest, NotFound

_EXAMPLE = "For example: {dimension: 8, types: {Doc: {target: vec, fields: [title, body]}}}."


@dataclass(frozen=True)
class TypeSpec:
    """The vector property `target` is made of the text of `fields`."""

    target: str
    fields: tuple[str, ...]


@dataclass(frozen=True)
class EmbedSpec:
    dimension: int
    types: Mapping[str, TypeSpec]
    model: str | None = None

    @staticmethod
    def read(path: str | os.PathLike[str]) -> EmbedSpec:
        """From a YAML or JSON file."""
        return EmbedSpec.of(_loaded(os.fspath(path), "spec"), os.fspath(path))

    @staticmethod
    def of(content: Any, place: str = "spec") -> EmbedSpec:
        """From a mapping as files hold it; errors begin with `place`."""
        found = _members(content, place, {"dimension", "model", "types"})
        dimension, model = found.get("dimension"), found.get("model")
        if type(dimension) is not int or dimension < 1:
            raise _wrong(place, "dimension expects a whole number of 1 or more")
        if model is not None and (not isinstance(model, str) or not model):
            raise _wrong(place, "model expects a text")
        types = found.get("types")
        if not isinstance(types, dict) or not types:
            raise _wrong(place, "types expects a mapping of at least one type")
        return EmbedSpec(
            dimension, {_name(name, place): _type(t, f"{place}: {name}") for name, t in types.items()}, model
        )


@dataclass(frozen=True)
class Seed:
    """A manifest of seed files: what is embedded into what, and how."""

    input: str
    output: str
    spec: EmbedSpec

    @staticmethod
    def read(path: str | os.PathLike[str]) -> Seed:
        """Relative paths of a manifest start where it lies; members that belong to others are left alone."""
        place = os.fspath(path)
        content = _loaded(place, "seed manifest")
        if not isinstance(content, dict):
            raise _wrong(place, "expects a mapping")
        if "embeddings" not in content:
            raise _wrong(place, "embeddings is missing")
        folder = os.path.dirname(place)
        raw = _path(content, "sources", "raw_seed", place)
        embedded = _path(content, "artifacts", "embedded_seed", place)
        spec = EmbedSpec.of(content["embeddings"], f"{place}: embeddings")
        return Seed(os.path.join(folder, raw), os.path.join(folder, embedded), spec)


def _type(content: Any, place: str) -> TypeSpec:
    found = _members(content, place, {"target", "fields"})
    target, named = found.get("target"), found.get("fields")
    if not isinstance(target, str) or not target:
        raise _wrong(place, "target expects the name of a vector property")
    if not isinstance(named, list) or not named or not all(isinstance(name, str) and name for name in named):
        raise _wrong(place, "fields expects a list of property names")
    if target in named:
        raise _wrong(place, f"target '{target}' cannot be one of its own fields")
    return TypeSpec(target, tuple(named))


def _path(content: dict[str, Any], block: str, member: str, place: str) -> str:
    found = content.get(block)
    value = found.get(member) if isinstance(found, dict) else None
    if not isinstance(value, str) or not value:
        raise _wrong(place, f"{block}.{member} expects a path")
    return value


def _members(content: Any, place: str, known: set[str]) -> dict[Any, Any]:
    if not isinstance(content, dict):
        raise _wrong(place, f"expects a mapping of {', '.join(sorted(known))}")
    for name in content:
        if name not in known:
            raise _wrong(place, f"does not know '{name}', only {', '.join(sorted(known))}")
    return content


def _name(name: Any, place: str) -> str:
    if not isinstance(name, str) or not name:
        raise _wrong(place, f"types expects names, not {name!r}")
    return name


def _wrong(place: str, text: str) -> BadRequest:
    return BadRequest(f"{place}: {text}", _EXAMPLE)


def _loaded(path: str, what: str) -> Any:
    try:
        with open(path, encoding="utf-8") as file:
            return yaml.safe_load(file)
    except FileNotFoundError:
        raise NotFound(f"{what} file '{path}' not found", "Check the path.") from None
    except UnicodeDecodeError:
        raise BadRequest(f"{what} file '{path}' is not UTF-8", "Save it as UTF-8.") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark is not None else ""
        raise BadRequest(f"{path}{line}: {getattr(error, 'problem', None) or 'is no YAML'}", _EXAMPLE) from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise BadRequest(f"{what} file '{path}' cannot be read: {why}") from None
