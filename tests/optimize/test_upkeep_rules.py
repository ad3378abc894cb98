"""Which rules are due, what a rules file may say, and that one failing rule does not keep others from running."""

from __future__ import annotations

import json
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from optimize_scene import P, fragments

import omnigraph as og
from omnigraph.engine.upkeep.rules import Facts, Rule, When, due
from omnigraph.pipeline.rules_file import RulesInvalid, RunNotes, read_rules

pytestmark = pytest.mark.slow

DAY = 86_400_000_000
NOW = 100 * DAY
SPEC = """
version: 1
rules:
  - {do: ensure_indices, branches: [main], when: {unindexed_rows: 10000}}
  - {do: optimize, branches: ["*"], when: {fragments: 64}}
  - {do: cleanup, keep: 200, older_than: 30d, when: {every: 1d}}
  - {do: verify, when: {every: 7d}}
"""


def names(*rules: Rule, facts: tuple[Facts, ...] = (Facts("main"),), runs: dict[str, int] | None = None) -> list[Any]:
    return [(d.rule.name, d.branch) for d in due(rules, facts, runs or {}, NOW)]


def test_a_rule_without_a_condition_is_always_due() -> None:
    assert names(Rule("optimize", "optimize", ("main",))) == [("optimize", "main")]


@given(st.integers(0, 20), st.integers(0, 20))
def test_conditions_are_alternatives(rows: int, pieces: int) -> None:
    rule = Rule("optimize", "optimize", ("main",), When(unindexed_rows=10, fragments=12))
    found = names(rule, facts=(Facts("main", pieces, rows),))
    assert bool(found) == (rows >= 10 or pieces >= 12)


def test_every_counts_from_the_last_commit_of_its_kind() -> None:
    rule = Rule("optimize", "optimize", ("main",), When(every=timedelta(days=2)))
    for age, is_due in ((1, False), (2, True), (3, True)):
        facts = (Facts("main", last_us={"optimize": NOW - age * DAY, "mutation": NOW}),)
        assert bool(names(rule, facts=facts)) == is_due
    assert names(rule, facts=(Facts("main", last_us={"mutation": NOW}),)), "never done yet"


def test_every_of_a_whole_graph_rule_counts_from_its_own_last_run() -> None:
    rules = [Rule(n, "cleanup", keep=1, when=When(every=timedelta(days=1))) for n in ("cleanup", "cleanup#2")]
    assert names(*rules, runs={"cleanup": NOW - DAY + 1}) == [("cleanup#2", None)]
    assert names(*rules, runs={"cleanup": NOW - DAY, "cleanup#2": NOW}) == [("cleanup", None)]


def test_a_star_means_every_branch_and_each_is_named_once() -> None:
    facts = (Facts("main"), Facts("draft"))
    rule = Rule("optimize", "optimize", ("draft", "*"))
    assert names(rule, facts=facts) == [("optimize", "draft"), ("optimize", "main")]


def test_what_is_due_comes_in_the_order_of_the_rules() -> None:
    rules = [Rule("verify", "verify"), Rule("optimize", "optimize", ("main",)), Rule("cleanup", "cleanup", keep=1)]
    assert names(*rules) == [("verify", None), ("optimize", "main"), ("cleanup", None)]


def rules_in(folder: Path, text: str) -> Path:
    path = folder / "upkeep.yaml"
    path.write_text(text)
    return path


def test_the_page_shows_this_file() -> None:
    page = Path(__file__).parents[2] / "docs" / "upkeep.md"
    assert f"```yaml{SPEC}```" in page.read_text()


def test_the_file_of_the_documentation_is_read_as_it_says(tmp_path: Path) -> None:
    first, second, third, fourth = read_rules(str(rules_in(tmp_path, SPEC)))
    assert first == Rule("ensure_indices", "ensure_indices", ("main",), When(unindexed_rows=10_000))
    assert second == Rule("optimize", "optimize", ("*",), When(fragments=64))
    month, day = timedelta(days=30), timedelta(days=1)
    assert third == Rule("cleanup", "cleanup", (), When(every=day), keep=200, older_than=month)
    assert fourth == Rule("verify", "verify", (), When(every=timedelta(days=7)))


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{do: optimise}", "expects one of"),
        ("{do: optimize, brnches: [main]}", "did you mean 'branches'"),
        ("{do: optimize, when: {fragment: 3}}", "did you mean 'fragments'"),
        ("{do: optimize, when: {}}", "expects one of"),
        ("{do: optimize, when: {fragments: 0}}", "at least 1"),
        ("{do: optimize, when: {fragments: many}}", "whole number"),
        ("{do: optimize, when: {every: 3 weeks}}", "duration"),
        ("{do: optimize, keep: 3}", "means nothing for optimize"),
        ("{do: optimize, branches: []}", "names no branch"),
        ("{do: cleanup}", "needs keep, older_than, or both"),
        ("{do: cleanup, keep: 3, branches: [main]}", "means nothing for cleanup"),
        ("{do: cleanup, keep: 3, when: {fragments: 3}}", "only wait for 'every'"),
        ("{do: verify, when: {unindexed_rows: 3}}", "only wait for 'every'"),
        ("{when: {every: 1d}}", "'do' is missing"),
        ("[optimize]", "a mapping"),
    ],
)
def test_what_a_file_may_not_say_is_told_with_its_line(tmp_path: Path, line: str, told: str) -> None:
    path = rules_in(tmp_path, f"version: 1\nrules:\n  - {line}\n")
    with pytest.raises(RulesInvalid) as refused:
        read_rules(str(path))
    assert told in str(refused.value)
    assert f"{path}:3" in str(refused.value)


@pytest.mark.parametrize("text", ["", "rules: []", "version: 2\nrules: []", "version: 1", "{", "version: 1\nrules: 3"])
def test_a_file_of_another_form_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(RulesInvalid):
        read_rules(str(rules_in(tmp_path, text)))


def test_notes_are_kept_by_graph_and_survive_each_other(tmp_path: Path) -> None:
    notes = RunNotes.beside(str(tmp_path / "upkeep.yaml"))
    assert notes.read("a") == {}
    notes.add("a", {"cleanup": NOW})
    notes.add("b", {"cleanup": NOW + 5})
    notes.add("a", {"verify": NOW + 7})
    assert notes.read("a") == {"cleanup": NOW, "verify": NOW + 7}
    assert notes.read("b") == {"cleanup": NOW + 5}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"graphs": 3}', '{"graphs": {"a": {"cleanup": 3}}}'])
def test_notes_that_cannot_be_understood_are_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "upkeep.yaml.state.json").write_text(text)
    with pytest.raises(og.BadRequest, match=r"upkeep\.yaml\.state\.json"):
        RunNotes.beside(str(tmp_path / "upkeep.yaml")).read("a")


def test_what_is_due_runs_once_and_is_not_due_again(graph: og.Graph, tmp_path: Path) -> None:
    text = (
        "version: 1\nrules:\n  - {do: optimize, when: {fragments: 3}}\n  - {do: cleanup, keep: 1, when: {every: 1d}}\n"
    )
    file = rules_in(tmp_path, text)
    assert [(o.rule, o.error) for o in graph.upkeep(file)] == [("optimize", None), ("cleanup", None)]
    assert fragments(graph)[P] == 1
    assert list(json.loads((tmp_path / "upkeep.yaml.state.json").read_text())["graphs"]) == [graph.uri]
    assert graph.upkeep(file) == ()


def test_a_dry_run_tells_what_is_due_and_touches_nothing(graph: og.Graph, tmp_path: Path) -> None:
    file = rules_in(tmp_path, "version: 1\nrules: [{do: optimize}, {do: cleanup, keep: 1}]\n")
    before = fragments(graph), len(graph.list_commits())
    reader = og.Graph.open(graph.uri, "r")
    assert [(o.rule, o.why, o.result) for o in reader.upkeep(file, dry_run=True)] == [
        ("optimize", "always", ""),
        ("cleanup", "always", ""),
    ]
    assert (fragments(graph), len(graph.list_commits())) == before
    assert not (tmp_path / "upkeep.yaml.state.json").exists()


def test_a_failing_rule_is_told_and_the_others_run(graph: og.Graph, tmp_path: Path) -> None:
    file = rules_in(tmp_path, "version: 1\nrules: [{do: optimize, branches: [gone, main]}, {do: cleanup, keep: 1}]\n")
    gone, main, last = graph.upkeep(file)
    assert gone.branch == "gone"
    assert gone.error is not None
    assert "gone" in gone.error
    assert (main.error, last.error) == (None, None)
    assert fragments(graph)[P] == 1


def test_a_branch_that_cannot_be_read_keeps_no_rule_of_others_from_running(graph: og.Graph, tmp_path: Path) -> None:
    graph.branch_create("draft")
    moved = og.Graph.open(str(shutil.copytree(graph.uri, tmp_path / "moved")))
    file = rules_in(tmp_path, "version: 1\nrules: [{do: optimize, when: {fragments: 3, every: 1d}}]\n")
    main, draft = moved.upkeep(file)
    assert (main.branch, main.error) == ("main", None)
    assert (draft.branch, draft.why) == ("draft", "it cannot be read")
    assert draft.error is not None
    assert "moved or copied" in draft.error
    assert fragments(moved)[P] == 1


def test_a_failed_cleanup_is_not_noted_as_run(graph: og.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = rules_in(tmp_path, "version: 1\nrules: [{do: cleanup, keep: 1, when: {every: 1d}}]\n")

    def fails(*_given: Any, **_more: Any) -> None:
        raise og.Unavailable("the disk is away")

    monkeypatch.setattr(graph, "cleanup", fails)
    assert [o.error for o in graph.upkeep(file)] == ["the disk is away"]
    monkeypatch.undo()
    assert [o.error for o in graph.upkeep(file)] == [None]


def test_verify_is_a_rule_and_what_it_finds_is_told_as_a_failure(graph: og.Graph, tmp_path: Path) -> None:
    file = rules_in(tmp_path, "version: 1\nrules: [{do: optimize}, {do: verify, when: {every: 7d}}]\n")
    assert [(o.do, o.error) for o in graph.upkeep(file)] == [("optimize", None), ("verify", None)]
    assert [o.do for o in graph.upkeep(file)] == ["optimize"]
    (tmp_path / "upkeep.yaml.state.json").unlink()
    entry = graph.view().entry(P)
    next(Path(graph.uri, entry.location, "_indices").rglob("page_data.lance")).unlink()
    _, checked = graph.upkeep(file)
    assert checked.error is not None
    assert checked.error.startswith("1 finding, the first: index ")
    assert not (tmp_path / "upkeep.yaml.state.json").exists()
