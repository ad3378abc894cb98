"""Where the provider, the model and the keys come from, and that keys are not shown."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from provider_scene import KEY

from omnigraph.base.errors import BadRequest, Unavailable
from omnigraph.embeddings import Embedder, embedder_of
from omnigraph.settings import Settings


def active(config: str | None = None) -> tuple[str, str, str]:
    embedder = Embedder(Settings.resolve(config))
    return embedder.provider, embedder.base_url, embedder.model


def test_the_environment_wins_over_the_file(monkeypatch):
    Path("s.yaml").write_text("embeddings: {provider: openai, base_url: http://file/v1, model: of-file}")
    assert active("s.yaml") == ("openai", "http://file/v1", "of-file")
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "gemini")
    monkeypatch.setenv("OMNIGRAPH_EMBED_BASE_URL", "http://env/v1")
    monkeypatch.setenv("OMNIGRAPH_EMBED_MODEL", "of-env")
    assert active("s.yaml") == ("gemini", "http://env/v1", "of-env")


@pytest.mark.parametrize("value", ["1", "true", "YES", "on"])
def test_the_mock_stands_above_everything(monkeypatch, value):
    Path("s.yaml").write_text("embeddings: {provider: openai, model: of-file}")
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "gemini")
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", value)
    assert active("s.yaml") == ("mock", "", "of-file")


def test_a_mock_that_is_switched_off_is_none(monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "0")
    assert active()[0] == "openai-compatible"


def test_the_mock_is_a_provider_by_name_too(monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "mock")
    assert active() == ("mock", "", "mock")


def test_times_and_attempts_have_defaults_and_variables(monkeypatch):
    def told() -> tuple[int, ...]:
        s = Settings.resolve()
        return (
            s.embeddings_deadline_ms,
            s.embeddings_timeout_ms,
            s.embeddings_retry_attempts,
            s.embeddings_retry_backoff_ms,
            s.embeddings_requests_per_minute,
        )

    assert told() == (60_000, 30_000, 4, 200, 0)
    names = ["DEADLINE_MS", "TIMEOUT_MS", "RETRY_ATTEMPTS", "RETRY_BACKOFF_MS", "REQUESTS_PER_MINUTE"]
    for number, name in enumerate(names):
        monkeypatch.setenv(f"OMNIGRAPH_EMBED_{name}", str(number))
    assert told() == (0, 1, 2, 3, 4)


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("OMNIGRAPH_EMBED_PROVIDER", "cohere", "openai-compatible, openai, gemini, mock, not 'cohere'"),
        ("OMNIGRAPH_EMBED_DEADLINE_MS", "soon", "expects a whole number, not 'soon'"),
        ("OMNIGRAPH_EMBED_TIMEOUT_MS", "-1", "expects a whole number, not '-1'"),
        ("OMNIGRAPH_EMBED_RETRY_ATTEMPTS", "1.5", "expects a whole number, not '1.5'"),
        ("OMNIGRAPH_EMBED_RETRY_BACKOFF_MS", "2s", "expects a whole number, not '2s'"),
        ("OMNIGRAPH_EMBED_REQUESTS_PER_MINUTE", "60/h", "expects a whole number, not '60/h'"),
        ("OMNIGRAPH_EMBEDDINGS_MOCK", "perhaps", "expects true or false, not 'perhaps'"),
    ],
)
def test_a_wrong_value_is_refused_with_the_name_of_its_variable(monkeypatch, variable, value, told):
    monkeypatch.setenv(variable, value)
    with pytest.raises(BadRequest) as caught:
        Settings.resolve()
    assert variable in str(caught.value)
    assert told in str(caught.value)


def test_the_file_may_name_the_variable_that_holds_the_key(provider, monkeypatch):
    Path("s.yaml").write_text(f"embeddings: {{base_url: '{provider.url}', api_key_env: MY_KEY}}")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-this-one")
    with pytest.raises(Unavailable, match="MY_KEY is not set"):
        embedder_of(Settings.resolve("s.yaml")).embed_query("x", 2)
    monkeypatch.setenv("MY_KEY", KEY)
    settings = Settings.resolve("s.yaml")
    monkeypatch.delenv("MY_KEY")
    # Executors get the settings whole and have another environment.
    embedder_of(pickle.loads(pickle.dumps(settings))).embed_query("x", 2)
    assert provider.asked[0].headers["Authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("variable", ["OPENROUTER_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "MY_KEY"])
def test_keys_are_no_part_of_the_printed_settings(monkeypatch, variable):
    Path("s.yaml").write_text("embeddings: {api_key_env: MY_KEY}")
    monkeypatch.setenv(variable, KEY)
    settings = Settings.resolve("s.yaml")
    assert KEY in vars(settings).values()
    assert KEY not in repr(settings)
    assert KEY not in str(settings)


@pytest.mark.parametrize("member", ["api_key", "openai_api_key", "OPENAI_API_KEY", "speed"])
def test_a_file_cannot_hold_a_key_or_what_nobody_knows(member):
    Path("s.yaml").write_text(f"embeddings: {{{member}: x}}")
    with pytest.raises(BadRequest, match=rf"unknown setting 'embeddings\.{member}'"):
        Settings.resolve("s.yaml")
