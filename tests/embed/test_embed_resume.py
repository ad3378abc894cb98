"""Runs that fail: what they leave behind, and that the next one goes on from there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from file_scene import SPEC, datas, doc, many, write
from provider_scene import KEY, expected, says

from omnigraph.base.errors import BadRequest, Conflict, LimitExceeded, Unavailable
from omnigraph.embeddings import embed_file

KEPT = "out.jsonl.kept"


def right(name: str = "out.jsonl") -> bool:
    return all(
        np.array(d["vec"]).astype(np.float32).tobytes() == expected(f"type: Doc\ntitle: {d['title']}", 4).tobytes()
        for d in datas(name)
    )


def fail_after(provider, settings, batches: int, **options) -> Unavailable:
    """A run that gets so many batches and then meets a provider that is down."""
    provider.fates += [None] * batches
    provider.always = says(503)
    with pytest.raises(Unavailable) as caught:
        embed_file("in.jsonl", "out.jsonl", SPEC, settings=settings(embeddings_retry_attempts=1), **options)
    provider.always = None
    provider.asked.clear()
    return caught.value


def test_a_run_that_fails_at_once_leaves_nothing(provider, settings):
    write(*many(3))
    fail_after(provider, settings, 0)
    assert os.listdir() == ["in.jsonl"]


def test_a_run_that_fails_leaves_neither_output_nor_a_part_of_it_and_the_next_goes_on(provider, settings):
    write(*many(200))
    error = fail_after(provider, settings, 2)
    assert sorted(os.listdir()) == ["in.jsonl", KEPT]
    assert "128 vectors are kept in" in error.hint
    assert "the same command goes on from there" in error.hint
    done = embed_file("in.jsonl", "out.jsonl", SPEC, settings=settings())
    assert [len(texts) for texts in provider.texts] == [64, 8]
    assert provider.texts[0][0] == "type: Doc\ntitle: title 128"
    assert (done.records, done.embedded_records) == (200, 200)
    assert right()
    assert sorted(os.listdir()) == ["in.jsonl", "out.jsonl"]


def test_an_older_output_stays_whole_until_the_new_one_is(provider, settings):
    write(*many(70))
    Path("out.jsonl").write_text("what was there")
    fail_after(provider, settings, 1)
    assert Path("out.jsonl").read_text() == "what was there"


def test_it_may_fail_as_often_as_it_likes(provider, settings):
    write(*many(200))
    for _ in range(3):
        fail_after(provider, settings, 1)
    embed_file("in.jsonl", "out.jsonl", SPEC, settings=settings())
    assert [len(texts) for texts in provider.texts] == [8]
    assert right()


def test_a_row_that_was_wrong_can_be_corrected_and_the_run_goes_on(provider, settings):
    rows = many(100)
    write(*rows[:80], doc(" "), *rows[81:])
    with pytest.raises(BadRequest, match=r"in\.jsonl:81: the line has no text"):
        embed_file("in.jsonl", "out.jsonl", SPEC, settings=settings())
    provider.asked.clear()
    write(*rows)
    embed_file("in.jsonl", "out.jsonl", SPEC, settings=settings())
    assert [len(texts) for texts in provider.texts] == [36]
    assert right()


def test_what_changed_before_the_failure_is_embedded_anew(provider, settings):
    rows = many(130)
    write(*rows)
    fail_after(provider, settings, 2)
    write(*rows[:10], doc("another"), *rows[11:])
    embed_file("in.jsonl", "out.jsonl", SPEC, settings=settings())
    assert sum(map(len, provider.texts)) == 120
    assert right()


@pytest.mark.parametrize("change", ["model", "dimension", "mode"])
def test_vectors_made_in_another_way_are_not_taken(provider, settings, change):
    write(*many(70))
    fail_after(provider, settings, 1)
    spec, options = dict(SPEC), {}
    if change == "mode":
        options = {"reembed_all": True}
    else:
        spec |= {"model": "m-2"} if change == "model" else {"dimension": 5}
    embed_file("in.jsonl", "out.jsonl", spec, settings=settings(), **options)
    assert sum(map(len, provider.texts)) == 70


@pytest.mark.parametrize("cut", [1, 17, 100])
def test_vectors_that_were_half_written_are_not_taken(provider, settings, cut):
    write(*many(70))
    fail_after(provider, settings, 1)
    Path(KEPT).write_bytes(Path(KEPT).read_bytes()[:-cut])
    embed_file("in.jsonl", "out.jsonl", SPEC, settings=settings())
    assert 6 < sum(map(len, provider.texts)) < 70
    assert right()


def test_vectors_that_were_damaged_are_not_taken(provider, settings):
    write(*many(70))
    fail_after(provider, settings, 1)
    data = bytearray(Path(KEPT).read_bytes())
    data[-3] ^= 0xFF
    Path(KEPT).write_bytes(data)
    embed_file("in.jsonl", "out.jsonl", SPEC, settings=settings())
    assert sum(map(len, provider.texts)) == 7
    assert right()


def test_a_deadline_that_passed_keeps_the_vectors_too(provider, settings):
    write(*many(70))
    provider.fates += [None, provider.stays_silent]
    with pytest.raises(LimitExceeded) as caught:
        embed_file("in.jsonl", "out.jsonl", SPEC, settings=settings(embeddings_deadline_ms=500))
    assert "64 vectors are kept" in caught.value.hint
    assert sorted(os.listdir()) == ["in.jsonl", KEPT]


def test_two_runs_do_not_write_one_output(provider, settings):
    write(*many(2))

    def asks_meanwhile(handler):
        with pytest.raises(Conflict, match="another run holds"):
            embed_file("in.jsonl", "out.jsonl", SPEC, settings=settings())
        says(503)(handler)

    provider.fates += [asks_meanwhile]
    embed_file("in.jsonl", "out.jsonl", SPEC, settings=settings())
    assert len(provider.asked) == 2
    assert right()


@pytest.mark.slow
@pytest.mark.parametrize("blow", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_stopped_or_killed_goes_on_next_time(provider, blow):
    write(*many(200))
    Path("spec.yaml").write_text(str(SPEC))
    program = [sys.executable, "-m", "omnigraph.cli.main", "embed"]
    options = ["--input", "in.jsonl", "--output", "out.jsonl", "--spec", "spec.yaml"]
    env = {
        **os.environ,
        "OMNIGRAPH_EMBED_BASE_URL": provider.url,
        "OMNIGRAPH_EMBED_MODEL": "m-1",
        "OPENAI_API_KEY": KEY,
    }

    def strikes(handler):
        process.send_signal(blow)
        provider.stays_silent(handler)

    provider.fates += [None, None, strikes]
    process = subprocess.Popen([*program, *options], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    _, err = process.communicate(timeout=60)
    assert process.returncode == (130 if blow is signal.SIGINT else -9)
    assert "Traceback" not in err
    assert not Path("out.jsonl").exists()
    assert Path("out.jsonl.partial").exists() == (blow is signal.SIGKILL)
    provider.asked.clear()
    done = subprocess.run([*program, *options], env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert sum(map(len, provider.texts)) == 72
    assert right()
    assert sorted(os.listdir()) == ["in.jsonl", "out.jsonl", "spec.yaml"]
