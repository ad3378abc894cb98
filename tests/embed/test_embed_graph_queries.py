"""A text in `nearest` is embedded while the query runs; whatever the provider does, there is an answer or an error."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from provider_scene import KEY, Provider, expected, hangs_up, says

import omnigraph as og
from omnigraph.cli.main import main
from omnigraph.embeddings.providers import BadAnswer
from omnigraph.settings import Settings

TEXTS = ["red", "blue", "green"]
SCHEMA = """
node Doc {
  name: String @key
  vec: Vector(3)? @embed("name", model="m-1")
  plain: Vector(2)?
}
"""
RED = 'query q() { match { $d: Doc } return { $d.name, nearest($d.vec, "red") as far } order { far } limit 3 }'
NUMBERS = "query q() { match { $d: Doc } return { $d.name } order { nearest($d.vec, [1.0, 0.0, 0.0]) } limit 3 }"
Opened = Callable[..., og.Graph]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> str:
    graph = og.Graph.init(str(tmp_path_factory.mktemp("embedded") / "graph"), SCHEMA, settings=Settings())
    vectors = [expected(text, 3).tolist() for text in TEXTS]
    plain = [expected(text, 2).tolist() for text in TEXTS]
    table = {
        "name": TEXTS,
        "vec": pa.array(vectors, pa.list_(pa.float32(), 3)),
        "plain": pa.array(plain, pa.list_(pa.float32(), 2)),
    }
    graph.load_frames({"Doc": pa.table(table)}, mode="append")
    return graph.uri


@pytest.fixture
def opened(place: str, settings: Callable[..., Settings]) -> Opened:
    return lambda **given: og.Graph.open(place, "r", settings=settings(**given))


def test_a_text_finds_what_is_nearest_to_its_vector(opened: Opened, provider: Provider) -> None:
    rows = opened().query(RED).rows

    assert rows[0] == {"d.name": "red", "far": pytest.approx(0, abs=1e-6)}
    assert len(rows) == 3
    (asked,) = provider.asked
    assert (asked.body["input"], asked.body["dimensions"], asked.body["model"]) == (["red"], 3, "m-1")


def test_each_distinct_text_is_embedded_once_per_query_and_to_the_dimension_of_its_property(
    opened: Opened, provider: Provider
) -> None:
    source = """query q($t: String) { match { $d: Doc } return { $d.name, nearest($d.vec, "red") as a,
      nearest($d.vec, $t) as b, nearest($d.plain, "red") as c, nearest($d.vec, "blue") as e }
      order { nearest($d.vec, "red") } limit 2 }"""
    graph = opened()
    rows = graph.query(source, {"t": "red"}).rows

    assert all(row["a"] == row["b"] for row in rows)
    assert sorted((a.body["input"][0], a.body["dimensions"]) for a in provider.asked) == [
        ("blue", 3),
        ("red", 2),
        ("red", 3),
    ]
    graph.query(RED)
    assert len(provider.asked) == 4, "the next query asks again"


def test_numbers_need_neither_a_provider_nor_a_key(opened: Opened, provider: Provider) -> None:
    assert opened(openai_api_key=None).query(NUMBERS).row_count == 3
    assert provider.asked == []


def test_a_missing_key_is_told_by_the_name_of_its_variable(opened: Opened, provider: Provider) -> None:
    with pytest.raises(og.Unavailable, match="OPENROUTER_API_KEY or OPENAI_API_KEY is not set"):
        opened(openai_api_key=None).query(RED)
    assert provider.asked == []


def test_vectors_of_another_model_are_not_compared(opened: Opened, provider: Provider) -> None:
    graph = opened(embeddings_model="m-2")
    with pytest.raises(og.BadRequest, match="stored vectors were embedded with model 'm-1'"):
        graph.query(RED)
    assert provider.asked == []
    assert graph.query(RED.replace("$d.vec", "$d.plain")).row_count == 3, "its property names no model"


@pytest.mark.parametrize("fate", [says(429), says(503), hangs_up], ids=["rate-limited", "down", "hanging up"])
def test_a_provider_in_passing_trouble_is_asked_again(opened: Opened, provider: Provider, fate: Any) -> None:
    provider.fates += [fate, fate]

    assert opened().query(RED).rows[0]["d.name"] == "red"
    assert len(provider.asked) == 3


def silent(provider: Provider) -> Any:
    return provider.stays_silent


def dimensions(given: int) -> Any:
    return says(200, {"data": [{"index": 0, "embedding": [1.0] * given}]})


@pytest.mark.parametrize(
    ("fate", "settings_", "error", "text"),
    [
        (says(429), {}, og.Unavailable, "4 attempts, last: HTTP 429"),
        (says(503), {}, og.Unavailable, "4 attempts, last: HTTP 503"),
        (silent, {"embeddings_timeout_ms": 30}, og.Unavailable, "4 attempts, last: timeout"),
        (silent, {"embeddings_deadline_ms": 60}, og.LimitExceeded, "within 60 ms"),
        (says(401), {}, og.Unavailable, "refused the key"),
        (dimensions(2), {}, BadAnswer, "answered"),
        (says(200, {"data": [{"index": 0, "embedding": [0, 0, 0]}]}), {}, BadAnswer, "answered"),
        (says(200, b"<html>"), {}, BadAnswer, "not JSON"),
    ],
    ids=["rate-limited", "down", "slow", "past its deadline", "refusing", "wrong-dimensional", "zero", "no JSON"],
)
def test_a_provider_that_gives_no_vector_ends_the_query_with_an_error_that_says_so(
    opened: Opened, provider: Provider, fate: Any, settings_: dict[str, int], error: type[og.OmniError], text: str
) -> None:
    provider.always = silent(provider) if fate is silent else fate
    graph = opened(**settings_)

    with pytest.raises(error, match=text) as told:
        graph.query(RED)
    assert "provider 'openai-compatible' with model 'm-1'" in str(told.value)
    assert told.value.hint
    assert KEY not in f"{told.value} {told.value.hint} {told.value.details()}"
    assert graph.query(NUMBERS).row_count == 3
    provider.always = None
    assert graph.query(RED).rows[0]["d.name"] == "red"


def test_a_silent_provider_is_not_waited_for_longer_than_the_query_may_take(opened: Opened, provider: Provider) -> None:
    provider.always = provider.stays_silent
    with pytest.raises(og.LimitExceeded, match="the read took longer than 300 ms") as told:
        opened().query(RED, timeout_ms=300)
    assert told.value.limit == "limits.query_timeout_ms"


def test_a_provider_that_is_not_there_is_unavailable(opened: Opened) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(og.Unavailable, match="connection failed"):
        opened(embeddings_base_url=f"http://127.0.0.1:{port}/v1").query(RED)


@pytest.fixture
def environment(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_EMBED_BASE_URL", provider.url)
    monkeypatch.setenv("OMNIGRAPH_EMBED_MODEL", "m-1")
    monkeypatch.setenv("OMNIGRAPH_EMBED_RETRY_BACKOFF_MS", "1")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.mark.parametrize(
    ("fate", "deadline_ms", "code"), [(None, 60_000, 0), (says(503), 60_000, 6), (silent, 60, 7), (says(400), 9_000, 1)]
)
def test_the_command_ends_with_the_exit_code_of_the_trouble(
    place: str,
    provider: Provider,
    environment: None,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    fate: Any,
    deadline_ms: int,
    code: int,
) -> None:
    provider.always = silent(provider) if fate is silent else fate
    monkeypatch.setenv("OMNIGRAPH_EMBED_DEADLINE_MS", str(deadline_ms))

    assert main(["query", "-s", place, "-e", RED, "--format", "csv"]) == code
    out, err = capfd.readouterr()
    assert (out == "") == bool(code)
    assert [line.partition(":")[0] for line in err.splitlines()] == (["error", "hint"] if code else [])
    assert KEY not in err


def test_the_mock_answers_without_a_provider(place: str, tmp_path: Path) -> None:
    mocked = og.Graph.open(place, "r", settings=Settings(embeddings_mock=True))

    assert mocked.query(RED).row_count == 3
