"""Where a graph lies: one parser for every way a user may name it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from omnigraph.base.errors import BadRequest


@dataclass(frozen=True)
class Root:
    """A graph's place: an absolute directory."""

    path: str

    @property
    def uri(self) -> str:
        return self.path

    def join(self, relative: str) -> str:
        return f"{self.path}/{relative}"


def parse_uri(text: str) -> Root:
    """The place `text` names; a server URL or an unknown scheme is refused by name."""
    if not text or not text.strip():
        raise BadRequest("the graph URI is empty", "Give a directory, for example ./library.")
    scheme = text.split("://", 1)[0].lower() if "://" in text else ""
    if scheme in ("http", "https"):
        raise BadRequest(f"'{text}' is a server URL, not a storage location", "Use a client command with --store URL.")
    if scheme == "file":
        parts = urlsplit(text)
        if parts.netloc not in ("", "localhost"):
            raise BadRequest(f"'{text}' names another host", "Use file:///absolute/path.")
        return Root(os.path.abspath(unquote(parts.path)))
    if scheme:
        raise BadRequest(f"unsupported URI scheme '{scheme}' in '{text}'", "Use a local path or file://.")
    return Root(os.path.abspath(os.path.expanduser(text)))
