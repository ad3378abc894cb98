"""Lines of JSON objects, strictly: what Spark or the load would refuse is refused here, with its line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import orjson

from omnigraph.base.errors import BadRequest
from omnigraph.pipeline.infer.texts import shown
from omnigraph.records.sources import LineBatch, find_sources, read_batches
from omnigraph.records.strict import exact, parsed_members, repeated_members, written_members

Record = dict[str, Any]
_TYPE, _EDGE = re.compile("[A-Z][A-Za-z0-9_]*"), re.compile("[A-Za-z][A-Za-z0-9_]*")
_WHOLE_IN_FLOATS = float(2**63)


def read_records(files: Sequence[str]) -> Iterator[list[Record]]:
    """The records of all files, batch by batch."""
    sources = find_sources(files)
    for batch in read_batches(sources):
        yield _parsed(sources[batch.file_number].name, batch)


def _parsed(file: str, batch: LineBatch) -> list[Record]:
    if batch.oversized:
        found = batch.oversized[0]
        raise BadRequest(f"{file}:{found.line_number}: the line has {found.size_bytes} bytes", "Is it one document?")
    records = [_record(file, int(n), line) for n, line in zip(batch.line_numbers, batch.lines, strict=True)]
    written = written_members(batch.lines)
    differing = np.flatnonzero(parsed_members(records, written) != written).tolist()
    if differing:
        number, twice = int(batch.line_numbers[differing[0]]), repeated_members(batch.lines[differing[0]])
        told = f"member '{twice[0]}' is given twice" if twice else "a member is given twice"
        raise BadRequest(f"{file}:{number}: {told}", "Give each member once.")
    return records


def _record(file: str, number: int, line: bytes) -> Record:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        hint = "Each line must be one JSON object; a file with one array or a pretty-printed one is none."
        raise BadRequest(f"{file}:{number}: is not JSON: {shown(line[:200].decode(errors='replace'))}", hint) from None
    if type(value) is not dict:
        raise BadRequest(f"{file}:{number}: is no JSON object", "Each line must be one JSON object.")
    # The quick parser reads whole numbers of more than 64 bits as floats.
    large = any(type(v) is float and abs(v) >= _WHOLE_IN_FLOATS for v in value.values())
    return dict(exact(line)) if large else value


def is_own(record: Record) -> bool:
    """Whether a record is in the form that `omnigraph load` reads, with a name that a type may have."""
    members = record.keys()
    kind = "type" if "type" in members else "edge"
    wanted = {"type", "data"} if kind == "type" else {"edge", "from", "to", "data"}
    optional = {"data"} if kind == "edge" else set()
    name = record.get(kind)
    if not (wanted - optional <= members <= wanted) or type(record.get("data", {})) is not dict:
        return False
    return type(name) is str and bool((_TYPE if kind == "type" else _EDGE).fullmatch(name))


def holds_own_records(files: Sequence[str]) -> bool:
    """Decided on the first record; a file without any is empty."""
    for records in read_records(files):
        return is_own(records[0])
    raise BadRequest(f"'{files[0]}' is empty", "Give files with at least one record.")
