"""A schema with every type, and short ways to decode lines against it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from omnigraph.catalog.build import compile_source
from omnigraph.catalog.catalog import Catalog
from omnigraph.records.decode import Decoder
from omnigraph.records.faults import RejectedRow
from omnigraph.records.sources import LineBatch
from omnigraph.records.violations import Findings, Stage, Violation

SCHEMA = """\
node Person {
  name: String @key
  age: I32?
  email: String?
  score: F64?
  @range(age, 0..130)
  @range(score, 0.5..)
  @check(name, "^[a-z]+$")
}
node Team { code: I32  region: String  @key(code, region) }
node Note { text: String }
node All {
  s: String?   b: Bool?   i32: I32?   i64: I64?   u32: U32?   u64: U64?   f32: F32?   f64: F64?
  d: Date?   t: DateTime?   e: enum(red, green)?   v: Vector(3)?   x: Blob?
  ls: [String]?   lb: [Bool]?   li: [I32]?   lu: [U64]?   lf: [F32]?   lg: [F64]?   ld: [Date]?   lt: [DateTime]?
}
node Must { s: String  n: I64 }
edge MemberOf: Person -> Team { since: DateTime?  role: String? }
edge Follows: Person -> Person
"""
CATALOG = compile_source(SCHEMA)
FILE = "people.jsonl"


@dataclass
class Decoded:
    rows: dict[str, pa.RecordBatch]
    findings: Findings
    rejected: list[RejectedRow] = field(default_factory=list)

    def all_listed(self) -> list[Violation]:
        return [violation for stage in Stage for violation in self.findings.listed(stage)]

    def only(self) -> Violation:
        listed = self.all_listed()
        assert len(listed) == 1, listed
        return listed[0]

    def told(self) -> list[dict[str, Any]]:
        return [violation.as_dict([FILE]) for violation in self.all_listed()]


def line_batch(lines: Sequence[bytes], first: int = 1, file_number: int = 0) -> LineBatch:
    return LineBatch(file_number, list(lines), np.arange(first, first + len(lines)))


def decode(*lines: str | bytes | dict[str, Any], catalog: Catalog = CATALOG, **options: Any) -> Decoded:
    """Decode lines given as text, bytes or objects."""
    raw = [
        orjson.dumps(line) if isinstance(line, dict) else line.encode() if isinstance(line, str) else line
        for line in lines
    ]
    rejected: list[RejectedRow] = []
    findings = Findings(options.pop("listed_max", 20))
    rows = Decoder(catalog, rejects=rejected.append, **options).decode(line_batch(raw), findings)
    return Decoded(rows, findings, rejected)


def decode_all(**data: Any) -> Decoded:
    return decode({"type": "All", "data": data})


def written(data: str) -> Decoded:
    """One All node whose data is given as JSON text."""
    return decode(f'{{"type":"All","data":{data}}}')


def stored(name: str, json_text: str) -> Any:
    """What one property of an All node becomes, as a Python value of its storage."""
    decoded = written(f'{{"{name}":{json_text}}}')
    assert decoded.all_listed() == []
    column = decoded.rows["node:All"].column(name)
    if pa.types.is_date(column.type):
        column = column.cast(pa.int32())
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    return column[0].as_py()


def fault(name: str, json_text: str) -> tuple[str, str]:
    """The reason and the message for one refused property of an All node."""
    decoded = written(f'{{"{name}":{json_text}}}')
    assert decoded.rows == {}
    violation = decoded.only()
    assert (violation.type, violation.property, violation.stage) == ("All", name, Stage.CONVERT)
    return violation.reason, violation.message
