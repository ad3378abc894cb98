"""Providers that are down, slow, refusing or wrong: what is tried again, what is told, and that no key ever is."""

from __future__ import annotations

import json
import pickle
import socket

import pytest
from provider_scene import KEY, answers, breaks_off, expected, hangs_up, says

from omnigraph.base.errors import BadRequest, LimitExceeded, OmniError, Unavailable
from omnigraph.embeddings import Embedder, transport
from omnigraph.embeddings.providers import BadAnswer


def failing(settings, kind: type[OmniError], texts=("x",), dimension: int = 2) -> OmniError:
    """The error of an embedder, which names provider and model, pickles, and holds nothing of the key."""
    with pytest.raises(kind) as caught:
        Embedder(settings).embed_documents(list(texts), dimension)
    error = caught.value
    assert type(error) is kind
    assert "provider 'openai-compatible' with model 'm-1'" in str(error)
    again = pickle.loads(pickle.dumps(error))
    told = f"{error} {error!r} {error.hint} {error.details()} {vars(again)}"
    assert KEY[:8] not in told
    return error


@pytest.mark.parametrize("fate", [says(429), says(500), says(502), says(503), hangs_up, breaks_off])
def test_what_may_pass_is_tried_again(provider, settings, fate):
    provider.fates += [fate, fate]
    (vector,) = Embedder(settings()).embed_documents(["x"], 2)
    assert vector.tobytes() == expected("x", 2).tobytes()
    assert len(provider.asked) == 3


def test_a_silent_provider_is_asked_again_after_the_timeout(provider, settings):
    provider.fates += [provider.stays_silent]
    (vector,) = Embedder(settings(embeddings_timeout_ms=50)).embed_documents(["x"], 2)
    assert vector.tobytes() == expected("x", 2).tobytes()
    assert len(provider.asked) == 2


def test_pauses_double_and_heed_what_the_provider_asks_for(provider, settings, monkeypatch):
    pauses = []
    monkeypatch.setattr(transport, "sleep", pauses.append)
    provider.fates += [says(503), says(429, Retry_After="7"), hangs_up]
    Embedder(settings(embeddings_retry_backoff_ms=200)).embed_documents(["x"], 2)
    assert pauses == [0.2, 7, 0.8]


def test_attempts_keep_the_pace_and_waiting_for_a_turn_is_not_being_late(provider, settings, monkeypatch):
    now_ms, begun = [0], []

    def notes(handler):
        begun.append(now_ms[0])
        (says(503) if len(begun) == 2 else answers)(handler)

    monkeypatch.setattr(transport, "monotonic_ms", lambda: now_ms[0])
    monkeypatch.setattr(transport, "sleep", lambda s: now_ms.append(now_ms.pop() + round(s * 1000)))
    provider.always = notes
    chosen = settings(embeddings_requests_per_minute=2, embeddings_deadline_ms=10_000)
    assert len(Embedder(chosen).embed_documents([f"t{n}" for n in range(130)], 2)) == 130
    assert begun == [0, 30_000, 60_000, 90_000]


@pytest.mark.parametrize("fate", [says(429), says(503)])
def test_a_provider_that_stays_down_is_unavailable(provider, settings, fate):
    provider.always = fate
    error = failing(settings(embeddings_retry_attempts=3), Unavailable)
    assert "(3 attempts, last: HTTP " in str(error)
    assert len(provider.asked) == 3


def test_four_attempts_are_made_by_default(provider, settings):
    provider.always = says(500)
    assert "(4 attempts, last: HTTP 500)" in str(failing(settings(), Unavailable))


def test_nobody_at_the_address_is_unavailable(settings):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free = probe.getsockname()[1]
    error = failing(settings(embeddings_base_url=f"http://127.0.0.1:{free}/v1"), Unavailable)
    assert "(4 attempts, last: connection failed: Connection refused)" in str(error)


@pytest.mark.parametrize("fate", ["stays_silent", "drips"])
def test_a_slow_provider_is_unavailable_after_its_attempts(provider, settings, fate):
    provider.always = getattr(provider, fate)
    error = failing(settings(embeddings_timeout_ms=100, embeddings_retry_attempts=2), Unavailable)
    assert "(2 attempts, last: timeout)" in str(error)


@pytest.mark.parametrize("fate", ["stays_silent", "drips"])
def test_past_the_deadline_a_slow_provider_is_a_limit_that_was_exceeded(provider, settings, fate):
    provider.always = getattr(provider, fate)
    error = failing(settings(embeddings_deadline_ms=100), LimitExceeded)
    assert (error.limit, error.value) == ("embeddings.deadline_ms", 100)
    assert "within 100 ms (1 attempt, last: timeout)" in str(error)


def test_a_pause_that_would_outlast_the_deadline_is_not_made(provider, settings):
    provider.always = says(503)
    error = failing(settings(embeddings_deadline_ms=5_000, embeddings_retry_backoff_ms=60_000), LimitExceeded)
    assert "(1 attempt, last: HTTP 503)" in str(error)


def test_a_deadline_of_zero_is_none(provider, settings):
    provider.always = says(503)
    failing(settings(embeddings_deadline_ms=0, embeddings_timeout_ms=0), Unavailable)
    assert len(provider.asked) == 4


@pytest.mark.parametrize("status", [400, 404, 408, 413, 422])
def test_a_request_that_is_refused_is_not_made_again(provider, settings, status):
    provider.always = says(status, {"error": {"message": "no such\nmodel"}})
    error = failing(settings(), BadRequest)
    assert str(error).endswith(f"refused the request (HTTP {status}): no such model")
    assert len(provider.asked) == 1


@pytest.mark.parametrize("status", [401, 402, 403])
def test_a_key_that_is_refused_is_unavailable_and_names_its_variable(provider, settings, status):
    provider.always = says(status, {"error": {"message": f"Incorrect API key provided: {KEY}"}})
    error = failing(settings(), Unavailable)
    assert str(error).endswith(f"refused the key of OPENAI_API_KEY (HTTP {status})")
    assert len(provider.asked) == 1


@pytest.mark.parametrize("echo", [KEY, f"{KEY[:9]}****cdef", f"'{KEY}'", json.dumps({"headers": f"Bearer {KEY}"})])
def test_a_provider_that_repeats_the_key_is_not_repeated(provider, settings, echo):
    provider.always = says(400, f"bad request with {echo}".encode())
    assert "***" in str(failing(settings(), BadRequest))


def test_nobody_is_followed_to_another_address(provider, settings):
    provider.always = says(307, Location="http://127.0.0.1:1/v1/embeddings")
    assert "(HTTP 307)" in str(failing(settings(), Unavailable))
    assert len(provider.asked) == 1


def _data(*vectors: object) -> dict[str, object]:
    return {"data": [{"index": i, "embedding": v} for i, v in enumerate(vectors)]}


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (b"<html>", "something that is not JSON"),
        (b"", "something that is not JSON"),
        ([], "no list of vectors"),
        ({"data": {}}, "no list of vectors"),
        ({"data": ["x", "y"]}, "no list of vectors"),
        (_data([1, 0]), "1 vectors with 1 different indexes for 2 texts"),
        (_data([1, 0], [1, 0], [1, 0]), "3 vectors with 3 different indexes for 2 texts"),
        ({"data": [{"index": 1, "embedding": [1, 0]}] * 2}, "2 vectors with 1 different indexes for 2 texts"),
        ({"data": [{"embedding": [1, 0]}] * 2}, "2 vectors with 0 different indexes for 2 texts"),
        (_data([1, 0], [1, 0, 0]), "a vector of 3 dimensions, 2 were asked for"),
        (_data([1, 0], []), "a vector of 0 dimensions, 2 were asked for"),
        (_data([1, 0], [1, float("nan")]), "a vector with an element that is not finite"),
        (_data([1, 0], [1, float("-inf")]), "a vector with an element that is not finite"),
        (_data([1, 0], [1, 1e39]), "a vector with an element that is not finite"),
        (_data([1, 0], [1, 10**400]), "a vector with an element that is not finite"),
        (_data([1, 0], [0, 0]), "a vector of length zero"),
        (_data([1, 0], [1e-7, 0]), "a vector of length zero"),
        (_data([1, 0], [1, None]), "a vector that is no list of numbers"),
        (_data([1, 0], "AACAPwAAAAA="), "a vector that is no list of numbers"),
        (_data([1, 0], [True, 1]), "a vector that is no list of numbers"),
    ],
)
def test_an_answer_without_usable_vectors_is_an_error_and_is_not_asked_for_again(provider, settings, answer, told):
    provider.always = says(200, answer)
    error = failing(settings(), BadAnswer, texts=("x", "y"))
    assert str(error).endswith(f" answered {told}")
    assert (error.provider, error.model, error.what) == ("openai-compatible", "m-1", "embeddings")
    assert len(provider.asked) == 1


@pytest.mark.parametrize("answer", [{}, {"embedding": [1, 0]}, {"embedding": {}}, []])
def test_an_answer_of_gemini_without_a_vector_is_an_error(provider, settings, answer):
    provider.always = says(200, answer)
    chosen = settings(embeddings_provider="gemini", gemini_api_key=KEY)
    with pytest.raises(BadAnswer, match="provider 'gemini' with model 'm-1' answered no vector"):
        Embedder(chosen).embed_query("x", 2)


def test_a_connection_that_was_closed_meanwhile_is_made_anew(provider, settings):
    def answers_and_leaves(handler):
        answers(handler)
        handler.close_connection = True

    provider.always = answers_and_leaves
    embedder = Embedder(settings())
    for text in ("a", "b"):
        assert embedder.embed_query(text, 2).tobytes() == expected(text, 2).tobytes()
