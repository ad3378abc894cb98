"""Texts to vectors, through whichever provider the settings choose.

Holds for every vector given out: it was checked and has length one. Where that cannot be, an error names the provider
and the model, and never the key.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import orjson

from omnigraph.base.errors import BadRequest
from omnigraph.embeddings.providers import (
    BATCH_TEXTS,
    MOCK,
    Active,
    BadAnswer,
    Key,
    Purpose,
    active_of,
    key_of,
    wire_of,
)
from omnigraph.embeddings.transport import Pace, Patience, Transport
from omnigraph.embeddings.vectors import Vector, mock_vector, unit_vector
from omnigraph.settings import Settings


class Embeds(Protocol):
    """Who makes the vectors of a file. It is for one run."""

    @property
    def provider(self) -> str: ...

    @property
    def base_url(self) -> str: ...

    @property
    def model(self) -> str: ...

    @property
    def texts_at_once(self) -> int:
        """How many texts are well given at once."""
        ...

    def document_batches(self, texts: Sequence[str], dimension: int) -> Iterator[list[Vector]]:
        """The vectors in the order of the texts, as far as they could be made; then the error."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Errand:
    """All that others need to embed as an embedder does: one key, or none for the mock, and no other setting."""

    active: Active
    key: Key | None
    patience: Patience
    pace: Pace = Pace()

    def client(self) -> Client:
        return _MockClient() if self.key is None else _HttpClient(self, self.key)


class Embedder:
    """Embeds texts; nothing is connected, and no key looked for, before the first one. For one thread."""

    def __init__(self, settings: Settings, model: str | None = None) -> None:
        self._settings = settings
        self._active = active_of(settings, model)
        self._client: Client | None = None
        self._queries: dict[tuple[str, int], Vector] = {}

    @property
    def provider(self) -> str:
        return self._active.provider

    @property
    def base_url(self) -> str:
        return self._active.base_url

    @property
    def model(self) -> str:
        return self._active.model_name

    def embed_query(self, text: str, dimension: int, model: str | None = None) -> Vector:
        """The vector of a text to search with; `model` is the one the stored vectors were made by, if it is known.

        Each distinct text is embedded once, so the vector is shared and read-only.
        """
        active = self._active
        if model is not None and active.model is not None and model != active.model:
            raise BadRequest(
                f"stored vectors were embedded with model '{model}', the active model is '{active.model}'",
                f"Set OMNIGRAPH_EMBED_MODEL to '{model}'.",
            )
        known = self._queries.get((text, dimension))
        if known is None:
            (known,) = self._embed([text], dimension, Purpose.QUERY)
            known.setflags(write=False)
            self._queries[text, dimension] = known
        return known

    def embed_documents(self, texts: Sequence[str], dimension: int) -> list[Vector]:
        """The vectors of texts to be stored, in their order."""
        return [vector for batch in self.document_batches(texts, dimension) for vector in batch]

    @property
    def texts_at_once(self) -> int:
        return BATCH_TEXTS

    def document_batches(self, texts: Sequence[str], dimension: int) -> Iterator[list[Vector]]:
        """The same, request by request."""
        for start in range(0, len(texts), BATCH_TEXTS):
            yield self._embed(texts[start : start + BATCH_TEXTS], dimension, Purpose.DOCUMENT)

    def errand(self) -> Errand:
        """What this embedder does, for others to do; looks for the key."""
        key = None if self._active.provider == MOCK else key_of(self._settings, self._active)
        return Errand(self._active, key, Patience.of(self._settings), Pace.of(self._settings))

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def _embed(self, texts: Sequence[str], dimension: int, purpose: Purpose) -> list[Vector]:
        refuse_unfit(texts, dimension)
        if self._client is None:
            self._client = self.errand().client()
        return self._client.embed(texts, dimension, purpose)


def refuse_unfit(texts: Sequence[str], dimension: int) -> None:
    """Raise for what no provider could embed."""
    if dimension < 1:
        raise BadRequest(f"a vector cannot have {dimension} dimensions")
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError:
            raise BadRequest("a text that is not valid Unicode cannot be embedded") from None


def embedder_of(settings: Settings) -> Embedder:
    """An embedder for one execution: it remembers the texts of that execution."""
    return Embedder(settings)


class Client(Protocol):
    """Asks for vectors, as often as it takes; for one thread."""

    def embed(self, texts: Sequence[str], dimension: int, purpose: Purpose) -> list[Vector]: ...

    def close(self) -> None: ...


class _MockClient:
    def embed(self, texts: Sequence[str], dimension: int, purpose: Purpose) -> list[Vector]:
        return [mock_vector(text, dimension) for text in texts]

    def close(self) -> None:
        return


class _HttpClient:
    def __init__(self, errand: Errand, key: Key) -> None:
        self._active = errand.active
        self._wire = wire_of(errand.active)
        headers = self._wire.headers(key.secret)
        self._transport = Transport(errand.active, key, headers, errand.patience, errand.pace)

    def embed(self, texts: Sequence[str], dimension: int, purpose: Purpose) -> list[Vector]:
        found: list[Vector] = []
        for start in range(0, len(texts), self._wire.texts_max):
            asked = texts[start : start + self._wire.texts_max]
            data = self._transport.post(*self._wire.request(self._active.model_name, asked, dimension, purpose))
            try:
                found += [unit_vector(values, dimension) for values in self._wire.vectors(_parsed(data), len(asked))]
            except ValueError as error:
                raise BadAnswer(
                    f"{self._active} answered {error}",
                    "Check that the model fits the dimension and the base URL is right.",
                    what="embeddings",
                    provider=self._active.provider,
                    model=self._active.model_name,
                ) from None
        return found

    def close(self) -> None:
        self._transport.close()


def _parsed(data: bytes) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        pass
    try:
        # Python's own parser also reads NaN and Infinity, so that the error can say that this is what came.
        return json.loads(data)
    except (ValueError, RecursionError):
        raise ValueError("something that is not JSON") from None
