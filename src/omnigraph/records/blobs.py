"""Blob values: their text in JSON and their stored bytes.

Holds for every stored value: it begins with the marker if and only if it stands for an external URI.
"""

from __future__ import annotations

import binascii
from collections.abc import Sequence

BASE64 = "base64:"
# No managed content may begin like this, so bytes and references share one column without a doubt which is which.
EXTERNAL_MARKER = b"\x00omnigraph:external:\x00"


class BadBlob(ValueError):
    """Why a text or bytes cannot become a Blob."""


def blob_of(value: str | bytes, allowed_prefixes: Sequence[str]) -> bytes:
    """The stored bytes of a Blob given as `base64:…`, as an allowed URI, or as content; BadBlob says why not."""
    if isinstance(value, str) and not value.startswith(BASE64):
        if not value.startswith(tuple(allowed_prefixes)):
            raise BadBlob("external blob URI is not allowed")
        try:
            return EXTERNAL_MARKER + value.encode()
        except UnicodeEncodeError:
            raise BadBlob("external blob URI is not valid Unicode") from None
    if isinstance(value, str):
        try:
            value = binascii.a2b_base64(value[len(BASE64) :], strict_mode=True)
        except (binascii.Error, ValueError):
            raise BadBlob("content after 'base64:' is not valid base64") from None
    if value.startswith(EXTERNAL_MARKER):
        raise BadBlob("content begins with the marker of external blobs")
    return value


def external_uri(stored: bytes) -> str | None:
    """The URI a stored value stands for; None if it is the content itself."""
    return stored[len(EXTERNAL_MARKER) :].decode() if stored.startswith(EXTERNAL_MARKER) else None


def blob_text(stored: bytes) -> str:
    """A stored value as JSON has it."""
    uri = external_uri(stored)
    return BASE64 + binascii.b2a_base64(stored, newline=False).decode() if uri is None else uri
