"""`omnigraph embed` as a user meets it: what it prints, how it ends, and that no key is ever shown."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from file_scene import SPEC, doc, write
from provider_scene import KEY, says

from omnigraph.cli.main import main

FILES = ("--input", "in.jsonl", "--output", "out.jsonl", "--spec", "spec.yaml")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def embed(monkeypatch):
    """Run `omnigraph embed …` in this process, through the same edge as the program."""

    def run(*arguments: str, terminal: bool = False) -> SimpleNamespace:
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", io.StringIO())
            patch.setattr(sys, "stderr", Terminal() if terminal else io.StringIO())
            code = main(["embed", *arguments])
            return SimpleNamespace(code=code, out=sys.stdout.getvalue(), err=sys.stderr.getvalue())

    write(doc("one"), '{"edge":"E","from":"a","to":"b"}', doc("two", vec=[1, 0, 0, 0]))
    Path("spec.yaml").write_text(json.dumps(SPEC))
    return run


@pytest.fixture
def mocked(monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")


@pytest.fixture
def asked(provider, monkeypatch):
    """The provider on loopback, named in the environment."""
    given = {"BASE_URL": provider.url, "MODEL": "m-1", "RETRY_BACKOFF_MS": "1", "RETRY_ATTEMPTS": "2"}
    for name, value in given.items():
        monkeypatch.setenv(f"OMNIGRAPH_EMBED_{name}", value)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    return provider


def test_it_says_what_it_did_in_one_line(embed, mocked):
    done = embed(*FILES)
    told = "embedded in.jsonl into out.jsonl: 1 of 3 records, 4 dimensions by model mock\n"
    assert (done.code, done.out, done.err) == (0, told, "")
    assert embed(*FILES, "--clean").out == "cleaned in.jsonl into out.jsonl: 1 of 3 records\n"


def test_with_json_it_prints_the_summary(embed, mocked):
    found = json.loads(embed(*FILES, "--type", "Doc", "--select", "title=two", "--json").out)
    assert found == {
        "input": "in.jsonl",
        "output": "out.jsonl",
        "records": 3,
        "selected_records": 1,
        "embedded_records": 1,
        "cleaned_records": 0,
        "mode": "select",
        "dimension": 4,
        "model": "mock",
    }


def test_a_seed_manifest_takes_the_place_of_three_options(embed, mocked):
    named = {"sources": {"raw_seed": "in.jsonl"}, "artifacts": {"embedded_seed": "done.jsonl"}, "embeddings": SPEC}
    Path("seed.yaml").write_text(json.dumps(named))
    assert embed("--seed", "seed.yaml", "--reembed-all").code == 0
    assert json.loads(Path("done.jsonl").read_text().splitlines()[2])["data"]["vec"] != [1, 0, 0, 0]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "--input, --output and --spec belong together"),
        (FILES[:4], "--input, --output and --spec belong together"),
        ((*FILES, "--seed", "s.yaml"), "--seed names input, output and spec itself"),
        ((*FILES, "--clean", "--reembed-all"), "--reembed-all and --clean cannot be given together"),
        ((*FILES, "--select", "a=b", "--reembed-all"), "--reembed-all and --select cannot be given together"),
    ],
)
def test_words_that_do_not_fit_together_are_a_usage_error(embed, mocked, arguments, told):
    done = embed(*arguments)
    assert done.code == 2
    assert done.err.startswith(f"error: {told}\nhint: ")
    assert not Path("out.jsonl").exists()


def test_settings_come_from_the_file_that_is_named(embed):
    Path("s.yaml").write_text("embeddings: {provider: mock, model: of-file}")
    assert embed(*FILES, "--config", "s.yaml").out.endswith("by model of-file\n")


def test_a_bad_line_ends_with_1_and_its_number(embed, mocked):
    write(doc("one"), "{")
    done = embed(*FILES, "--json")
    assert done.code == 1
    assert done.err.startswith("error: in.jsonl:2: the line is not JSON")
    assert json.loads(done.out)["code"] == "bad_request"
    assert not Path("out.jsonl").exists()


def test_without_a_key_it_ends_with_6_and_the_name_of_the_variable(embed):
    done = embed(*FILES)
    assert done.code == 6
    assert "OPENROUTER_API_KEY or OPENAI_API_KEY is not set" in done.err
    assert sorted(os.listdir()) == ["in.jsonl", "spec.yaml"]


@pytest.mark.parametrize(
    ("fate", "code"),
    [
        (says(503, f"down: {KEY}".encode()), 6),
        (says(401, f"bad key {KEY}".encode()), 6),
        (says(400, f"bad request by {KEY}".encode()), 1),
        (says(200, f"not JSON {KEY}".encode()), 6),
    ],
)
@pytest.mark.parametrize("loud", [("--debug",), ("--verbose", "--json"), ()])
def test_a_provider_that_fails_is_told_by_name_and_the_key_is_not(embed, asked, fate, code, loud):
    asked.always = fate
    done = embed(*FILES, *loud)
    assert done.code == code
    assert "embedding provider 'openai-compatible' with model 'm-1'" in done.err
    assert KEY[:8] not in done.err + done.out
    assert sorted(os.listdir()) == ["in.jsonl", "spec.yaml"]


def test_past_the_deadline_it_ends_with_7(embed, asked, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_EMBED_DEADLINE_MS", "60")
    asked.always = asked.stays_silent
    done = embed(*FILES, "--json")
    assert done.code == 7
    body = json.loads(done.out)
    assert (body["code"], body["limit"], body["value"]) == ("limit_exceeded", "embeddings.deadline_ms", 60)


def test_a_bar_is_shown_on_a_terminal_only_and_not_when_quiet(embed, mocked):
    assert embed(*FILES).err == ""
    assert "embedding" in embed(*FILES, terminal=True).err
    assert embed(*FILES, "--quiet", terminal=True).err == ""
