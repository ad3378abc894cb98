"""What the source and the sink may be told, and the graph the options name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from omnigraph.base.errors import BadRequest, NotFound
from omnigraph.graph import Graph
from omnigraph.lang.diagnostics import did_you_mean
from omnigraph.settings import Settings

_KINDS = ("node", "edge")
# How to reach a store may be said per frame; everything else comes from the environment and the settings file.
_STORE = {
    f.name: f.metadata for f in fields(Settings) if f.name.startswith(("aws_", "storage_timeout", "storage_retry"))
}
_PLACE = ("path", "config", *_STORE)


@dataclass(frozen=True)
class GraphOptions:
    """The options of one read or write, all of them known."""

    values: Mapping[str, str] = field(repr=False)
    """By name in lower case; may hold credentials."""

    @staticmethod
    def of(given: Mapping[str, str], known: Iterable[str]) -> GraphOptions:
        names = [*known, *_PLACE]
        values = {name.lower(): value for name, value in given.items()}
        for name in values:
            if name not in names:
                public = [n for n in names if n not in _STORE and n != "path"]
                hint = did_you_mean(name, names) or f"Options are: {', '.join(public)}, and aws_… for a store."
                raise BadRequest(f"unknown option '{name}'", hint)
        return GraphOptions(values)

    def get(self, name: str) -> str | None:
        return self.values.get(name)

    def required(self, name: str, hint: str) -> str:
        value = self.values.get(name)
        if value is None or not value.strip():
            raise BadRequest(f"the option '{name}' is missing", hint)
        return value.strip()

    def open(self, mode: str) -> Graph:
        uri = self.values.get("path")
        if uri is None:
            raise BadRequest("the graph is not named", "Give its place: load('s3://bucket/graph'), or the option path.")
        return Graph.open(uri, mode, settings=self._settings())

    def _settings(self) -> Settings:
        given: dict[str, Any] = {}
        for name in _STORE.keys() & self.values.keys():
            try:
                given[name] = _STORE[name]["parse"](self.values[name])
            except ValueError as error:
                raise BadRequest(f"the option '{name}' {error}") from error
        return Settings.resolve(self.values.get("config"), **given)


def table_key_of(name: str, table_keys: Iterable[str]) -> str:
    """The table a user means by `Person`, `node:Person` or, in any case of its letters, an edge's name."""
    known = list(table_keys)
    if name in known:
        return name
    kind, _, rest = name.rpartition(":")
    if kind not in ("", *_KINDS):
        raise BadRequest(f"'{name}' is no type", "Use Person, node:Person or edge:Knows.")
    found = [key for key in known if _names(key, kind, rest)]
    if len(found) > 1:
        raise BadRequest(f"'{name}' is a node and an edge type", f"Use {' or '.join(found)}.")
    if not found:
        names = [key.split(":", 1)[1] for key in known]
        raise NotFound(f"unknown type '{name}'", did_you_mean(rest, names) or f"The types are: {', '.join(names)}.")
    return found[0]


def _names(key: str, kind: str, name: str) -> bool:
    own, own_name = key.split(":", 1)
    if kind and own != kind:
        return False
    return own_name == name or (own == "edge" and own_name.lower() == name.lower())
