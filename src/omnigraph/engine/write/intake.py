"""The rows of a load, read and converted once: stages 2, 3 and what stage 4 sees in one row.

Holds for every Intake: a row is in the spool of its table, or among the rejects, or counted in `findings`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa

from omnigraph.catalog.catalog import Catalog
from omnigraph.engine.scratch import Scratch
from omnigraph.engine.write.quarantine import RAW, Rejects
from omnigraph.engine.write.spool import RowSpool
from omnigraph.records.decode import POSITION, Decoder
from omnigraph.records.sources import LineBatch, Source, read_batches
from omnigraph.records.violations import Findings, Stage
from omnigraph.settings import Settings

Progress: TypeAlias = Callable[[str, int], None]
"""Told the name of a stage and, while rows are read, how many there were so far."""


@dataclass
class Intake:
    """What was read. `rejects` is there only if bad rows may be left out."""

    catalog: Catalog
    files: tuple[str, ...]
    findings: Findings
    rows: dict[str, RowSpool] = field(default_factory=dict)
    rejects: Rejects | None = None

    def take(self, table_key: str, batch: pa.RecordBatch, scratch: Scratch) -> None:
        found = self.findings.first_stage()
        if self.rejects is None and found is not None and found < Stage.IDS:
            return  # The load has failed; what is left is only counted.
        if table_key not in self.rows:
            self.rows[table_key] = RowSpool(batch.schema, scratch)
        self.rows[table_key].append(batch)


def read_files(
    sources: Sequence[Source],
    catalog: Catalog,
    settings: Settings,
    scratch: Scratch,
    max_errors: int,
    quarantine: bool,
    progress: Progress,
) -> Intake:
    files = tuple(source.name for source in sources)
    rejects = Rejects(scratch, files) if quarantine else None
    # Rejected rows go aside one by one; only a load that fails on them needs them listed.
    findings = Findings(max_errors)
    intake = Intake(catalog, files, findings, rejects=rejects)
    decoder = Decoder(
        catalog,
        max_line_bytes=settings.load_max_line_bytes,
        rejects=rejects.take_row if rejects is not None else None,
    )
    seen = 0
    progress("read", 0)
    for lines in read_batches(
        sources, max_line_bytes=settings.load_max_line_bytes, batch_rows=settings.load_batch_rows
    ):
        if rejects is not None:
            rejects.keep_raw(_raw(lines))
        for table_key, batch in decoder.decode(lines, findings if rejects is None else Findings(0)).items():
            intake.take(table_key, batch, scratch)
        seen += len(lines.lines) + len(lines.oversized)
        progress("read", seen)
    return intake


def _raw(lines: LineBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(lines.positions), pa.array(lines.lines, pa.binary())], schema=RAW)


__all__ = ["POSITION", "Intake", "Progress", "read_files"]
