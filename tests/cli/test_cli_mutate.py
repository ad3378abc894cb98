"""`omnigraph mutate`."""

from __future__ import annotations

import orjson
import pytest

pytestmark = pytest.mark.slow

HIRE = "query hire($n: String, $a: I32?) { insert Person { name: $n, age: $a } }"
FIRE = 'query fire() { delete Person where name = "nobody" }'


@pytest.fixture
def file(graph, tmp_path):
    path = tmp_path / "people.gq"
    path.write_text(f"{HIRE}\n{FIRE}\n")
    return str(path)


def test_a_query_on_the_line_changes_the_graph(cli, graph):
    done = cli("mutate", "-e", HIRE, "--params", '{"n": "zoe", "a": 7}', "--store", "library", "-m", "welcome zoe")
    assert (done.code, done.lines) == (0, ["changed main via hire: 1 nodes, 0 edges"])
    assert done.err == "omnigraph mutate → library\n"
    commit = graph.list_commits()[0]
    assert (commit.kind, commit.message) == ("mutation", "welcome zoe")
    assert graph.entity_at("node:Person", "zoe", graph.snapshot().version)["age"] == 7


def test_one_of_several_queries_of_a_file_is_named(cli, graph, file, tmp_path):
    (tmp_path / "zoe.json").write_bytes(orjson.dumps({"n": "zoe"}))
    words = ("--query", file, "--params-file", str(tmp_path / "zoe.json"), "--store", "library")
    done = cli("mutate", "hire", *words, "--json", "--as", "act-ana")
    assert done.json["affected_nodes"] == 1
    assert (done.json["query_name"], done.json["actor_id"]) == ("hire", "act-ana")
    assert graph.get_commit(done.json["commit"]).actor_id == "act-ana"
    unnamed = cli("mutate", *words)
    assert unnamed.code == 1
    assert "hire" in unnamed.err
    assert "fire" in unnamed.err


def test_nothing_matched_is_success_and_says_so(cli, graph, file):
    done = cli("mutate", "fire", "--query", file, "--store", "library")
    assert (done.code, done.lines) == (0, ["changed main via fire: 0 nodes, 0 edges"])
    assert "nothing was committed" in done.err


def test_a_branch_can_be_written_to(cli, graph):
    cli("branch", "create", "draft", "--store", "library")
    words = ("-e", HIRE, "--params", '{"n": "zoe"}', "--store", "library", "--branch", "draft")
    assert cli("mutate", *words).lines == ["changed draft via hire: 1 nodes, 0 edges"]
    rows = {name: graph.snapshot(name).tables["node:Person"].row_count for name in ("main", "draft")}
    assert rows["draft"] == rows["main"] + 1


def test_if_commit_refuses_with_its_own_exit_code(cli, graph):
    head, words = graph.head_commit_id_for_branch(), ("-e", HIRE, "--params", '{"n": "zoe"}', "--store", "library")
    assert cli("mutate", *words, "--if-commit", head).code == 0
    refused = cli("mutate", *words, "--if-commit", head)
    assert refused.code == 4
    assert head in refused.err


def test_mistakes_are_told_with_place_and_remedy(cli, graph, tmp_path):
    (tmp_path / "bad.gq").write_text("query q() {\n  insert Persn { name: 1 }\n}")
    wrong = cli("mutate", "--query", str(tmp_path / "bad.gq"), "--store", "library")
    assert wrong.code == 1
    assert "bad.gq:2:" in wrong.err
    assert "Person" in wrong.err
    assert cli("mutate", "--store", "library").code == 2
    assert cli("mutate", "-e", HIRE, "--query", "x.gq", "--store", "library").code == 2
    assert cli("mutate", "-e", HIRE, "--params", "{}", "--params-file", "x", "--store", "library").code == 2
    assert "not JSON" in cli("mutate", "-e", HIRE, "--params", "{", "--store", "library").err
    missing = cli("mutate", "-e", HIRE, "--store", "library")
    assert (missing.code, "parameter 'n' not provided" in missing.err) == (1, True)
    read = cli("mutate", "-e", "query q() { match { $p: Person } return { $p.name } }", "--store", "library")
    assert (read.code, "only reads" in read.err) == (1, True)
