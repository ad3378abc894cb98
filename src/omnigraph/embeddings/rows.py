"""Which rows of a file are embedded, and the text each of them is embedded as."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import orjson

from omnigraph.base.errors import BadRequest
from omnigraph.embeddings.spec import EmbedSpec, TypeSpec


class Mode(StrEnum):
    FILL_MISSING = "fill_missing"
    SELECT = "select"
    REEMBED_ALL = "reembed_all"
    CLEAN = "clean"


@dataclass(frozen=True)
class Selector:
    """`[Type:]field=value`."""

    field: str
    value: str
    type: str | None = None

    @staticmethod
    def parse(text: str) -> Selector:
        named, is_pair, value = text.partition("=")
        type_, is_typed, field = named.partition(":")
        if not is_typed:
            type_, field = "", named
        if not is_pair or not field.strip() or (is_typed and not type_.strip()):
            raise BadRequest(f"selector '{text}' is not [Type:]field=value", "For example Doc:slug=intro.")
        return Selector(field.strip(), value, type_.strip() or None)

    def matches(self, type_: str, data: Mapping[str, Any]) -> bool:
        if self.field not in data or self.type not in (None, type_):
            return False
        found = data[self.field]
        return any(_word(item) == self.value for item in (found if isinstance(found, list) else [found]))


@dataclass(frozen=True)
class Choice:
    """The rows a run is about: their types, and what makes a row of these types one of them."""

    mode: Mode
    types: Mapping[str, TypeSpec]
    selectors: tuple[Selector, ...] = ()

    @staticmethod
    def of(
        spec: EmbedSpec,
        *,
        types: Sequence[str] = (),
        select: Sequence[str] = (),
        reembed_all: bool = False,
        clean: bool = False,
    ) -> Choice:
        """Refuses what contradicts itself, and types the spec does not know."""
        if reembed_all and (clean or select):
            raise BadRequest(
                f"reembed_all and {'clean' if clean else 'select'} contradict each other", "Leave one out."
            )
        selectors = tuple(Selector.parse(text) for text in select)
        for name in [*types, *(s.type for s in selectors if s.type is not None)]:
            if name not in spec.types:
                raise BadRequest(f"type '{name}' is not in the spec", f"The spec has {', '.join(spec.types)}.")
        mode = Mode.REEMBED_ALL if reembed_all else Mode.SELECT if selectors else Mode.FILL_MISSING
        chosen = {name: told for name, told in spec.types.items() if not types or name in types}
        return Choice(Mode.CLEAN if clean else mode, chosen, selectors)

    def takes(self, type_: str, data: Mapping[str, Any]) -> bool:
        """Whether a row of one of the types is to be changed."""
        if self.selectors and not any(selector.matches(type_, data) for selector in self.selectors):
            return False
        target = self.types[type_].target
        if self.mode is Mode.CLEAN:
            return target in data
        return self.mode is not Mode.FILL_MISSING or data.get(target) in (None, [], "")


def text_of(type_: str, fields: Sequence[str], data: Mapping[str, Any]) -> str:
    """What a row is embedded as; ValueError where it has nothing to say."""
    lines = [f"{field}: {said}" for field in fields if (said := _said(field, data.get(field)))]
    if not lines:
        raise ValueError(f"has no text to embed: {', '.join(fields)} {'is' if len(fields) == 1 else 'are'} empty")
    return "\n".join([f"type: {type_}", *lines])


def _said(field: str, value: Any) -> str:
    items = value if isinstance(value, list) else [value]
    if any(isinstance(item, dict | list) for item in items):
        raise ValueError(f"has a nested value in '{field}', which has no text")
    words = [_word(item) for item in items if item is not None]
    said = ", ".join(word for word in words if word.strip())
    return said if said.strip() else ""


def _word(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()
