"""The three schema files must tell the same story; each way to break it has its own text."""

from __future__ import annotations

import hashlib
import json

import pytest
from catalog_sources import DOMAIN, LIBRARY, LIBRARY_RESAID
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.base.errors import Conflict, Kind, OmniError, ParseError
from omnigraph.catalog import contract
from omnigraph.catalog.contract import AcceptedSchema, accept, check, check_tables, read_state

SOURCE_CHANGED = "current _schema.pg no longer matches the accepted compiled schema"
IR_CHANGED = "accepted compiled schema does not match the recorded schema state"
IR_INVALID = "accepted compiled schema is invalid"
INCOMPLETE = "schema contract is incomplete"


@pytest.fixture
def accepted() -> AcceptedSchema:
    return accept(LIBRARY, DOMAIN)


def refusal(source: bytes | None, ir: bytes | None, state: bytes | None) -> Conflict:
    with pytest.raises(Conflict) as refused:
        check(source, ir, state)
    assert refused.value.kind is Kind.CONFLICT
    assert refused.value.hint
    return refused.value


def test_what_was_accepted_checks_as_equal(accepted: AcceptedSchema) -> None:
    assert check(accepted.source_bytes, accepted.ir_json, accepted.state_json) == accepted


def test_a_bad_source_is_never_accepted() -> None:
    with pytest.raises(ParseError, match=r"lib\.pg:1:1"):
        accept("nodeX", DOMAIN, file="lib.pg")


def test_the_state_records_the_hashes_and_the_domain(accepted: AcceptedSchema) -> None:
    state = json.loads(accepted.state_json)
    assert state == {
        "format_version": 2,
        "schema_shape_hash": accepted.shape_hash,
        "schema_ir_hash": "sha256:" + hashlib.sha256(accepted.ir_json).hexdigest(),
        "schema_identity_domain": DOMAIN,
        "schema_source_hash": "sha256:" + hashlib.sha256(accepted.source_bytes).hexdigest(),
    }
    assert accepted.shape_hash.startswith("sha256:")
    assert len(accepted.shape_hash) == len("sha256:") + 64


def test_a_source_that_nobody_touched_is_not_compiled_again(
    accepted: AcceptedSchema, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contract, "compile_source", None)
    assert check(accepted.source_bytes, accepted.ir_json, accepted.state_json) == accepted
    with pytest.raises(TypeError):
        check(accepted.source_bytes + b"\n", accepted.ir_json, accepted.state_json)


def test_a_state_without_a_hash_of_the_source_is_as_good(accepted: AcceptedSchema) -> None:
    state = json.loads(accepted.state_json)
    del state["schema_source_hash"]
    told = json.dumps(state).encode()
    assert check(accepted.source_bytes, accepted.ir_json, told).ir == accepted.ir
    changed = accepted.source_bytes.replace(b"Author", b"Writer")
    assert changed != accepted.source_bytes
    assert str(refusal(changed, accepted.ir_json, told)) == SOURCE_CHANGED


def test_a_staged_state_may_name_its_commit() -> None:
    staged = accept(LIBRARY, DOMAIN, graph_commit_id="01COMMIT")
    assert json.loads(staged.state_json)["graph_commit_id"] == "01COMMIT"
    assert read_state(staged.state_json).graph_commit_id == "01COMMIT"
    again = check(staged.source_bytes, staged.ir_json, staged.state_json)
    assert again.graph_commit_id == "01COMMIT"


def test_the_shape_ignores_comments_order_layout_and_rename_hints(accepted: AcceptedSchema) -> None:
    resaid = accept(LIBRARY_RESAID, DOMAIN)
    assert resaid.shape_hash == accepted.shape_hash
    assert resaid.ir_json == accepted.ir_json


def test_the_shape_ignores_ids_but_the_compiled_hash_does_not(accepted: AcceptedSchema) -> None:
    grown = accept(LIBRARY + "node Extra {}", DOMAIN, accepted.ir)
    moved = accept("node Extra {}\n" + LIBRARY, DOMAIN)
    assert grown.shape_hash == moved.shape_hash
    assert grown.ir_hash != moved.ir_hash


def test_a_following_schema_keeps_the_domain_of_the_graph(accepted: AcceptedSchema) -> None:
    assert accept(LIBRARY, "another", accepted.ir).ir == accepted.ir


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("year: I32?", "year: I32"),
        ("year: I32?", "year: I64?"),
        ("title: String @index", "title: String"),
        ("enum(gold, silver, none)", "enum(gold, silver)"),
        ("0.0..5.0", "0.0..5.5"),
        ("^[a-z0-9_]+$", "^[a-z0-9]+$"),
        ("@card(0..)", "@card(0..9)"),
        ("A writer", "An author"),
        ("Vector(8)", "Vector(9)"),
        ("mock-1", "mock-2"),
        ("@unique(src, dst)", ""),
        ("edge Wrote: Author -> Book", "edge Wrote: Book -> Author"),
        ("title: String", "heading: String"),
        ("born: Date?", "born: Date? @pii"),
        ("implements Named {", "{ name: String @index"),
        ("year: I32?", "year: I32? @default(5)"),
    ],
)
def test_any_change_of_meaning_breaks_the_contract(accepted: AcceptedSchema, old: str, new: str) -> None:
    edited = LIBRARY.replace(old, new)
    assert edited != LIBRARY
    refused = refusal(edited.encode(), accepted.ir_json, accepted.state_json)
    assert str(refused) == SOURCE_CHANGED


def test_a_comment_only_edit_of_the_source_stays_valid(accepted: AcceptedSchema) -> None:
    edited = "// reviewed\r\n" + LIBRARY.replace("\n", "\r\n")
    again = check(edited.encode(), accepted.ir_json, accepted.state_json)
    assert again.source == edited
    assert again.catalog == accepted.catalog


@pytest.mark.parametrize("source", [b"nodeX {}", b"\xff", b"node A {} node A {}", b""])
def test_a_source_that_no_longer_compiles_does_not_match(accepted: AcceptedSchema, source: bytes) -> None:
    assert str(refusal(source, accepted.ir_json, accepted.state_json)) == SOURCE_CHANGED


def test_a_compiled_schema_of_another_graph_does_not_match_the_state(accepted: AcceptedSchema) -> None:
    other = accept(LIBRARY, "01ANOTHERDOMAIN")
    assert str(refusal(accepted.source_bytes, other.ir_json, accepted.state_json)) == IR_CHANGED


def test_a_compiled_schema_edited_by_hand_does_not_match_the_state(accepted: AcceptedSchema) -> None:
    edited = accepted.ir_json.replace(b'"A writer"', b'"An author"')
    assert str(refusal(accepted.source_bytes, edited, accepted.state_json)) == IR_CHANGED


@pytest.mark.parametrize("member", ["schema_shape_hash", "schema_ir_hash", "schema_identity_domain"])
def test_a_state_edited_by_hand_does_not_match(accepted: AcceptedSchema, member: str) -> None:
    state = json.loads(accepted.state_json)
    state[member] = "sha256:0"
    assert str(refusal(accepted.source_bytes, accepted.ir_json, json.dumps(state).encode())) == IR_CHANGED


@pytest.mark.parametrize("ir", [b"", b"{}", b"not json", b"[" * 100_000, b"\xff"])
def test_an_unreadable_compiled_schema_is_invalid(accepted: AcceptedSchema, ir: bytes) -> None:
    assert str(refusal(accepted.source_bytes, ir, accepted.state_json)) == IR_INVALID


def test_a_compiled_schema_with_half_a_surrogate_is_invalid(accepted: AcceptedSchema) -> None:
    edited = accepted.ir_json.replace(b'"A writer"', b'"\\ud800"')
    assert str(refusal(accepted.source_bytes, edited, accepted.state_json)) == IR_INVALID


@pytest.mark.parametrize("state", [b"", b"{}", b"[]", b'{"format_version":3}'])
def test_an_unreadable_state_is_named(accepted: AcceptedSchema, state: bytes) -> None:
    assert str(refusal(accepted.source_bytes, accepted.ir_json, state)) == "recorded schema state is invalid"


@pytest.mark.parametrize("missing", ["_schema.pg", "_schema.ir.json", "__schema_state.json"])
def test_a_missing_file_makes_the_contract_incomplete(accepted: AcceptedSchema, missing: str) -> None:
    given_files = {
        "_schema.pg": accepted.source_bytes,
        "_schema.ir.json": accepted.ir_json,
        "__schema_state.json": accepted.state_json,
    }
    refused = refusal(*(None if name == missing else data for name, data in given_files.items()))
    assert str(refused) == INCOMPLETE
    assert missing in refused.hint


def test_a_compiled_schema_that_was_only_laid_out_anew_still_matches(accepted: AcceptedSchema) -> None:
    spread = json.dumps(json.loads(accepted.ir_json), indent=2).encode()
    assert check(accepted.source_bytes, spread, accepted.state_json).catalog == accepted.catalog


def test_types_and_live_tables_correspond_one_to_one(accepted: AcceptedSchema) -> None:
    keys = [table.table_key for table in accepted.catalog.tables()]
    check_tables(accepted.catalog, keys)
    with pytest.raises(Conflict) as refused:
        check_tables(accepted.catalog, [*keys[1:], "node:Ghost"])
    assert "edge:Wrote" in refused.value.hint
    assert "node:Ghost" in refused.value.hint


@settings(deadline=None, max_examples=150)
@given(st.sampled_from([0, 1, 2]), st.data())
def test_no_damage_to_a_file_gives_anything_but_the_same_schema_or_a_conflict(which: int, data: st.DataObject) -> None:
    good = accept(LIBRARY, DOMAIN)
    files = [good.source_bytes, good.ir_json, good.state_json]
    damaged = bytearray(files[which])
    damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    files[which] = bytes(damaged)
    try:
        found = check(*files)
    except OmniError as error:
        outcome: object = type(error)
    else:
        outcome = found.catalog
    assert outcome in (Conflict, good.catalog)
