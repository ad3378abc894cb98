"""Cursors and page tokens: where a reader stands, as text to be handed back unchanged.

Holds for every token:
  1. It is base64url without padding over JSON and the SHA-256 of it, at most 4096 characters.
  2. It names what it belongs to; anything else is refused with the reason, never reinterpreted.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as BadBase64
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import orjson

from omnigraph.base.errors import BadRequest

CURSOR, PAGE_TOKEN = "change cursor", "change page token"
TOKEN_CHARACTERS_MAX = 4096
_DIGEST_BYTES = 32
_WHOLE_ID_BYTES_MAX = 256
_PREFIX_BYTES = 64


def encode_token(members: Mapping[str, Any]) -> str:
    text = orjson.dumps(members, option=orjson.OPT_SORT_KEYS)
    return urlsafe_b64encode(text + sha256(text).digest()).rstrip(b"=").decode("ascii")


def decode_token(what: str, token: str) -> dict[str, Any]:
    """The members of a token; `what` it is called in the refusal of one that nobody made."""
    if len(token) > TOKEN_CHARACTERS_MAX:
        raise rejected(what, f"it is longer than {TOKEN_CHARACTERS_MAX} characters")
    try:
        data = urlsafe_b64decode(token.encode("ascii") + b"=" * (-len(token) % 4))
    except (BadBase64, ValueError):
        raise rejected(what, "it is not base64url text") from None
    text, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
    if sha256(text).digest() != digest:
        raise rejected(what, "it is damaged")
    try:
        members = orjson.loads(text)
    except orjson.JSONDecodeError:
        members = None
    if not isinstance(members, dict):
        raise rejected(what, "it is damaged")
    return members


def rejected(what: str, why: str, hint: str = "") -> BadRequest:
    anew = "Take a baseline, or start anew." if what == CURSOR else "Ask for the first page again."
    return BadRequest(f"{what} rejected: {why}", hint or anew)


@dataclass(frozen=True)
class Position:
    """The last change that was told: its table in the order of blocks, and its id."""

    is_edge: bool
    type_id: str
    id: str | None
    prefix: bytes = b""
    digest: str = ""

    @staticmethod
    def at(is_edge: bool, type_id: str, id: str) -> Position:
        """A long id is carried by its beginning and its digest."""
        data = id.encode()
        if len(data) <= _WHOLE_ID_BYTES_MAX:
            return Position(is_edge, type_id, id)
        return Position(is_edge, type_id, None, data[:_PREFIX_BYTES], sha256(data).hexdigest())

    def to_json(self) -> list[Any]:
        if self.id is not None:
            return [int(self.is_edge), self.type_id, self.id]
        return [int(self.is_edge), self.type_id, self.prefix.hex(), self.digest]

    @staticmethod
    def from_json(value: Any) -> Position:
        match value:
            case [int() as edge, str() as type_id, str() as id]:
                return Position(bool(edge), type_id, id)
            case [int() as edge, str() as type_id, str() as prefix, str() as digest]:
                with suppress(ValueError):
                    return Position(bool(edge), type_id, None, bytes.fromhex(prefix), digest)
        raise rejected(PAGE_TOKEN, "it is damaged")

    @property
    def table(self) -> tuple[bool, str]:
        return (self.is_edge, self.type_id)

    @property
    def floor(self) -> bytes:
        """Nothing before it, in UTF-8, is still to be told."""
        return self.id.encode() if self.id is not None else self.prefix

    def is_here(self, id: str) -> bool:
        return id == self.id if self.id is not None else sha256(id.encode()).hexdigest() == self.digest

    def is_before(self, id: str) -> bool:
        """Whether an id, of those in order, surely comes later than the one that was told."""
        data = id.encode()
        return data > self.id.encode() if self.id is not None else data[:_PREFIX_BYTES] > self.prefix
