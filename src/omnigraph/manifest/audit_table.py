"""The audit table of recoveries: made by the first recovery, only ever added to."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from omnigraph.manifest import layout
from omnigraph.storage.ledger import append_to_projection
from omnigraph.storage.places import Root
from omnigraph.storage.tables import TableRef, open_newest, table_exists


def append_audit(root: Root, rows: pa.Table) -> None:
    append_to_projection(TableRef(root, layout.RECOVERIES), rows)


def read_audit(root: Root) -> list[dict[str, Any]]:
    ref = TableRef(root, layout.RECOVERIES)
    if not table_exists(ref):
        return []
    rows: list[dict[str, Any]] = open_newest(ref).read().to_pylist()
    return rows
