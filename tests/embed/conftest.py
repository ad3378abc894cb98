from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from provider_scene import KEY, Provider

from omnigraph.settings import Settings


@pytest.fixture
def provider() -> Iterator[Provider]:
    started = Provider()
    yield started
    started.stop()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh directory, and an environment that names no provider and no key."""
    for name in [n for n in os.environ if n.startswith("OMNIGRAPH_") or n.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def settings(provider: Provider) -> Callable[..., Settings]:
    """Settings for the provider on loopback; pauses are short."""

    def make(**given: Any) -> Settings:
        chosen = {
            "embeddings_base_url": provider.url,
            "embeddings_model": "m-1",
            "openai_api_key": KEY,
            "embeddings_retry_backoff_ms": 1,
        }
        return Settings.resolve(**chosen | given)

    return make
