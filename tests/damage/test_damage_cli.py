"""`omnigraph verify` and `omnigraph repair`: what they print, and their exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from damage_scene import PERSON, contents, foreign, pinned
from harms import foreign_append, foreign_compaction, lost_data_file, lost_schema, torn_above, torn_manifest

import omnigraph as og
from omnigraph.cli.main import main

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[str], str]:
    code = main(list(arguments))
    told = capsys.readouterr()
    return code, told.out.splitlines(), told.err


def run_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any]:
    code, lines, _ = run(capsys, *arguments, "--json")
    return code, json.loads(lines[0])


def test_a_whole_graph_is_said_to_be_whole(graph: og.Graph, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "verify", graph.uri)[:2] == (0, [f"verify {graph.uri} — 4 tables, no findings"])
    code, told = run_json(capsys, "verify", graph.uri)
    assert (code, told) == (0, {"uri": graph.uri, "branches": ["main"], "tables_checked": 4, "findings": []})


def test_each_finding_is_a_line_with_what_mends_it(graph: og.Graph, capsys: pytest.CaptureFixture[str]) -> None:
    torn_above(graph)
    pin = pinned(graph, PERSON).version
    code, lines, _ = run(capsys, "verify", graph.uri)
    assert (code, lines[0]) == (1, f"verify {graph.uri} — 4 tables, 1 finding")
    assert lines[1].startswith(f"unreadable_above_pin main {PERSON} v{pin + 1}: ")
    assert lines[1].endswith("; omnigraph repair --confirm")
    code, told = run_json(capsys, "verify", "--store", graph.uri, "--branch", "main")
    assert code == 1
    assert list(told["findings"][0]) == [
        "finding",
        "branch",
        "table_key",
        "pinned",
        "head",
        "path",
        "message",
        "repair",
    ]


@pytest.mark.parametrize("harm", [torn_manifest, lost_schema])
def test_a_graph_that_does_not_open_is_looked_at_without_a_traceback(
    graph: og.Graph, capsys: pytest.CaptureFixture[str], harm: Any
) -> None:
    harm(graph)
    for verb in ("verify", "repair"):
        code, lines, told = run(capsys, verb, graph.uri)
        assert (code, len(lines) > 1) == (1, True)
        assert "Traceback" not in told
        assert "internal error" not in told


def test_a_repair_is_shown_first_and_done_when_it_is_confirmed(
    graph: og.Graph, capsys: pytest.CaptureFixture[str]
) -> None:
    foreign_compaction(graph)
    pin, head, before = pinned(graph, PERSON).version, foreign(graph, PERSON).version, contents(graph)
    code, lines, said = run(capsys, "repair", graph.uri)
    assert (code, lines[0]) == (0, f"repair {graph.uri} — would repair 1 of 1 findings")
    assert f"v{pin} → v{head}" in lines[1]
    assert lines[1].split()[:6] == [PERSON, "on", "main", "healed", "drift_maintenance", "(verified_maintenance)"]
    assert "nothing was touched" in said
    assert contents(graph) == before
    code, told = run_json(capsys, "repair", graph.uri, "--confirm")
    row = next(t for t in told["tables"] if t["table_key"] == PERSON)
    assert (code, row["action"], row["classification"]) == (0, "healed", "verified_maintenance")
    assert (row["table_version"], row["lance_head_version"]) == (pin, head)
    assert run(capsys, "verify", graph.uri)[0] == 0


def test_a_refusal_and_what_cannot_be_mended_end_with_one(graph: og.Graph, capsys: pytest.CaptureFixture[str]) -> None:
    foreign_append(graph)
    code, lines, _ = run(capsys, "repair", graph.uri, "--confirm")
    assert (code, "refused" in lines[1], "--force" in lines[1]) == (1, True, True)
    assert run(capsys, "repair", graph.uri, "--confirm", "--force")[0] == 0
    lost_data_file(graph)
    code, lines, _ = run(capsys, "repair", graph.uri, "--confirm")
    assert (code, "unrepairable" in lines[1]) == (1, True)


def test_mistakes_on_the_line_are_told(graph: og.Graph, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "repair", graph.uri, "--force")[0] == 2
    code, _, said = run(capsys, "verify", graph.uri, "--branch", "nobody")
    assert (code, "branch 'nobody' not found" in said) == (1, True)
    code, _, said = run(capsys, "verify", f"{graph.uri}-not")
    assert (code, "there is no graph" in said) == (1, True)


@pytest.mark.parametrize("verb", ["verify", "repair"])
def test_help_has_examples(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, lines, _ = run(capsys, verb, "--help")
    assert code == 0
    assert any(line.strip().startswith(f"omnigraph {verb} ") for line in lines)


def test_the_program_ends_with_the_code_that_a_script_looks_at(graph: og.Graph) -> None:
    command = [sys.executable, "-m", "omnigraph.cli.main", "verify", graph.uri]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    lost_data_file(graph)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)


def test_the_page_names_every_finding_and_action() -> None:
    from omnigraph.engine.repair.decide import Action
    from omnigraph.engine.verify.findings import Damage

    page = (ROOT / "docs" / "repair.md").read_text(encoding="utf-8")
    assert [d.value for d in Damage if f"`{d.value}`" not in page] == []
    assert [a.value for a in Action if f"`{a.value}`" not in page and a is not Action.NO_OP] == []
