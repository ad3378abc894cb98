"""`omnigraph optimize`, `omnigraph snapshot --stats` and `omnigraph upkeep`."""

from __future__ import annotations

from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


def test_optimize_says_what_became_of_each_table(cli, graph):
    for name in ("x", "y"):
        graph.mutate(f'query q() {{ insert Person {{ name: "{name}" }} }}')
    done = cli("optimize", "library")
    assert done.code == 0
    assert done.lines[0].startswith(f"optimize {Path('library').absolute()} — ")
    assert any(line.startswith("node:Person frags ") and line.endswith(" → 1") for line in done.lines)
    assert done.err.startswith("omnigraph optimize → library")


def test_an_idle_optimize_makes_no_commit_and_says_so_in_json(cli, graph):
    cli("optimize", "library")
    told = cli("optimize", "library", "--json").json
    assert "commit" not in told
    assert not any(table["committed"] for table in told["tables"])


def test_optimize_of_a_branch_that_is_not_there_is_refused(cli, graph):
    done = cli("optimize", "library", "--branch", "nowhere")
    assert done.code == 1
    assert "nowhere" in done.err


def test_stats_add_how_tables_lie_on_disk(cli, graph):
    plain = cli("snapshot", "library", "--json").json["tables"][0]
    told = cli("snapshot", "library", "--stats", "--json").json["tables"]
    more = {"fragments", "deleted_rows", "unindexed_rows", "versions", "bytes", "bytes_stored"}
    assert all(set(table) == set(plain) | more for table in told)
    person = next(table for table in told if table["table_key"] == "node:Person")
    assert person["fragments"] >= 1
    assert person["bytes_stored"] >= person["bytes"] > 0
    assert person["versions"] >= 1
    assert " fragments=" in cli("snapshot", "library", "--stats").out
    assert cli("snapshot", "library", "--stats", "--format", "csv").lines[0].endswith("bytes,bytes_stored")


def test_upkeep_runs_what_is_due_and_notes_it(cli, graph):
    Path("upkeep.yaml").write_text("version: 1\nrules: [{do: optimize}, {do: cleanup, keep: 5, when: {every: 1d}}]\n")
    told = cli("upkeep", "--rules", "upkeep.yaml", "-s", "library", "--dry-run")
    assert (told.code, told.lines[0]) == (0, f"upkeep {Path('library').absolute()} — 2 due")
    assert not Path("upkeep.yaml.state.json").exists()
    done = cli("upkeep", "--rules", "upkeep.yaml", "-s", "library", "--json")
    assert done.code == 0
    assert [rule["do"] for rule in done.json["rules"]] == ["optimize", "cleanup"]
    assert Path("upkeep.yaml.state.json").exists()
    again = cli("upkeep", "--rules", "upkeep.yaml", "-s", "library", "--json").json["rules"]
    assert [(rule["do"], rule["result"]) for rule in again] == [("optimize", "nothing to do")]


def test_a_failed_rule_makes_the_exit_code_1_and_the_others_run(cli, graph):
    Path("upkeep.yaml").write_text("version: 1\nrules: [{do: optimize, branches: [nowhere]}, {do: optimize}]\n")
    done = cli("upkeep", "--rules", "upkeep.yaml", "-s", "library")
    assert done.code == 1
    assert "optimize nowhere (there is no such branch): failed: " in done.out
    assert "optimize#2 main (always): " in done.out


def test_a_wrong_rules_file_is_told_with_its_line_and_runs_nothing(cli, graph):
    Path("upkeep.yaml").write_text("version: 1\nrules:\n  - {do: optimise}\n")
    done = cli("upkeep", "--rules", "upkeep.yaml", "-s", "library")
    assert done.code == 1
    assert "upkeep.yaml:3: rules[0].do: expects one of" in done.err
    assert cli("upkeep", "--rules", "none.yaml", "-s", "library").code == 1
