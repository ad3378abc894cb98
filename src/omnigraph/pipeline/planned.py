"""What a frame of the source will show and what a write of the sink will do, decided before any row moves.

Executors get these too, so they say everything and open nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import pyarrow as pa
from pyspark.sql.types import StructType

from omnigraph.pipeline.worker.read import ReadTarget
from omnigraph.storage.row_files import RowFolder
from omnigraph.storage.scans import Part


@dataclass(frozen=True)
class PlannedRead:
    """Everything about a frame that was decided when it was loaded. `rows` is how many it has at most."""

    target: ReadTarget
    schema: StructType
    parts: tuple[Part, ...] = field(repr=False)
    rows: int


@dataclass(frozen=True)
class PlannedWrite:
    """`folder` is for staged rows alone; `schema` is that of the frame; the options open the graph again to commit."""

    table_key: str
    mode: Literal["append", "merge", "overwrite"]
    operation_id: str
    folder: RowFolder
    schema: pa.Schema
    options: Mapping[str, str] = field(repr=False)
