"""Vectors of a run that failed, kept beside its output, so that the same command need not pay for them again.

The file holds what the vectors were made by and then, in the order of the rows, a digest of each text and its vector.
A later run takes them as long as its texts are the same; from the first difference on they are dropped. A run that
ends well removes the file. While a run lasts it holds a lock on it, so two runs never write one output.
"""

from __future__ import annotations

import fcntl
import os
from hashlib import blake2b
from types import TracebackType
from zlib import crc32

import numpy as np
import orjson

from omnigraph.base.errors import Conflict
from omnigraph.embeddings.embedder import Embeds
from omnigraph.embeddings.vectors import Vector

_FORM = 1
_DIGEST_BYTES, _SUM_BYTES = 16, 4


class KeptVectors:
    def __init__(self, path: str, embedder: Embeds, dimension: int, mode: str) -> None:
        self.path = path
        self.count = 0
        self._vector_bytes = 4 * dimension
        self._file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666), "r+b")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise Conflict(f"another run holds '{path}'", "Wait for it to end, or choose another output.") from None
        made_by = {"provider": embedder.provider, "base_url": embedder.base_url, "model": embedder.model}
        head = orjson.dumps({"form": _FORM, **made_by, "dimension": dimension, "mode": mode}) + b"\n"
        self._is_read = self._file.read(len(head)) != head
        if self._is_read:
            self._file.seek(0)
            self._file.truncate()
            self._file.write(head)

    def __enter__(self) -> KeptVectors:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """The file stays only if the run failed and there is something in it."""
        if kind is None or not self.count:
            os.unlink(self.path)
        self._file.close()

    def take(self, text: str) -> Vector | None:
        """The vector of the next text, if an earlier run had got so far."""
        if self._is_read:
            return None
        start = self._file.tell()
        digest, summed = self._file.read(_DIGEST_BYTES), self._file.read(_SUM_BYTES)
        data = self._file.read(self._vector_bytes)
        if len(data) == self._vector_bytes and digest == _digest(text) and summed == _summed(digest, data):
            self.count += 1
            return np.frombuffer(data, "<f4").astype(np.float32)
        self._file.seek(start)
        self._file.truncate()
        self._is_read = True
        return None

    def add(self, texts: list[str], vectors: list[Vector]) -> None:
        """Only after the earlier ones were taken or dropped."""
        assert self._is_read or not texts
        for text, vector in zip(texts, vectors, strict=True):
            digest, data = _digest(text), vector.astype("<f4").tobytes()
            self._file.write(digest + _summed(digest, data) + data)
        self._file.flush()
        self.count += len(texts)


def _digest(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=_DIGEST_BYTES).digest()


def _summed(digest: bytes, data: bytes) -> bytes:
    return crc32(digest + data).to_bytes(_SUM_BYTES, "little")
