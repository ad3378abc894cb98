"""Objects of an S3-compatible store as files to read: for the inputs of loads, not for graphs."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import obstore

from omnigraph.storage.s3 import S3Access, store_failures

_BUFFER_BYTES = 1 << 20


@dataclass(frozen=True)
class S3File:
    """One object. It can be sent to an executor, which opens it there."""

    uri: str
    access: S3Access = field(repr=False)

    def size(self) -> int:
        bucket, key = bucket_and_key(self.uri)
        with store_failures(f"look for {key}", f"s3://{bucket}"):
            return int(obstore.head(self.access.open(bucket, ""), key)["size"])

    def open(self) -> BinaryIO:
        bucket, key = bucket_and_key(self.uri)
        with store_failures(f"open {key}", f"s3://{bucket}"):
            reader = obstore.open_reader(self.access.open(bucket, ""), key)
        return io.BufferedReader(_Raw(reader, bucket, key), _BUFFER_BYTES)


def bucket_and_key(uri: str) -> tuple[str, str]:
    """The parts of `s3://bucket/key`, as they are written: an object's name may hold `?`, `#` and `%`."""
    bucket, _, key = uri.split("://", 1)[1].partition("/")
    return bucket, key


class _Raw(io.RawIOBase):
    """The reader of the store as Python knows files."""

    def __init__(self, reader: Any, bucket: str, key: str) -> None:
        self._reader = reader
        self._bucket = bucket
        self._key = key

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with store_failures(f"read {self._key}", f"s3://{self._bucket}"):
            data = bytes(self._reader.read(len(buffer)))
        buffer[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return int(self._reader.seek(offset, whence))

    def tell(self) -> int:
        return int(self._reader.tell())
