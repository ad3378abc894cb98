"""Texts at query time, and the vectors of the mock."""

from __future__ import annotations

import math
import struct
from fractions import Fraction

import numpy as np
import pytest
from provider_scene import says

from omnigraph.base.errors import BadRequest
from omnigraph.embeddings import Embedder, embedder_of
from omnigraph.settings import Settings

MOCKED = Settings.resolve(embeddings_mock=True)


def float32(value: float) -> float:
    return struct.unpack("<f", struct.pack("<f", value))[0]


def specified(text: str, dimension: int) -> bytes:
    """The mock as the specification words it, in plain numbers."""
    state = 14695981039346656037
    for byte in text.encode():
        state = (state ^ byte) * 1099511628211 % 2**64
    elements = []
    for _ in range(dimension):
        state ^= (state << 13) % 2**64
        state ^= state >> 7
        state ^= (state << 17) % 2**64
        elements.append(float32(float32(float32(Fraction(state, 2**64 - 1)) * 2) - 1))
    norm = float32(math.sqrt(sum(e * e for e in elements)))
    return struct.pack(f"<{dimension}f", *(float32(e / norm) for e in elements))


def test_the_mock_gives_the_check_value_of_the_specification():
    vector = embedder_of(MOCKED).embed_query("alpha", 4)
    assert [round(float(e), 7) for e in vector] == [-0.5420488, -0.4717994, 0.1609051, 0.6765338]


@pytest.mark.parametrize("text", ["", "alpha", "beta", "é", "a longer text\nof two lines", "\0"])
@pytest.mark.parametrize("dimension", [1, 4, 257])
def test_mock_vectors_are_exact_to_the_bit(text, dimension):
    assert embedder_of(MOCKED).embed_query(text, dimension).tobytes() == specified(text, dimension)


def test_mock_vectors_have_length_one_and_depend_on_the_whole_text():
    texts = ["", "a", "b", "é", "\0", "x" * 1000]
    vectors = Embedder(MOCKED).embed_documents(texts, 33)
    assert len({v.tobytes() for v in vectors}) == len(texts)
    for vector in vectors:
        assert vector.dtype == np.float32
        assert abs(np.linalg.norm(vector.astype(np.float64)) - 1) < 1e-6


def test_the_mock_gives_queries_and_documents_the_same_vector():
    embedder = Embedder(MOCKED)
    (document,) = embedder.embed_documents(["a"], 8)
    assert embedder.embed_query("a", 8).tobytes() == document.tobytes()


def test_each_distinct_text_is_embedded_once(provider, settings):
    embedder = embedder_of(settings())
    first = embedder.embed_query("red", 3)
    assert embedder.embed_query("red", 3) is first
    embedder.embed_query("blue", 3)
    assert embedder.embed_query("red", 4).shape == (4,)
    assert provider.texts == [["red"], ["blue"], ["red"]]
    embedder_of(settings()).embed_query("red", 3)
    assert len(provider.asked) == 4


def test_a_vector_that_is_shared_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        embedder_of(MOCKED).embed_query("a", 2)[0] = 1


def test_a_text_that_failed_is_asked_for_again(provider, settings):
    embedder = embedder_of(settings())
    provider.fates.append(says(400))
    with pytest.raises(BadRequest):
        embedder.embed_query("red", 3)
    assert embedder.embed_query("red", 3).shape == (3,)


def test_another_model_than_that_of_the_stored_vectors_is_refused_before_anything_is_asked(provider, settings):
    embedder = embedder_of(settings())
    with pytest.raises(BadRequest) as caught:
        embedder.embed_query("red", 3, "m-2")
    assert str(caught.value) == "stored vectors were embedded with model 'm-2', the active model is 'm-1'"
    assert "OMNIGRAPH_EMBED_MODEL" in caught.value.hint
    assert provider.asked == []
    assert embedder.embed_query("red", 3, "m-1").shape == (3,)


def test_a_known_text_does_not_hide_that_the_model_is_another(provider, settings):
    embedder = embedder_of(settings())
    embedder.embed_query("red", 3)
    with pytest.raises(BadRequest, match="stored vectors were embedded with model 'm-2'"):
        embedder.embed_query("red", 3, "m-2")


def test_a_wrong_model_is_told_even_where_the_key_is_missing():
    with pytest.raises(BadRequest, match="stored vectors were embedded with model 'm-2'"):
        embedder_of(Settings.resolve()).embed_query("red", 3, "m-2")


def test_the_mock_stands_for_any_model_unless_one_is_set():
    assert embedder_of(MOCKED).embed_query("a", 2, "anything").shape == (2,)
    named = Settings.resolve(embeddings_mock=True, embeddings_model="mock-1")
    assert embedder_of(named).embed_query("a", 2, "mock-1").shape == (2,)
    with pytest.raises(BadRequest, match="stored vectors were embedded with model 'mock-2'"):
        embedder_of(named).embed_query("a", 2, "mock-2")
