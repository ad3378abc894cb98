"""What the quick JSON parser does not tell: members given twice, and integers too great for it.

The quick parser keeps the last of equal members. A member is one colon outside strings, so a line has a member twice
exactly if it has more such colons than its parsed value has members. All but quotes and colons can be dropped before
they are counted, and two quotes side by side too: that changes for no other character whether it is inside a string.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np
import orjson

_COLON, _QUOTE, _NEWLINE = b':"\n'
_UNMARKED = bytes(set(range(256)) - {_COLON, _QUOTE, _NEWLINE})
_DIGITS_MAX = 400
_ENORMOUS = int("9" * _DIGITS_MAX)


def written_members(lines: Sequence[bytes]) -> np.ndarray[Any, Any]:
    """For every line the number of its members, repeated ones too; each line must be valid JSON."""
    text = b"\n".join([b"", *lines, b""])
    if b"\\" in text:
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    marks = np.frombuffer(text.translate(None, _UNMARKED).replace(b'""', b""), np.uint8)
    colons = np.flatnonzero(marks == _COLON)
    quotes = np.flatnonzero(marks == _QUOTE)
    if len(quotes):
        # Valid lines close every string, so the parity of quotes need not start anew at each line.
        colons = colons[np.searchsorted(quotes, colons) % 2 == 0]
    return np.diff(np.searchsorted(colons, np.flatnonzero(marks == _NEWLINE)))


def parsed_members(records: Sequence[dict[str, Any]], written: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """For every parsed record the number of its members at every depth; `written` are those its line has."""
    datas = [data if type(data := record.get("data")) is dict else {} for record in records]
    counts: np.ndarray[Any, Any] = _sizes(records) + _sizes(datas)
    suspects = np.flatnonzero(counts != written).tolist()
    objects = [value for k in suspects for value in datas[k].values() if type(value) is dict]
    # No record has more members than its line, so all counts are complete if their sum is.
    if objects and counts.sum() + _members_of_all(objects) == written.sum():
        return written
    for k in suspects:
        counts[k] = _members(records[k])
    return counts


def _sizes(objects: Sequence[dict[str, Any]]) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.fromiter(map(len, objects), np.int64, len(objects))


def _members_of_all(objects: list[dict[str, Any]]) -> int:
    """Written anew no member is there twice, and the quick writer walks faster than Python does."""
    try:
        return int(written_members([orjson.dumps(objects)])[0])
    except orjson.JSONEncodeError:  # too deep, or a number or text it does not write
        return 0


def _members(value: Any) -> int:
    count = 0
    containers = [value]
    for found in containers:  # grows as it is walked, which a recursion as deep as the value could not bear
        if type(found) is dict:
            count += len(found)
            found = found.values()
        elif type(found) is not list:
            continue
        containers += [item for item in found if type(item) is dict or type(item) is list]
    return count


def repeated_members(line: bytes) -> list[str]:
    """The names of the members that are given twice, in the order in which their objects end."""
    repeated: dict[str, None] = {}

    def pairs(members: list[tuple[str, Any]]) -> None:
        names = set()
        for name, _ in members:
            if name in names:
                repeated[name] = None
            names.add(name)

    try:
        json.loads(line, object_pairs_hook=pairs)
    except RecursionError:
        return []
    return list(repeated)


def exact(line: bytes) -> Any:
    """The value of a line with integers as they are written; ValueError if it is not JSON."""
    text = line.decode().strip(_SPACE)
    try:
        try:
            value, end = _PLAIN(text, 0)
        except json.JSONDecodeError:
            raise
        except ValueError:  # more digits than Python is willing to convert
            value, end = _PATIENT(text, 0)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except StopIteration:
        raise ValueError("no JSON value") from None
    if end != len(text):
        raise ValueError("more than one JSON value")
    return value


def _integer(digits: str) -> int:
    if len(digits) <= _DIGITS_MAX:
        return int(digits)
    # More digits than any type holds.
    return -_ENORMOUS if digits.startswith("-") else _ENORMOUS


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_SPACE = " \t\n\r"


def _scanner(**options: Any) -> Callable[[str, int], tuple[Any, int]]:
    """The parser itself, without the looks at white space that `decode` takes around it."""
    decoder: Any = json.JSONDecoder(parse_constant=_refuse, **options)
    scan: Callable[[str, int], tuple[Any, int]] = decoder.scan_once
    return scan


_PLAIN = _scanner()
# Asks Python about every integer, which is slow.
_PATIENT = _scanner(parse_int=_integer)
