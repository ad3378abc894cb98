"""How quick decoding and exporting are. The figures are printed (`-s`), never asserted; the counts are."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable

import pyarrow as pa
import pytest
from records_scene import line_batch

from omnigraph.catalog.build import compile_source
from omnigraph.records.decode import Decoder
from omnigraph.records.encode import export_lines
from omnigraph.records.violations import Findings, Stage

CATALOG = compile_source("""
node Person { name: String @key  age: I32?  score: F64?  born: Date?  tier: enum(gold, silver)  active: Bool }
edge Follows: Person -> Person { since: DateTime?  weight: F64? }
""")
ROWS, ROUNDS = 8192, 5
NODES = [
    f'{{"type":"Person","data":{{"name":"user-{n}","age":{n % 99},"score":{n / 7},"born":"2001-02-{n % 28 + 1:02d}",'
    f'"tier":"gold","active":true}}}}'.encode()
    for n in range(ROWS)
]
EDGES = [
    f'{{"edge":"Follows","from":"user-{n}","to":"user-{n * 7 % ROWS}",'
    f'"data":{{"since":"2024-01-01T10:00:{n % 60:02d}Z","weight":0.5}}}}'.encode()
    for n in range(ROWS)
]
BAD: dict[str, tuple[Callable[[bytes], bytes], Stage]] = {
    "no JSON": (lambda line: line[:-1], Stage.PARSE),
    "unknown type": (lambda line: line.replace(b"Person", b"Persn"), Stage.PARSE),
    "unknown field": (lambda line: line.replace(b'"age"', b'"agee"'), Stage.PARSE),
    "member twice": (lambda line: line.replace(b'"active"', b'"age":1,"active"'), Stage.PARSE),
    "wrong type": (lambda line: line.replace(b'"active":true', b'"active":1'), Stage.CONVERT),
    "out of range": (lambda line: line.replace(b'"age":', b'"age":99999999999'), Stage.CONVERT),
    "no date": (lambda line: line.replace(b'"2001', b'"x001'), Stage.CONVERT),
    "no member of the enum": (lambda line: line.replace(b"gold", b"lead"), Stage.CONVERT),
    "missing": (lambda line: line.replace(b',"active":true', b""), Stage.CONVERT),
    "other id": (lambda line: line.replace(b'"age"', b'"id":"x","age"'), Stage.IDS),
}


def seconds(lines: list[bytes]) -> tuple[float, Findings, dict[str, pa.RecordBatch]]:
    """The best of several rounds, in time of this process."""
    decoder, batch = Decoder(CATALOG), line_batch(lines)
    best = float("inf")
    for _ in range(ROUNDS):
        findings, before = Findings(), time.process_time()
        rows = decoder.decode(batch, findings)
        best = min(best, time.process_time() - before)
    return best, findings, rows


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "lines"), [("node", NODES), ("edge", EDGES)])
def test_good_rows_are_decoded_and_exported_at_this_speed(kind: str, lines: list[bytes]) -> None:
    best, findings, rows = seconds(lines)
    assert findings.first_stage() is None
    ((key, batch),) = rows.items()
    assert batch.num_rows == ROWS
    table = CATALOG.find_table(key)
    assert table is not None
    before = time.process_time()
    exported = export_lines(table, batch)
    spent = time.process_time() - before
    assert exported.count(b"\n") == ROWS
    print(f"\n{kind}: decode {ROWS / best:,.0f} rows/s, export {ROWS / spent:,.0f} rows/s")


@pytest.mark.slow
@pytest.mark.parametrize("kind", BAD)
def test_bad_rows_cost_about_as_much_as_good_ones(kind: str) -> None:
    spoil, stage = BAD[kind]
    good, _, _ = seconds(NODES)
    bad, findings, rows = seconds([spoil(line) for line in NODES])
    assert rows == {}
    assert findings.first_stage() is stage
    assert findings.count(stage) == ROWS
    assert len(findings.listed(stage)) == 20
    print(f"\n{kind}: {bad / good:.2f} times the time of good rows")


def test_a_decoder_may_be_sent_to_another_process() -> None:
    decoder: Decoder = pickle.loads(pickle.dumps(Decoder(CATALOG)))
    batch = pickle.loads(pickle.dumps(line_batch(NODES[:2])))
    assert decoder.decode(batch, Findings())["node:Person"].column("id").to_pylist() == ["user-0", "user-1"]
