"""One property of a record set or removed in the line itself, so that nothing else of the line changes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_SPACE = re.compile(r"[ \t\n\r]*")
# Numbers stay texts: only where a value ends matters, and Python refuses to convert very long ones.
_decoder: Any = json.JSONDecoder(parse_int=str, parse_float=str)
_scan: Callable[[str, int], tuple[Any, int]] = _decoder.scan_once


@dataclass(frozen=True)
class _Member:
    name: str
    start: int
    value: int
    end: int


def with_property(line: bytes, name: str, value: str) -> bytes:
    """The line with `data.name` set to the JSON text `value`; ValueError names a member that is there twice."""
    text, members, closing = _data_members(line)
    found = next((m for m in members if m.name == name), None)
    if found is not None:
        text = f"{text[: found.value]}{value}{text[found.end :]}"
    else:
        comma = "," if members else ""
        at = members[-1].end if members else closing
        text = f"{text[:at]}{comma}{json.dumps(name, ensure_ascii=False)}:{value}{text[at:]}"
    return text.encode()


def without_property(line: bytes, name: str) -> bytes:
    """The line without `data.name`, which it has."""
    text, members, _ = _data_members(line)
    place = next(k for k, m in enumerate(members) if m.name == name)
    if place:
        start, end = members[place - 1].end, members[place].end
    else:
        start = members[0].start
        end = members[1].start if len(members) > 1 else members[0].end
    return f"{text[:start]}{text[end:]}".encode()


def _data_members(line: bytes) -> tuple[str, list[_Member], int]:
    text = line.decode()
    try:
        top, _ = _members(text, text.index("{"))
        return text, *_members(text, next(m.value for m in top if m.name == "data"))
    except RecursionError:
        raise ValueError("is nested too deeply") from None


def _members(text: str, opening: int) -> tuple[list[_Member], int]:
    """The members of the object that opens there, and where it closes; the text is known to be JSON."""
    found: list[_Member] = []
    at = _skip(text, opening + 1)
    while text[at] != "}":
        start = _skip(text, at + 1) if text[at] == "," else at
        name, after = _scan(text, start)
        value = _skip(text, _skip(text, after) + 1)
        _, end = _scan(text, value)
        if any(member.name == name for member in found):
            raise ValueError(f"has member '{name}' twice")
        found.append(_Member(name, start, value, end))
        at = _skip(text, end)
    return found, at


def _skip(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    assert space is not None
    return space.end()
