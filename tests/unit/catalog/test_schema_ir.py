"""The compiled schema survives the disk, and only what we wrote is read back."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from catalog_sources import DOMAIN, LIBRARY

from omnigraph.catalog.contract import accept
from omnigraph.catalog.ir import IrError, from_json, to_json

RICH = (
    LIBRARY
    + """
node Event @instruction("i") @note("x", y=1) {
  at: DateTime @default("2024-01-01")  on: Date @default("2024-01-01")  ok: Bool @default(false)
  n: U64 @default(18446744073709551615) @range(n, 1..)  f: F32 @default(0.1) @range(f, ..0.5)
  raw: Blob?  @index(at, on) e: enum(7, a-b) @default("a-b") @pii(high)
}
edge Saw: Author -> Event @card(1..3) @description("ü “quoted” \\n")
"""
)


def compiled() -> dict[str, Any]:
    return json.loads(accept(RICH, DOMAIN).ir_json)


def test_a_catalog_read_back_is_equal() -> None:
    accepted = accept(RICH, DOMAIN)
    again = from_json(accepted.ir_json)
    assert again == accepted.ir
    assert again.catalog == accepted.catalog
    assert to_json(again) == accepted.ir_json


def test_a_catalog_survives_pickling_for_the_executors() -> None:
    catalog = accept(RICH, DOMAIN).catalog
    schemas = [table.arrow_schema for table in catalog.tables()]
    again = pickle.loads(pickle.dumps(catalog))
    assert again == catalog
    assert [table.arrow_schema for table in again.tables()] == schemas


def test_the_envelope_is_the_specified_one() -> None:
    found = compiled()
    members = {"ir_version", "schema_identity_domain", "next_identity_id", "interfaces", "nodes", "edges"}
    assert set(found) == members
    assert found["ir_version"] == 2
    assert found["schema_identity_domain"] == DOMAIN
    assert all(
        {"type_id", "incarnation"} <= set(known) for known in found["interfaces"] + found["nodes"] + found["edges"]
    )
    assert [p["name"] for p in found["nodes"][1]["properties"]] == ["isbn", "title"]
    assert all("property_id" in p for known in found["nodes"] for p in known["properties"])


def test_the_written_form_is_compact() -> None:
    data = accept(RICH, DOMAIN).ir_json
    assert data == json.dumps(json.loads(data), separators=(",", ":"), sort_keys=True, ensure_ascii=False).encode()


def _drop(*path: Any) -> Callable[[dict[str, Any]], None]:
    def change(found: Any) -> None:
        for step in path[:-1]:
            found = found[step]
        del found[path[-1]]

    return change


def _set(value: Any, *path: Any) -> Callable[[dict[str, Any]], None]:
    def change(found: Any) -> None:
        for step in path[:-1]:
            found = found[step]
        found[path[-1]] = value

    return change


def _swap_nodes(found: dict[str, Any]) -> None:
    found["nodes"].reverse()


BROKEN: list[tuple[Callable[[dict[str, Any]], None], str]] = [
    (_drop("nodes"), "lacks member 'nodes'"),
    (_drop("nodes", 0, "type_id"), "lacks member 'type_id'"),
    (_drop("nodes", 0, "properties", 0, "type", "scalar"), "lacks member 'scalar'"),
    (_set(3, "ir_version"), "has version 3"),
    (_set("2", "ir_version"), "not of type int"),
    (_set(True, "next_identity_id"), "not of type int"),
    (_set(1, "extra"), "unknown member 'extra'"),
    (_set(1, "nodes", 0, "extra"), "unknown member 'extra'"),
    (_set({}, "nodes"), "not of type list"),
    (_set([1], "nodes"), "is not an object"),
    (_set(None, "nodes", 0, "name"), "not of type str"),
    (_set("I33", "nodes", 0, "properties", 0, "type", "scalar"), "'I33' is unknown"),
    (_set(8, "nodes", 0, "properties", 0, "type", "dimension"), "dimension does not fit"),
    (_set(None, "nodes", 0, "properties", 1, "type", "dimension"), "dimension does not fit"),
    (_set([1], "nodes", 0, "properties", 0, "type", "enum_values"), "is not a string"),
    (_set([], "nodes", 0, "properties", 0, "default"), "is not a literal"),
    (_set({"kind": "never"}, "nodes", 0, "constraints", 0), "'never' is unknown"),
    (_set({"kind": "key", "columns": []}, "nodes", 0, "constraints", 0), "unknown property"),
    (_set({"kind": "key", "columns": ["zz"]}, "nodes", 0, "constraints", 0), "unknown property"),
    (_set({"kind": "range", "column": "bio", "min": "a", "max": None}, "nodes", 0, "constraints", 0), "not a number"),
    (_set("Nobody", "edges", 0, "from"), "unknown endpoint"),
    (_set(["Nobody"], "nodes", 0, "implements"), "unknown interface"),
    (_set(1, "nodes", 0, "incarnation"), "one id twice"),
    (_set(10_000, "nodes", 0, "incarnation"), "outside"),
    (_set(0, "nodes", 0, "incarnation"), "outside"),
    (_swap_nodes, "not sorted"),
]


@pytest.mark.parametrize(("change", "why"), BROKEN, ids=[f"{i}-{why}" for i, (_, why) in enumerate(BROKEN)])
def test_a_compiled_schema_with_a_wrong_member_is_refused_by_name(
    change: Callable[[dict[str, Any]], None], why: str
) -> None:
    found = compiled()
    change(found)
    with pytest.raises(IrError, match=why):
        from_json(json.dumps(found).encode())


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 100_000, b'{"a":NaN}', b'{"a":1,"a":2}', b"9" * 5_000]
)
def test_what_is_not_json_of_ours_is_refused(data: bytes) -> None:
    with pytest.raises(IrError):
        from_json(data)
