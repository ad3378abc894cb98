"""A million bad rows cost little more than good ones: the work done for them is counted, not timed."""

from __future__ import annotations

from typing import Any

import pytest
from records_scene import line_batch

from omnigraph.catalog.build import compile_source
from omnigraph.records import convert, decode, parse, strict
from omnigraph.records.decode import Decoder
from omnigraph.records.violations import Findings

CATALOG = compile_source("node T { k: String @key  n: I32?  f: F64?  v: Vector(2)?  d: Date?  e: enum(a, b)? }")
ROWS, LISTED = 2000, 20
BAD = {
    "wrong type": '"n":"x"',
    "beyond 64 bits": '"n":99999999999999999999',
    "an object": '"n":{"a":{"b":1}}',
    "an array": '"n":[1]',
    "no member": '"e":"z"',
    "short vector": '"v":[1]',
    "great vector": '"v":[1,1e39]',
    "text in a vector": '"v":[1,"x"]',
    "no date": '"d":"x"',
    "unknown field": '"zz":1',
    "beyond floats": '"f":1e400',
}
EXPLAINING = [(decode, "why_not"), (parse, "_unknown_field")]
SLOW = [(strict, "_members"), (strict, "repeated_members"), (convert, "_bad_vectors"), (strict, "_PATIENT")]


def calls(monkeypatch: pytest.MonkeyPatch, places: list[tuple[Any, str]]) -> dict[str, int]:
    counted: dict[str, int] = {}
    for module, name in places:
        real = getattr(module, name)

        def count(*args: Any, _real: Any = real, _name: str = name) -> Any:
            counted[_name] = counted.get(_name, 0) + 1
            return _real(*args)

        monkeypatch.setattr(module, name, count)
    return counted


@pytest.mark.parametrize("kind", BAD)
def test_only_listed_rows_are_explained_and_none_is_walked_by_itself(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    lines = [f'{{"type":"T","data":{{"k":"{n}",{BAD[kind]}}}}}'.encode() for n in range(ROWS)]
    explained, slow = calls(monkeypatch, EXPLAINING), calls(monkeypatch, SLOW)
    findings = Findings(LISTED)
    assert Decoder(CATALOG).decode(line_batch(lines), findings) == {}
    stage = findings.first_stage()
    assert stage is not None
    assert (findings.count(stage), len(findings.listed(stage))) == (ROWS, LISTED)
    assert sum(explained.values()) == LISTED
    # Bad vectors are told apart once for the whole column; nothing else looks at rows one by one.
    assert slow in ({}, {"_bad_vectors": 1})


def test_a_line_beyond_floats_is_read_again_once(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [b'{"type":"T","data":{"k":"%d","f":1e400}}' % n for n in range(ROWS)]
    again = calls(monkeypatch, [(parse, "exact")])
    Decoder(CATALOG).decode(line_batch(lines), Findings(LISTED))
    assert again == {"exact": ROWS}
