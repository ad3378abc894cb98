"""Stored rows as JSON values."""

from __future__ import annotations

import base64
from datetime import date, datetime
from typing import Any

import pyarrow as pa

_JSON_SAFE = 9_007_199_254_740_991


def json_value(value: Any) -> Any:
    """A stored value as JSON has it: dates as text, bytes as base64, integers beyond 2^53 as decimal text."""
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%S.") + f"{value.microsecond // 1000:03d}Z"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes):
        return "base64:" + base64.b64encode(value).decode()
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > _JSON_SAFE:
        return str(value)
    if isinstance(value, list):
        return [json_value(v) for v in value]
    return value


def json_rows(table: pa.Table) -> list[dict[str, Any]]:
    return [{k: json_value(v) for k, v in row.items()} for row in table.to_pylist()]
