"""Where a graph lies: one parser for every way a user may name it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from omnigraph.base.errors import BadRequest


@dataclass(frozen=True)
class Location:
    """A checked URI: an absolute directory, or `s3://bucket/prefix`."""

    scheme: str
    uri: str


def parse_uri(text: str) -> Location:
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
        if parts.query or parts.fragment:
            raise BadRequest(f"'{text}' is not a place for a graph", "In a file:// URI write # as %23.")
        return _local(unquote(parts.path))
    if scheme == "s3":
        return Location("s3", _s3(text))
    if scheme:
        raise BadRequest(f"unsupported URI scheme '{scheme}' in '{text}'", "Use a local path, file:// or s3://.")
    return _local(os.path.expanduser(text))


def _local(path: str) -> Location:
    whole = os.path.abspath(path)
    # Lance would cut the name at a '?' and write to another directory; it refuses control characters, later.
    if any(c == "?" or c < " " or c == "\x7f" for c in whole):
        raise BadRequest(
            f"{whole!r} is not a place for a graph: it has a '?' or a control character",
            "Choose a directory without them.",
        )
    return Location("file", whole)


def _s3(text: str) -> str:
    bucket, prefix = split_s3(text)
    return f"s3://{bucket}/{prefix}"


def split_s3(uri: str) -> tuple[str, str]:
    """Bucket and prefix of `s3://bucket/prefix`."""
    parts = urlsplit(uri)
    prefix = parts.path.strip("/")
    if parts.query or parts.fragment:
        raise BadRequest(f"'{uri}' is not a place for a graph: it has a '?' or a '#'", "Choose a prefix without them.")
    if not parts.netloc or not prefix or any(s in ("", ".", "..") for s in prefix.split("/")):
        raise BadRequest(f"'{uri}' is not a place for a graph", "Use s3://bucket/prefix.")
    return parts.netloc, prefix
