"""One graph from its first day to its copy, as a user lives it with the command line; each step is seen by the next."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from omnigraph.cli.main import main
from s3_server import KEY, SECRET, S3Server

SCHEMA = """node Person { name: String @key  age: I32? @index  nick: String? }
node Team { code: String @key }
edge MemberOf: Person -> Team { since: I32? }
"""
WIDER = """node Person { name: String @key  age: I32? @index  nick: String?  email: String? }
node Team { code: String @key }
node Desk { room: String @key }
edge MemberOf: Person -> Team { since: I32? }
"""
NARROWER = WIDER.replace("  nick: String?", "")
PIPELINE = """version: 1
target: {{graph: "{graph}", mode: merge}}
sources:
  people: {{format: csv, path: people.csv, options: {{header: true, inferSchema: true}}}}
  teams: {{format: ndjson, path: teams.jsonl}}
transforms:
  grown: select name, age, nick from people where age >= 18
nodes:
  - {{type: Person, from: grown, map: {{name: name, age: age, nick: nick}}}}
load: {{message: first people}}
"""
PEOPLE = [(f"person{n:03}", 10 + n % 60) for n in range(300)]
GROWN = sum(1 for _, age in PEOPLE if age >= 18)
Say = Callable[..., str]


@pytest.fixture
def say(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Say:
    """`omnigraph …`, whose payload is returned; `code` is the exit code it must have."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, code: int = 0, of: str = "out") -> str:
        streams = {"out": io.TextIOWrapper(io.BytesIO(), "utf-8"), "err": io.TextIOWrapper(io.BytesIO(), "utf-8")}
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", streams["out"])
            patch.setattr(sys, "stderr", streams["err"])
            ended = main([str(a) for a in arguments])
        told = {}
        for name, stream in streams.items():
            stream.flush()
            told[name] = stream.buffer.getvalue().decode()
        assert ended == code, told["err"]
        assert "Traceback" not in told["err"]
        return told[of]

    return run


class Life:
    """A graph under one name, and what a user asks of it."""

    def __init__(self, say: Say, uri: str) -> None:
        self._say, self.uri = say, uri

    def __call__(self, *arguments: str, **more: Any) -> str:
        return self._say(*arguments, "--store", self.uri, **more)

    def told(self, *arguments: str, **more: Any) -> Any:
        return json.loads(self(*arguments, "--json", **more))

    def count(self, type_: str, *target: str) -> int:
        body = self.told("sql", f"select count(*) as n from node_{type_}", *target)
        return int(body["rows"][0]["n"])

    def head(self, branch: str = "main") -> str:
        return str(self.told("commit", "list", "--branch", branch, "--limit", "1")["commits"][0]["graph_commit_id"])

    def is_whole(self) -> None:
        assert json.loads(self._say("verify", self.uri, "--json"))["findings"] == []


def write_inputs() -> None:
    lines = "\n".join(f"{name},{age},{name[:2]}" for name, age in PEOPLE)
    Path("people.csv").write_text(f"name,age,nick\n{lines}\n")
    Path("teams.jsonl").write_text('{"type": "Team", "data": {"code": "red"}}\n')
    for name, text in (("first", SCHEMA), ("wider", WIDER), ("narrower", NARROWER)):
        Path(f"{name}.pg").write_text(text)


def live(say: Say, life: Life, copy: str, load: Callable[[], None]) -> None:
    """From init to a verified copy."""
    say("init", life.uri, "--schema", "first.pg")
    load()
    loaded = life.head()
    assert life.count("Person") == GROWN
    life("tag", "create", "loaded")

    # A branch writes while the schema of main is widened, and reads the new property as null.
    life("branch", "create", "draft")
    add = "query add($n: String) { insert Person { name: $n, age: 40 } }"
    life("mutate", "--branch", "draft", "-e", add, "--params", '{"n": "zoe"}')
    life("schema", "apply", "--schema", "wider.pg", "-m", "people have mail")
    assert life.count("Person", "--branch", "draft") == GROWN + 1
    life("mutate", "--branch", "draft", "-e", 'query mail() { update Person set { email: "z@x" } where name = "zoe" }')
    life("mutate", "-e", 'query older() { update Person set { age: 99 } where name = "person020" }')
    merged = life.told("branch", "merge", "draft")
    assert merged["outcome"] == "merged"
    found = life.told("sql", "select name, age, email from node_Person where name in ('zoe', 'person020') order by 1")
    assert [tuple(row.values()) for row in found["rows"]] == [("person020", 99, None), ("zoe", 40, "z@x")]

    # Dropping is refused while another branch lives, and done when it is gone.
    refused = life("schema", "apply", "--schema", "narrower.pg", code=3, of="err")
    assert "draft" in refused
    life("branch", "delete", "draft", "--yes")
    life("schema", "apply", "--schema", "narrower.pg", "-m", "no nicknames")
    assert "nick" not in life("export", "--type", "Person")
    life("optimize")
    life("optimize", "-m", "again, for nothing")

    # A strict update goes through after the maintenance, and a stale one does not.
    head = life.head()
    strict = 'query y() { update Person set { age: 41 } where name = "zoe" }'
    life("mutate", "-e", strict, "--if-commit", head)
    life("mutate", "-e", strict, "--if-commit", head, code=4)
    say("cleanup", life.uri, "--keep", "2", "--confirm", "--yes")
    assert life.count("Person", "--at", "loaded") == GROWN
    assert life.count("Person", "--snapshot", loaded) == GROWN
    life.is_whole()

    # The copy goes on as the original would.
    life("branch", "create", "next")
    life("mutate", "--branch", "next", "-e", add, "--params", '{"n": "yan"}')
    assert say("clone", life.uri, copy) == f"cloned {life.uri} to {copy}: 2 branches\n"
    other = Life(say, copy)
    other.is_whole()
    for target in (("--branch", "main"), ("--branch", "next"), ("--at", "loaded")):
        assert other("export", *target) == life("export", *target)
    assert other.head() == life.head()
    assert other.told("branch", "merge", "next")["outcome"] == "fast_forward"
    assert other.count("Person") == life.count("Person") + 1
    other.is_whole()


@pytest.mark.slow
@pytest.mark.spark
def test_a_graph_lives_from_its_first_pipeline_to_a_verified_copy(say: Say, spark: Any):
    write_inputs()
    Path("pipeline.yaml").write_text(PIPELINE.format(graph="library"))
    live(say, Life(say, "library"), "copy", lambda: _load_by_pipeline(say, "library"))


@pytest.mark.slow
def test_a_graph_on_a_store_lives_the_same_life(say: Say, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch):
    reach = {
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL_S3": s3_server.endpoint,
        "AWS_S3_FORCE_PATH_STYLE": "true",
        "AWS_ALLOW_HTTP": "true",
    }
    for name, value in reach.items():
        monkeypatch.setenv(name, value)
    write_inputs()
    uri = s3_server.uri()
    live(say, Life(say, uri), "copy", lambda: _load_by_file(say, uri))


def _load_by_pipeline(say: Say, uri: str) -> None:
    say("pipeline", "run", "pipeline.yaml", "--json")


def _load_by_file(say: Say, uri: str) -> None:
    grown = [{"type": "Person", "data": {"name": n, "age": a, "nick": n[:2]}} for n, a in PEOPLE if a >= 18]
    Path("people.jsonl").write_text("\n".join(map(json.dumps, grown)))
    say("load", uri, "--data", "people.jsonl", "--mode", "append", "-m", "first people")
