"""What a frame of the source will show; executors get it too, so it says everything and opens nothing."""

from __future__ import annotations

from dataclasses import dataclass, field

from pyspark.sql.types import StructType

from omnigraph.pipeline.worker.read import ReadTarget
from omnigraph.storage.scans import Part


@dataclass(frozen=True)
class PlannedRead:
    """Everything about a frame that was decided when it was loaded."""

    target: ReadTarget
    schema: StructType
    parts: tuple[Part, ...] = field(repr=False)
