"""Small objects in an S3-compatible store, by way of obstore: conditional puts are the store's own.

A put that the client retried after a lost answer may find its own object and report it as taken. Callers that care
read the object back and compare; nothing here guesses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    NotFoundError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)
from obstore.store import S3Store

from omnigraph.base.errors import OmniError, Unavailable
from omnigraph.base.ids import new_ulid
from omnigraph.storage.objects import STREAM_BYTES, FoundFile, Missing, Stored, own_etag
from omnigraph.storage.uri import split_s3

_PROBE_DIR = "__probe"
# What one request may copy; the stores that speak S3 agree on it.
_COPY_BYTES_MAX = 5 << 30
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class S3Access:
    """How to reach an S3-compatible store; the same for Lance, for small objects and for executors."""

    region: str | None = None
    access_key_id: str | None = field(default=None, repr=False)
    secret_access_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)
    endpoint: str | None = None
    path_style: bool = False
    allow_http: bool = False
    timeout_ms: int = 30_000
    retry_timeout_ms: int = 60_000
    retries: int = 12

    def lance_options(self) -> dict[str, str]:
        """The same access in the words of Lance's storage options."""
        options = {
            "aws_region": self.region,
            "aws_access_key_id": self.access_key_id,
            "aws_secret_access_key": self.secret_access_key,
            "aws_session_token": self.session_token,
            "aws_endpoint": self.endpoint,
            "aws_virtual_hosted_style_request": "false" if self._needs_path_style else "true",
            "allow_http": "true" if self.allow_http else "false",
            "timeout": f"{self.timeout_ms}ms",
            "client_max_retries": str(self.retries),
            "client_retry_timeout": str(max(1, self.retry_timeout_ms // 1000)),
        }
        return {k: v for k, v in options.items() if v is not None}

    @property
    def _needs_path_style(self) -> bool:
        # Without an endpoint of its own the bucket is found by host name.
        return self.path_style or self.endpoint is not None

    def open(self, bucket: str, prefix: str) -> S3Store:
        config: dict[str, Any] = {
            "region": self.region or "us-east-1",
            "access_key_id": self.access_key_id,
            "secret_access_key": self.secret_access_key,
            "session_token": self.session_token,
            "endpoint": self.endpoint,
            "virtual_hosted_style_request": not self._needs_path_style,
        }
        known: Any = {k: v for k, v in config.items() if v is not None}
        return S3Store(
            bucket,
            prefix=prefix or None,
            config=known,
            client_options={"allow_http": self.allow_http, "timeout": f"{self.timeout_ms}ms"},
            retry_config={
                "max_retries": self.retries,
                "retry_timeout": timedelta(milliseconds=self.retry_timeout_ms),
                "backoff": {
                    "init_backoff": timedelta(milliseconds=50),
                    "max_backoff": timedelta(seconds=5),
                    "base": 2,
                },
            },
        )


class S3ObjectStore:
    """Objects below one prefix of a bucket."""

    def __init__(self, uri: str, access: S3Access) -> None:
        bucket, prefix = split_s3(uri)
        self._uri = uri
        self._prefix = prefix
        self._store = access.open(bucket, prefix)
        self._bucket = access.open(bucket, "")
        self.identity = (access.endpoint or "", bucket)

    def get(self, key: str) -> Stored | None:
        with _translated(f"read {key}", self._uri):
            try:
                found = self._store.get(key)
            except (FileNotFoundError, NotFoundError):
                return None
            return Stored(bytes(found.bytes()), found.meta["e_tag"] or "")

    def exists(self, key: str) -> bool:
        with _translated(f"look for {key}", self._uri):
            try:
                self._store.head(key)
            except (FileNotFoundError, NotFoundError):
                return False
            return True

    def put(self, key: str, data: bytes) -> None:
        with _translated(f"write {key}", self._uri):
            self._store.put(key, data, mode="overwrite", use_multipart=False)

    def put_if_absent(self, key: str, data: bytes) -> str | None:
        with _translated(f"write {key}", self._uri):
            try:
                return self._store.put(key, data, mode="create", use_multipart=False)["e_tag"] or ""
            except AlreadyExistsError:
                return None

    def put_if_match(self, key: str, data: bytes, etag: str) -> str | None:
        with _translated(f"rewrite {key}", self._uri):
            try:
                return self._store.put(key, data, mode={"e_tag": etag}, use_multipart=False)["e_tag"] or ""
            except (PreconditionError, NotFoundError, FileNotFoundError):
                return None

    def delete(self, key: str) -> None:
        with _translated(f"delete {key}", self._uri):
            try:
                self._store.delete(key)
            except (FileNotFoundError, NotFoundError):
                return

    def list(self, prefix: str, limit: int | None = None) -> list[str]:
        with _translated(f"list {prefix}", self._uri):
            if limit is not None:
                first = next(iter(obstore.list(self._store, f"{prefix}/", chunk_size=limit)), [])
                return sorted(str(o["path"]) for o in first)[:limit]
            found = self._store.list_with_delimiter(prefix or None)
            names = [str(o["path"]) for o in found["objects"]] + [str(p) for p in found["common_prefixes"]]
            # Some stores keep an object for the folder itself.
            return sorted(name for name in names if name != prefix)

    def remove_tree(self, prefix: str) -> None:
        with _translated(f"remove {prefix}", self._uri):
            keys = [str(o["path"]) for batch in obstore.list(self._store, prefix) for o in batch]
            if keys:
                self._store.delete(keys)
            self.delete(prefix)

    def walk(self, prefix: str) -> Iterator[FoundFile]:
        """Every object below `prefix`, at any depth; its time has the store's own resolution, a second on most."""
        with _translated(f"list {prefix}", self._uri):
            for batch in obstore.list(self._store, prefix):
                for o in batch:
                    modified_us = (o["last_modified"] - _EPOCH) // timedelta(microseconds=1)
                    yield FoundFile(str(o["path"]), int(o["size"]), modified_us)

    def delete_files(self, keys: Sequence[str]) -> None:
        with _translated("delete files", self._uri):
            try:
                if keys:
                    self._store.delete(list(keys))
            except (FileNotFoundError, NotFoundError):
                for key in keys:
                    self.delete(key)

    def stream(self, key: str) -> Iterator[bytes]:
        """The bytes of a large object, part by part; Missing when there is none."""
        with _translated(f"read {key}", self._uri):
            try:
                found = self._store.get(key)
            except (FileNotFoundError, NotFoundError) as error:
                raise Missing(f"{key} is missing in '{self._uri}'") from error
            for part in found.stream(min_chunk_size=STREAM_BYTES):
                yield bytes(part)

    def put_stream(self, key: str, chunks: Iterator[bytes], size: int) -> None:
        """A large object, there as a whole or not at all."""
        with _translated(f"write {key}", self._uri):
            if size <= STREAM_BYTES:
                self._store.put(key, b"".join(counted(key, chunks, size)), mode="overwrite", use_multipart=False)
            else:
                parts = counted(key, chunks, size)
                self._store.put(key, parts, use_multipart=True, chunk_size=STREAM_BYTES, max_concurrency=2)

    def copy_from(self, other: S3ObjectStore, key: str, size: int) -> bool:
        """The object of the same key below another prefix, copied by the store itself; False where it cannot."""
        if other.identity != self.identity or size > _COPY_BYTES_MAX:
            return False
        with _translated(f"copy {key}", self._uri):
            try:
                self._bucket.copy(f"{other._prefix}/{key}", f"{self._prefix}/{key}")
            except (FileNotFoundError, NotFoundError) as error:
                raise Missing(f"{key} is missing in '{other._uri}'") from error
        return True

    def probe(self) -> None:
        """Make sure that the store has conditional puts; leaves no object behind."""
        key = f"{_PROBE_DIR}/{new_ulid()}"
        try:
            etag = self.put_if_absent(key, b"1") or own_etag(self, key, b"1")
            if etag is None or self.put_if_absent(key, b"2") is not None:
                raise _lacking("create-if-absent (If-None-Match)", self._uri)
            second = self.put_if_match(key, b"3", etag) or own_etag(self, key, b"3")
            if second is None or self.put_if_match(key, b"4", etag) is not None:
                raise _lacking("conditional replace (If-Match)", self._uri)
        finally:
            self.delete(key)


def counted(key: str, chunks: Iterator[bytes], size: int) -> Iterator[bytes]:
    """The same parts; Missing unless they are `size` bytes together."""
    seen = 0
    for part in chunks:
        seen += len(part)
        if seen > size:
            break
        yield part
    if seen != size:
        raise Missing(f"{key} has {seen} bytes and not {size}")


def _lacking(what: str, uri: str) -> Unavailable:
    return Unavailable(
        f"the store of '{uri}' does not honour {what}",
        "OmniGraph needs conditional puts to keep commits apart; use a store that has them.",
        what="conditional put",
    )


@contextmanager
def _translated(what: str, uri: str) -> Iterator[None]:
    try:
        yield
    except OmniError:
        raise
    except (BaseError, OSError) as error:
        text = str(error)
        # A refused listing comes as a generic error that only says so in words.
        if isinstance(error, PermissionDeniedError | UnauthenticatedError) or "403 Forbidden" in text:
            raise Unavailable(
                f"could not {what} in '{uri}': the store refused the credentials",
                "Check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and the bucket's policy.",
                what="credentials",
            ) from error
        first = text.splitlines()[0] if text else repr(error)
        raise Unavailable(
            f"could not {what} in '{uri}': {first}", "The store did not answer as it should; try again.", what="store"
        ) from error


store_failures = _translated
"""For those who read other objects of the same store."""
