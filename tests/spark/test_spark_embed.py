"""A file embedded on Spark is the one that a single process makes, and the key is seen by the provider alone."""

from __future__ import annotations

import base64
import gzip
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from connect_server import spark_environment

from embed.file_scene import SPEC, doc, lines_of, many, write
from embed.provider_scene import KEY, Provider, answers, says
from omnigraph.base.errors import BadRequest, InternalError, LimitExceeded, NotFound, OmniError, Unavailable
from omnigraph.cli.main import main
from omnigraph.embeddings import EmbedSummary, embed_file
from omnigraph.embeddings.providers import BadAnswer
from omnigraph.embeddings.transport import Pace
from omnigraph.pipeline import embed as on_executors
from omnigraph.pipeline.embed import on_spark
from omnigraph.settings import Settings

pytestmark = [pytest.mark.spark, pytest.mark.slow]

MIXED = (
    b'\xef\xbb\xbf{"type": "Doc", "data": {"title": "first"}}\r\n'
    + b'{"edge": "Cites", "from": "a",  "to": "b"}\n\n'
    + b"".join(f"{line}\n".encode() for line in many(300))
    + b'{"type":"Doc","data":{"title":"kept","vec":[1,0,0,0]}}\n'
    + b'{"type":"Doc","data":{"vec":null,"title":"second","body":["x","y"]}}\n'
    + b'{"type":"Other","data":{"title":"not asked for"}}\n  \n'
    + b"".join(f'{{"type":"Tag","data":{{"name":"t{n}"}}}}\n'.encode() for n in range(150))
    + '{"type":"Tag","data":{"name":"größe, last"}}'.encode()
)
MODES: list[dict[str, Any]] = [
    {},
    {"select": ["Doc:title=kept", "name=t7"]},
    {"reembed_all": True, "types": ["Doc"]},
    {"clean": True},
]


@pytest.fixture
def provider() -> Iterator[Provider]:
    started = Provider()
    yield started
    started.stop()


@pytest.fixture(autouse=True)
def folder(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh directory, an environment that names no provider, and rounds of one request for each core."""
    for name in [n for n in os.environ if n.startswith("OMNIGRAPH_") or n.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(on_executors, "_BATCHES_PER_LANE", 1)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def settings(provider: Provider) -> Callable[..., Settings]:
    def make(**given: Any) -> Settings:
        chosen = {"embeddings_base_url": provider.url, "embeddings_model": "m-1", "openai_api_key": KEY}
        return Settings.resolve(**chosen | {"embeddings_retry_backoff_ms": 1} | given)

    return make


def run(engine: str, chosen: Settings, input: str = "in.jsonl", output: str = "out.jsonl", **more: Any) -> EmbedSummary:
    options = {"embeds": on_spark()} if engine == "spark" else {}
    return embed_file(input, output, SPEC, settings=chosen, **options | more)


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_spark_writes_the_file_that_one_process_writes(settings, provider, mode):
    Path("in.jsonl").write_bytes(MIXED)
    one = run("embedded", settings(), **mode).to_json()
    made, asked = Path("out.jsonl").read_bytes(), sorted(text for texts in provider.texts for text in texts)
    provider.asked.clear()
    Path("out.jsonl").unlink()
    two = run("spark", settings(), **mode).to_json()

    assert (two, Path("out.jsonl").read_bytes() == made) == (one, True)
    assert sorted(text for texts in provider.texts for text in texts) == asked
    assert max((len(texts) for texts in provider.texts), default=0) <= 64
    assert {a.headers["Authorization"] for a in provider.asked} <= {f"Bearer {KEY}"}
    assert sorted(os.listdir()) == ["in.jsonl", "out.jsonl"]


def test_compressed_files_and_a_provider_of_one_text_a_request_are_no_different(settings, provider):
    Path("in.jsonl.gz").write_bytes(gzip.compress(b"".join(f"{line}\n".encode() for line in many(70))))
    gemini = settings(embeddings_provider="gemini", gemini_api_key=KEY)
    for engine in ("embedded", "spark"):
        run(engine, gemini, "in.jsonl.gz", f"{engine}.jsonl.gz")
    assert len(provider.asked) == 140
    assert gzip.decompress(Path("spark.jsonl.gz").read_bytes()) == gzip.decompress(
        Path("embedded.jsonl.gz").read_bytes()
    )


def failed(engine: str, chosen: Settings) -> OmniError:
    with pytest.raises(OmniError) as caught:
        run(engine, chosen)
    assert not Path("out.jsonl").exists()
    assert KEY[:8] not in f"{caught.value!r} {caught.value} {caught.value.hint}"
    with suppress(FileNotFoundError):
        Path("out.jsonl.kept").unlink()
    return caught.value


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ("{", "in.jsonl:131: the line is not JSON"),
        (doc("  "), "in.jsonl:131: the line has no text to embed"),
        ('{"type":"Doc","data":{"title":"a","title":"b"}}', "in.jsonl:131: the line has member 'title' twice"),
    ],
)
def test_a_bad_line_is_told_with_its_number_as_by_one_process(settings, bad, told):
    write(*many(130), bad, *many(10))
    one, two = failed("embedded", settings()), failed("spark", settings())
    assert str(two).startswith(told)
    assert (type(two), str(two)) == (type(one), str(one))


@pytest.mark.parametrize(
    ("fate", "kind", "told"),
    [
        (says(503), Unavailable, "(2 attempts, last: HTTP 503)"),
        (says(401, f"bad key {KEY}".encode()), Unavailable, "refused the key of OPENAI_API_KEY (HTTP 401)"),
        (says(400, f"no {KEY}".encode()), BadRequest, "(HTTP 400): no ***"),
        (says(200, b"{}"), BadAnswer, "answered no list of vectors"),
        ("stays_silent", LimitExceeded, "within 100 ms (1 attempt, last: timeout)"),
    ],
)
def test_trouble_with_the_provider_is_the_error_of_one_process(settings, provider, fate, kind, told):
    provider.always = getattr(provider, fate) if isinstance(fate, str) else fate
    chosen = settings(embeddings_retry_attempts=2, embeddings_deadline_ms=100 if fate == "stays_silent" else 0)
    write(*many(130))
    one, two = failed("embedded", chosen), failed("spark", chosen)
    assert type(two) is kind
    assert str(two).endswith(told)
    assert (str(two), two.hint, two.__dict__) == (str(one), one.hint, one.__dict__)


def test_what_is_wrong_before_the_first_request_is_told_without_spark(settings, monkeypatch):
    def never(*_: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr(on_executors, "spark_session", never)
    assert isinstance(failed("spark", settings()), NotFound)
    write(*many(3))
    refused = failed("spark", settings(openai_api_key=None))
    assert "OPENROUTER_API_KEY or OPENAI_API_KEY is not set" in str(refused)
    run("spark", settings(), clean=True)
    assert len(lines_of()) == 3


def test_what_a_failed_run_had_embedded_is_kept_for_either_engine(settings, provider):
    def fails_at_250(handler: Any) -> None:
        texts = handler.asked.body["input"]
        (says(503) if any(text.endswith("title 250") for text in texts) else answers)(handler)

    write(*many(400))
    provider.always = fails_at_250
    with pytest.raises(Unavailable) as refused:
        run("spark", settings(embeddings_retry_attempts=1))
    assert "192 vectors are kept in" in refused.value.hint
    provider.always = None
    provider.asked.clear()
    run("embedded", settings())
    assert provider.texts[0][0].endswith("title 192")
    assert sum(map(len, provider.texts)) == 400 - 192
    made = Path("out.jsonl").read_bytes()
    run("spark", settings())
    assert Path("out.jsonl").read_bytes() == made


def test_a_task_that_is_tried_again_gives_each_line_one_vector(settings, provider, monkeypatch):
    write(*many(128))
    run("embedded", settings())
    made, real = Path("out.jsonl").read_bytes(), on_executors.embed_lanes
    provider.asked.clear()

    def fails_once(batches: Any, asked: Any) -> Any:
        from pyspark import TaskContext

        answer = list(real(batches, asked))
        context = TaskContext.get()
        if context.partitionId() == 0 and context.attemptNumber() == 0:
            raise RuntimeError("lost after the work was done")
        return iter(answer)

    monkeypatch.setattr(on_executors, "embed_lanes", fails_once)
    done = run("spark", settings())
    assert (done.embedded_records, Path("out.jsonl").read_bytes() == made) == (128, True)
    assert sorted(map(len, provider.texts)) == [64, 64, 64]


def test_a_task_that_fails_for_good_is_an_error_of_ours(settings, monkeypatch):
    def fails(batches: Any, asked: Any) -> Any:
        raise RuntimeError("no disk")

    write(*many(3))
    monkeypatch.setattr(on_executors, "embed_lanes", fails)
    error = failed("spark", settings())
    assert isinstance(error, InternalError)
    assert "embedding: a Spark worker failed: RuntimeError: no disk" in str(error)


def test_requests_of_several_partitions_are_under_way_at_once(settings, provider):
    both = threading.Barrier(2, timeout=60)

    def waits_for_the_other(handler: Any) -> None:
        both.wait()
        answers(handler)

    provider.always = waits_for_the_other
    write(*many(128))
    assert run("spark", settings(embeddings_timeout_ms=0, embeddings_deadline_ms=0)).embedded_records == 128
    assert not both.broken


def test_all_partitions_together_keep_the_one_rate_limit(settings, provider, monkeypatch):
    seen: dict[Any, list[float]] = {}

    def notes(handler: Any) -> None:
        # A lane has one connection of its own.
        seen.setdefault(handler.client_address, []).append(time.monotonic())
        second = [asked for asked in provider.asked if asked.body["input"][0].endswith("title 64")]
        (says(429) if second and second[0] is handler.asked else answers)(handler)

    monkeypatch.setattr(on_executors, "_BATCHES_PER_LANE", 3)
    provider.always = notes
    write(*many(64 * 6))
    run("spark", settings(embeddings_requests_per_minute=200))
    # One each 0.3 s, so each of two lanes one each 0.6 s, and one more for the second that was turned away. A slow
    # machine only makes the distances longer.
    assert sorted(map(len, seen.values())) == [3, 4]
    for times in seen.values():
        assert times[-1] - times[0] >= (len(times) - 1) * 0.5


def test_lanes_take_turns_and_those_of_the_next_round_follow():
    pace = Pace.of(Settings(embeddings_requests_per_minute=601))
    assert pace.interval_ms == 100
    turns = sorted(
        lane.first_ms + n * lane.interval_ms for k in range(3) for n in range(4) for lane in [pace.shared(k, 3, True)]
    )
    assert turns == list(range(0, 1200, 100))
    assert [pace.shared(k, 3, False).first_ms for k in range(3)] == [100, 200, 300]
    assert Pace.of(Settings()).shared(2, 3, False) == Pace()


def test_progress_counts_rows_and_tasks_that_never_fall(settings):
    rows: list[tuple[str, int]] = []
    tasks: list[tuple[int, int]] = []
    write(*many(300))
    told = {"progress": lambda *seen: rows.append(seen), "embeds": on_spark(tell_tasks=lambda *n: tasks.append(n))}
    embed_file("in.jsonl", "out.jsonl", SPEC, settings=settings(), **told)
    assert rows[-1] == ("embedding", 300)
    assert tasks == sorted(tasks)
    assert tasks[-1] == (5, 5)


def test_the_command_takes_spark_where_it_is_asked_for_or_named(monkeypatch, capsys):
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    taken: list[object] = []
    real = on_executors.spark_session
    monkeypatch.setattr(on_executors, "spark_session", lambda s: taken.append(s.spark_master) or real(s))
    write(*many(3))
    Path("spec.json").write_text(json.dumps(SPEC))
    files = ["embed", "--input", "in.jsonl", "--output", "out.jsonl", "--spec", "spec.json", "--json"]
    found = []
    for options in ([], ["--engine", "spark"], ["--master", "local[3]"], ["--engine", "embedded", "--master", "local"]):
        assert main([*files, *options]) == 0
        found.append((capsys.readouterr().out, Path("out.jsonl").read_bytes()))
    assert found == [found[0]] * 4
    assert taken == [None, "local[3]"]


@pytest.mark.timeout(200)
def test_the_key_is_in_no_event_plan_log_or_file_of_spark(provider, folder):
    write(*many(130))
    Path("spec.json").write_text(json.dumps(SPEC))
    (folder / "events").mkdir()
    conf = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": folder / "events",
    }
    files = ["--input", "in.jsonl", "--output", "out.jsonl", "--spec", "spec.json"]
    given = {"BASE_URL": provider.url, "MODEL": "m-1", "RETRY_ATTEMPTS": "1"}
    command = ["embed", *files, "--engine", "spark", "--master", "local[2]", "--verbose", "--debug"]
    provider.fates.extend([None, None, says(401, f"bad key {KEY}".encode())])
    done = subprocess.run(
        [sys.executable, "-m", "omnigraph.cli.main", *command]
        + [word for name, value in conf.items() for word in ("--spark-conf", f"{name}={value}")],
        env={
            **{name: value for name, value in spark_environment().items() if not name.endswith("_API_KEY")},
            **{f"OMNIGRAPH_EMBED_{name}": value for name, value in given.items()},
            "OPENAI_API_KEY": KEY,
            "TMPDIR": str(folder),
        },
        capture_output=True,
        timeout=190,
        check=False,
    )
    assert done.returncode == 6, done.stderr
    assert b"refused the key of OPENAI_API_KEY (HTTP 401)" in done.stderr
    files_left = [path for path in folder.rglob("*") if path.is_file()]
    kept = b"".join(path.read_bytes() for path in files_left) + done.stdout + done.stderr
    assert b"SparkListenerSQLExecutionStart" in kept
    assert b"MapInArrow" in kept
    shifts = [base64.b64encode(b"x" * n + KEY.encode())[4 * n and 4 : -4] for n in range(3)]
    for form in (KEY.encode(), KEY.encode().hex().encode(), KEY.encode("utf-16-le"), *shifts):
        assert form not in kept
