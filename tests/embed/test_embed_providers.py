"""What each provider is asked, word for word, and how its answers are read; against a real server on loopback."""

from __future__ import annotations

import numpy as np
import pytest
from provider_scene import KEY, expected, says

from omnigraph.base.errors import BadRequest, Unavailable
from omnigraph.embeddings import Embedder, embedder_of
from omnigraph.settings import Settings


@pytest.mark.parametrize("name", ["openai-compatible", "openai"])
def test_openai_is_asked_for_a_dimension_with_the_key_as_bearer(provider, settings, name):
    vector = embedder_of(settings(embeddings_provider=name)).embed_query("red shoes", 6)
    (asked,) = provider.asked
    assert asked.path == "/v1/embeddings"
    assert asked.headers["Authorization"] == f"Bearer {KEY}"
    assert asked.headers["Content-Type"] == "application/json"
    assert asked.body == {"model": "m-1", "input": ["red shoes"], "dimensions": 6}
    assert vector.dtype == np.float32
    assert vector.tobytes() == expected("red shoes", 6).tobytes()


def test_gemini_is_told_what_a_text_is_for(provider, settings):
    embedder = Embedder(settings(embeddings_provider="gemini", gemini_api_key="g-key", embeddings_model="models/g/2"))
    query = embedder.embed_query("red shoes", 6)
    documents = embedder.embed_documents(["one", "two"], 3)
    assert [a.path for a in provider.asked] == ["/v1/models/g%2F2:embedContent"] * 3
    assert {a.headers["x-goog-api-key"] for a in provider.asked} == {"g-key"}
    assert not any("Authorization" in a.headers or "key" in a.path for a in provider.asked)
    assert provider.asked[0].body == {
        "content": {"parts": [{"text": "red shoes"}]},
        "taskType": "RETRIEVAL_QUERY",
        "outputDimensionality": 6,
    }
    assert [a.body["taskType"] for a in provider.asked[1:]] == ["RETRIEVAL_DOCUMENT"] * 2
    assert query.tobytes() == expected("red shoes", 6).tobytes()
    assert [d.tobytes() for d in documents] == [expected(t, 3).tobytes() for t in ("one", "two")]


def test_texts_go_in_batches_of_64_over_one_connection_and_come_back_in_order(provider, settings):
    texts = [f"text {k}" for k in range(150)]
    vectors = Embedder(settings()).embed_documents(texts, 5)
    assert [len(batch) for batch in provider.texts] == [64, 64, 22]
    assert [v.tobytes() for v in vectors] == [expected(t, 5).tobytes() for t in texts]


def test_vectors_are_found_by_their_index_not_by_their_place(provider, settings):
    rows = [{"index": 2, "embedding": [0, 3]}, {"index": 0, "embedding": [1, 0]}, {"index": 1, "embedding": [-2, 0]}]
    provider.fates.append(says(200, {"data": rows}))
    vectors = Embedder(settings()).embed_documents(["a", "b", "c"], 2)
    assert [v.tolist() for v in vectors] == [[1, 0], [-1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("name", "host", "model"),
    [
        ("openai-compatible", "https://openrouter.ai/api/v1", "openai/text-embedding-3-large"),
        ("openai", "https://api.openai.com/v1", "text-embedding-3-large"),
        ("gemini", "https://generativelanguage.googleapis.com/v1beta", "gemini-embedding-2"),
    ],
)
def test_every_provider_has_its_own_address_and_model(name, host, model):
    embedder = Embedder(Settings.resolve(embeddings_provider=name))
    assert (embedder.provider, embedder.base_url, embedder.model) == (name, host, model)


def test_without_a_word_the_provider_is_openai_compatible():
    assert Embedder(Settings.resolve()).provider == "openai-compatible"


def test_the_router_key_comes_before_the_one_of_openai(provider, settings):
    embedder_of(settings(openrouter_api_key="or-key")).embed_query("x", 2)
    embedder_of(settings(openrouter_api_key="or-key", embeddings_provider="openai")).embed_query("x", 2)
    assert [a.headers["Authorization"] for a in provider.asked] == ["Bearer or-key", f"Bearer {KEY}"]


@pytest.mark.parametrize(
    ("name", "variables"),
    [
        ("openai-compatible", "OPENROUTER_API_KEY or OPENAI_API_KEY"),
        ("openai", "OPENAI_API_KEY"),
        ("gemini", "GEMINI_API_KEY"),
    ],
)
def test_a_missing_key_is_unavailable_and_names_its_variable(name, variables):
    with pytest.raises(Unavailable) as caught:
        embedder_of(Settings.resolve(embeddings_provider=name)).embed_query("x", 2)
    assert f"{variables} is not set" in str(caught.value)
    assert name in str(caught.value)


def test_no_key_is_looked_for_before_a_text_is_embedded():
    assert embedder_of(Settings.resolve(embeddings_provider="openai")).model == "text-embedding-3-large"


@pytest.mark.parametrize("key", ["sk-\u00e9t\u00e9", "sk-one\r\nX-Other: 1"])
def test_a_key_that_fits_in_no_header_is_refused_and_not_told(provider, settings, key):
    with pytest.raises(Unavailable) as caught:
        embedder_of(settings(openai_api_key=key)).embed_query("x", 2)
    assert "OPENAI_API_KEY holds no usable key" in str(caught.value)
    assert "sk-" not in repr(vars(caught.value))
    assert provider.asked == []


def test_spaces_around_a_key_are_not_part_of_it(provider, settings):
    embedder_of(settings(openai_api_key=f" {KEY}\n")).embed_query("x", 2)
    assert provider.asked[0].headers["Authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:80",
        "ftp://h/v1",
        "http://",
        "http://u:p@h/v1",
        "http://h/v1?key=1",
        "http://h o/",
        "http://h:x/",
        "http://[::1/",
    ],
)
def test_a_base_url_that_is_none_is_refused_and_not_repeated(settings, url):
    with pytest.raises(BadRequest, match="the base URL of the embedding provider") as caught:
        embedder_of(settings(embeddings_base_url=url)).embed_query("x", 2)
    assert "u:p" not in repr(vars(caught.value))


def test_a_text_that_is_no_unicode_and_a_vector_without_elements_are_refused(provider, settings):
    with pytest.raises(BadRequest, match="not valid Unicode"):
        embedder_of(settings()).embed_query("\ud800", 2)
    with pytest.raises(BadRequest, match="0 dimensions"):
        embedder_of(settings()).embed_query("x", 0)
    assert provider.asked == []
