"""Ids of any spelling: what a predicate finds is exactly the id that was meant, in real Lance filters."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

from omnigraph import BadRequest
from omnigraph.storage.apply import commit_staged
from omnigraph.storage.ledger import create_now
from omnigraph.storage.places import open_root
from omnigraph.storage.predicates import column_in, sql_string
from omnigraph.storage.stage import (
    IndexKind,
    IndexSpec,
    Stamp,
    stage_append,
    stage_delete,
    stage_delete_where,
    stage_index,
    stage_upsert,
)
from omnigraph.storage.tables import Table, TableRef, open_table

SCHEMA = pa.schema([pa.field("id", pa.string(), nullable=False), pa.field("n", pa.int64())])
STAMP = Stamp("01HZZZZZZZZZZZZZZZZZZZZZZZ", "node:T", "0")
HOSTILE = [
    "",
    "'",
    "''",
    "' OR '1'='1",
    "'; DROP TABLE people; --",
    "\\",
    "\\'",
    "\\\\''",
    '"',
    "`",
    "a;b",
    "-- note",
    "/* note */",
    "%",
    "_",
    "{}",
    "$1",
    "?",
    "line\nbreak\ttab\rreturn",
    "ünïcödé",
    "日本語",
    "🦉‍👩‍🚀",
    "e\u0301",
    "\u00e9",
    "\u200b",
    "\ufeff",
    "\u202e",
    "null",
    "NULL",
    "true",
    "1",
    " lead",
    "trail ",
    "X" * 10_000,
    "'" * 10_000,
]


def named(*ids: str) -> str:
    """The filter that finds these ids."""
    where = column_in("id", pa.array(ids, pa.string()))
    assert where is not None
    return where


@pytest.fixture(scope="module", params=[False, True], ids=["scanned", "indexed"])
def stored(request, tmp_path_factory) -> Table:
    """A table that holds every hostile id."""
    rows = pa.table({"id": HOSTILE, "n": list(range(len(HOSTILE)))}, schema=SCHEMA)
    ref = TableRef(open_root(str(tmp_path_factory.mktemp("people"))), "nodes/t")
    table = create_now(ref, SCHEMA, rows)
    if request.param:
        commit_staged(stage_index(table, [IndexSpec("id", IndexKind.BTREE)], STAMP))
    return open_table(ref, None)


@pytest.mark.parametrize("key", HOSTILE, ids=lambda k: ascii(k[:24]))
def test_hostile_id_is_found_and_nothing_else_is(stored: Table, key: str):
    assert stored.read(["id", "n"], named(key)).to_pylist() == [{"id": key, "n": HOSTILE.index(key)}]
    assert stored.find([key], ["id"]).column("id").to_pylist() == [key]


def test_all_hostile_ids_at_once_are_found(stored: Table):
    assert sorted(stored.read(["id"], named(*HOSTILE)).column("id").to_pylist()) == sorted(HOSTILE)
    assert stored.read(["id"], named(*[f"{k} not" for k in HOSTILE])).num_rows == 0


def test_each_hostile_id_is_inserted_replaced_and_deleted_alone(tmp_path: Path):
    ref = TableRef(open_root(str(tmp_path)), "nodes/t")
    create_now(ref, SCHEMA)
    for key in HOSTILE:
        commit_staged(stage_append(open_table(ref, None), pa.table({"id": [key], "n": [1]}, schema=SCHEMA), STAMP))
    for key in HOSTILE:
        staged = stage_upsert(open_table(ref, None), pa.table({"id": [key], "n": [2]}, schema=SCHEMA), STAMP)
        assert (staged.inserts, staged.updates) == (0, 1)
        commit_staged(staged)
    assert open_table(ref, None).read(["n"]).column("n").to_pylist() == [2] * len(HOSTILE)
    for position, key in enumerate(HOSTILE):
        table = open_table(ref, None)
        staged = stage_delete(table, [key], STAMP) if position % 2 else stage_delete_where(table, named(key), STAMP)
        assert staged.deletes == 1
        commit_staged(staged)
    assert open_table(ref, None).count_rows() == 0


def test_nul_character_is_refused_by_name():
    with pytest.raises(BadRequest, match="NUL"):
        sql_string("a\x00b")


@pytest.fixture(scope="module")
def empty_place() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as place:
        yield place


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=40)
SPITEFUL = st.text(st.sampled_from("'\\\"`;-*/%_\n abcXé{}$()="), max_size=12)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.one_of(TEXTS, SPITEFUL), unique=True, min_size=2, max_size=8), st.data())
def test_any_text_finds_exactly_itself(empty_place: str, keys: list[str], data):
    ref = TableRef(open_root(tempfile.mkdtemp(dir=empty_place)), "nodes/t")
    table = create_now(ref, SCHEMA, pa.table({"id": keys, "n": list(range(len(keys)))}, schema=SCHEMA))
    wanted = data.draw(st.lists(st.sampled_from(keys), unique=True, min_size=1))
    for key in wanted:
        assert table.read(["id"], named(key)).column("id").to_pylist() == [key]
    assert sorted(table.find(wanted, ["id"]).column("id").to_pylist()) == sorted(wanted)
    assert sorted(table.addresses(wanted).ids) == sorted(wanted)
