"""What is found is counted in full, listed in order, and written only for those who will read it."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from records_scene import decode

from omnigraph.base.errors import InvalidData, Kind, OmniError
from omnigraph.records.violations import Findings, Stage, Violation, place_of, position_of


def violation(position: int, name: str | None = None, stage: Stage = Stage.CONVERT, text: str = "m") -> Violation:
    return Violation(stage, position, "T", name, "wrong_type", text)


PLACES = st.lists(st.tuples(st.integers(1, 30), st.sampled_from([None, "a", "b"]), st.sampled_from("xy")), max_size=40)


@settings(deadline=None)
@given(st.lists(PLACES, max_size=5), st.integers(0, 6))
def test_the_list_does_not_depend_on_the_order_of_finding(
    groups: list[list[tuple[int, str | None, str]]], listed_max: int
) -> None:
    found = [violation(position, name, text=text) for group in groups for position, name, text in group]
    one_by_one, at_once, merged = Findings(listed_max), Findings(listed_max), Findings(listed_max)
    for one in found:
        one_by_one.add(one)
    for group in groups:
        made = [violation(position, name, text=text) for position, name, text in group]
        at_once.add_many(Stage.CONVERT, [one.position for one in made], made.__getitem__)
        part = Findings(listed_max)
        part.add_many(Stage.CONVERT, pa.array([one.position for one in made], pa.int64()), made.__getitem__)
        merged.merge(pickle.loads(pickle.dumps(part)))
    expected = sorted(found, key=Violation.order)[:listed_max]
    for findings in (one_by_one, at_once, merged):
        assert findings.listed(Stage.CONVERT) == expected
        assert findings.count(Stage.CONVERT) == len(found)


def test_of_one_row_the_first_property_is_listed_whichever_column_was_looked_at_first() -> None:
    findings = Findings(1)
    findings.add_many(Stage.CONVERT, [5], lambda _: violation(5, "b"))
    findings.add_many(Stage.CONVERT, [5], lambda _: violation(5, "a"))
    assert [one.property for one in findings.listed(Stage.CONVERT)] == ["a"]


def test_messages_are_made_only_for_those_that_are_listed() -> None:
    findings, made = Findings(20), []

    def make(index: int) -> Violation:
        made.append(index)
        return violation(index)

    for start in range(0, 100_000, 1000):
        findings.add_many(Stage.CONVERT, np.arange(start, start + 1000), make)
    assert findings.count(Stage.CONVERT) == 100_000
    assert len(made) == 20


def test_a_sink_gets_every_violation() -> None:
    seen: list[Violation] = []
    findings = Findings(2, sink=seen.append)
    findings.add_many(Stage.CONVERT, range(50), violation)
    findings.add(violation(99))
    assert [one.position for one in seen] == [*range(50), 99]
    assert [one.position for one in findings.listed(Stage.CONVERT)] == [0, 1]


def test_the_first_stage_is_the_earliest_that_found_something() -> None:
    findings = Findings()
    assert findings.first_stage() is None
    assert findings.error(["a"]) is None
    findings.add(violation(1, stage=Stage.VALUES))
    findings.add(violation(9, stage=Stage.CONVERT))
    assert findings.first_stage() is Stage.CONVERT
    assert findings.count(Stage.PARSE) == 0


def test_a_position_is_a_file_and_a_line_in_that_order() -> None:
    places = [(0, 1), (0, 2**39), (1, 1), (1, 2), (70_000, 5)]
    positions = [position_of(*place) for place in places]
    assert positions == sorted(positions)
    assert [place_of(position) for position in positions] == places
    assert max(positions) < 2**63


def test_the_error_lists_the_first_violations_of_the_first_stage_and_counts_all() -> None:
    lines = [f'{{"type":"Person","data":{{"name":{n}}}}}' for n in range(50)]
    error = decode(*lines, '{"type":"Person","data":{"id":"x","name":"a"}}', listed_max=3).findings.error(["p.jsonl"])
    assert isinstance(error, InvalidData)
    assert (error.kind, error.total, error.stage) == (Kind.BAD_INPUT, 50, "convert")
    assert [one["line"] for one in error.violations] == [1, 2, 3]
    assert error.violations[0] == {
        "file": "p.jsonl", "line": 1, "type": "Person", "property": "name", "reason": "wrong_type",
        "message": "property 'name' expects a string, got integer",
    }  # fmt: skip
    assert str(error) == "p.jsonl:1: property 'name' expects a string, got integer (and 49 more)"
    assert "quarantine" in error.hint
    copy: OmniError = pickle.loads(pickle.dumps(error))
    assert copy.details() == error.details()
