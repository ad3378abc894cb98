"""One plan for each row of the table of changes: the page lists what is tested, and the tests cover what it lists."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from migrations import BASE, MIGRATIONS, Migration

from omnigraph.catalog.build import compile_source
from omnigraph.catalog.evolution.plan import plan_schema
from omnigraph.catalog.identity import assign

PAGE = Path(__file__).resolve().parents[2] / "docs" / "schema-changes.md"
ACCEPTED = assign(compile_source(BASE), None, "domain")
ADDITIVE = {"add_type", "extend_enum", "add_constraint", "update_type_metadata", "update_property_metadata"}


def label(case: Migration) -> str:
    return f"{case.row[:24]}… {case.name}"


def rows_of_the_page() -> list[str]:
    """The first cells of the table under "What can change"."""
    table = PAGE.read_text(encoding="utf-8").split("## What can change")[1].split("\n## ")[0]
    cells = [line.split(" | ")[0].lstrip("| ").strip() for line in table.splitlines() if line.startswith("| ")]
    return cells[1:]


def test_the_page_and_the_tests_have_the_same_rows() -> None:
    assert rows_of_the_page() == list(dict.fromkeys(case.row for case in MIGRATIONS))


@pytest.mark.parametrize("case", MIGRATIONS, ids=label)
def test_a_change_gives_exactly_its_steps(case: Migration) -> None:
    plan = plan_schema(ACCEPTED, compile_source(case.after))
    assert [step.to_json() for step in plan.steps] == list(case.steps)
    assert plan.to_json() == json.loads(json.dumps({"supported": case.supported, "steps": case.steps}))


@pytest.mark.parametrize("case", MIGRATIONS, ids=label)
def test_drops_are_hard_where_data_loss_is_allowed_and_else_nothing_differs(case: Migration) -> None:
    plan = plan_schema(ACCEPTED, compile_source(case.after), allow_data_loss=True)
    hard = [{**step, "mode": "hard"} if "mode" in step else step for step in case.steps]
    assert [step.to_json() for step in plan.steps] == hard


@pytest.mark.parametrize("case", MIGRATIONS, ids=label)
def test_a_schema_that_was_brought_in_leaves_nothing_to_do(case: Migration) -> None:
    desired = compile_source(case.after)
    assert plan_schema(assign(desired, ACCEPTED), desired).steps == ()


@pytest.mark.parametrize("case", MIGRATIONS, ids=label)
def test_only_what_leaves_every_row_as_it_is_counts_as_additive(case: Migration) -> None:
    nullable = [s for s in case.steps if s["kind"] == "add_property" and s["property_type"].endswith("?")]
    expected = all(step["kind"] in ADDITIVE or step in nullable for step in case.steps)
    assert plan_schema(ACCEPTED, compile_source(case.after)).additive is expected


def test_every_kind_of_step_and_every_code_occurs() -> None:
    kinds = {step["kind"] for case in MIGRATIONS for step in case.steps}
    assert kinds == ADDITIVE | {
        "rename_type", "rename_property", "add_property", "drop_property", "drop_type", "unsupported_change"
    }  # fmt: skip
    codes = {step["code"] for case in MIGRATIONS for step in case.steps if "code" in step}
    named = set(re.findall(r"OG-[A-Z]{2}-\d{3}", PAGE.read_text(encoding="utf-8")))
    assert codes == named == {f"OG-DS-{n}" for n in (102, 103, 104, 105)} | {f"OG-MF-{n}" for n in (103, 104, 106)}
