"""The providers: where they are, which key they take, how they are asked and how they answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar
from urllib.parse import quote

from omnigraph.base.errors import BadRequest, Unavailable
from omnigraph.settings import Settings

MOCK = "mock"
BATCH_TEXTS = 64


class Purpose(Enum):
    """What a text is embedded for; some models give queries and documents different vectors."""

    QUERY = "RETRIEVAL_QUERY"
    DOCUMENT = "RETRIEVAL_DOCUMENT"


@dataclass(eq=False)
class BadAnswer(Unavailable):
    """The provider answered, but not with embeddings."""

    provider: str = ""
    model: str = ""


@dataclass(frozen=True)
class Active:
    """The provider and model that are in force; `model` is None for a mock that stands for any model."""

    provider: str
    base_url: str
    model: str | None

    @property
    def model_name(self) -> str:
        return self.model or MOCK

    def __str__(self) -> str:
        return f"embedding provider '{self.provider}' with model '{self.model_name}'"


@dataclass(frozen=True)
class Key:
    """A secret and the variable it came from; only the latter may be told."""

    variable: str
    secret: str = field(repr=False)


class OpenAiWire:
    """Many texts in one request, answered by index."""

    texts_max: ClassVar[int] = BATCH_TEXTS

    def headers(self, key: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {key}"}

    def request(self, model: str, texts: Sequence[str], dimension: int, purpose: Purpose) -> tuple[str, Any]:
        return "/embeddings", {"model": model, "input": list(texts), "dimensions": dimension}

    def vectors(self, answer: Any, count: int) -> list[Any]:
        """One entry per text, in the order of the texts; ValueError says what is wrong."""
        listed = answer.get("data") if isinstance(answer, dict) else None
        if not isinstance(listed, list) or not all(isinstance(item, dict) for item in listed):
            raise ValueError("no list of vectors")
        by_index = {item.get("index"): item.get("embedding") for item in listed if type(item.get("index")) is int}
        if len(listed) != count or by_index.keys() != set(range(count)):
            raise ValueError(f"{len(listed)} vectors with {len(by_index)} different indexes for {count} texts")
        return [by_index[index] for index in range(count)]


class GeminiWire:
    """One text in one request."""

    texts_max: ClassVar[int] = 1

    def headers(self, key: str) -> dict[str, str]:
        # The key could also be part of the URL, but URLs are logged on the way.
        return {"x-goog-api-key": key}

    def request(self, model: str, texts: Sequence[str], dimension: int, purpose: Purpose) -> tuple[str, Any]:
        (text,) = texts
        content = {"parts": [{"text": text}]}
        body = {"content": content, "taskType": purpose.value, "outputDimensionality": dimension}
        return f"/models/{quote(model.removeprefix('models/'), safe='')}:embedContent", body

    def vectors(self, answer: Any, count: int) -> list[Any]:
        found = answer.get("embedding") if isinstance(answer, dict) else None
        if not isinstance(found, dict) or "values" not in found:
            raise ValueError("no vector")
        return [found["values"]]


Wire = OpenAiWire | GeminiWire


@dataclass(frozen=True)
class _Provider:
    base_url: str
    model: str
    keys: tuple[tuple[str, Callable[[Settings], str | None]], ...]
    wire: Wire


_OPENAI_KEY = ("OPENAI_API_KEY", lambda settings: settings.openai_api_key)
_PROVIDERS = {
    "openai-compatible": _Provider(
        "https://openrouter.ai/api/v1",
        "openai/text-embedding-3-large",
        (("OPENROUTER_API_KEY", lambda settings: settings.openrouter_api_key), _OPENAI_KEY),
        OpenAiWire(),
    ),
    "openai": _Provider("https://api.openai.com/v1", "text-embedding-3-large", (_OPENAI_KEY,), OpenAiWire()),
    "gemini": _Provider(
        "https://generativelanguage.googleapis.com/v1beta",
        "gemini-embedding-2",
        (("GEMINI_API_KEY", lambda settings: settings.gemini_api_key),),
        GeminiWire(),
    ),
}


def active_of(settings: Settings, model: str | None = None) -> Active:
    """What the settings choose; `model` wins over theirs. No key is looked for yet."""
    chosen = model or settings.embeddings_model
    if settings.embeddings_mock or settings.embeddings_provider == MOCK:
        return Active(MOCK, "", chosen)
    known = _PROVIDERS.get(settings.embeddings_provider)
    if known is None:
        raise BadRequest(
            f"unknown embedding provider '{settings.embeddings_provider}'",
            f"Set OMNIGRAPH_EMBED_PROVIDER to one of {', '.join([*_PROVIDERS, MOCK])}.",
        )
    return Active(settings.embeddings_provider, settings.embeddings_base_url or known.base_url, chosen or known.model)


def wire_of(active: Active) -> Wire:
    return _PROVIDERS[active.provider].wire


def key_of(settings: Settings, active: Active) -> Key:
    """The key for the provider; Unavailable names the variable where there is none."""
    named = settings.embeddings_api_key_env
    if named is not None:
        found = [(named, settings.embeddings_api_key)]
    else:
        found = [(variable, take(settings)) for variable, take in _PROVIDERS[active.provider].keys]
    for variable, given in found:
        secret = (given or "").strip()
        if not secret:
            continue
        if not secret.isascii() or not secret.isprintable():
            raise Unavailable(f"{variable} holds no usable key for {active}", "Set it again.", what="embeddings")
        return Key(variable, secret)
    variables = " or ".join(variable for variable, _ in found)
    raise Unavailable(
        f"{active} needs a key, and {variables} is not set",
        f"Set {variables}, or OMNIGRAPH_EMBEDDINGS_MOCK=1 to work without a provider.",
        what="embeddings",
    )
