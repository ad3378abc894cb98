"""The rows of a load, read and converted once: stages 2, 3 and what stage 4 sees in one row.

Holds for every Intake: a row is in the spool of its table, or among the rejects, or counted in `findings`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa

from omnigraph.catalog.catalog import Catalog
from omnigraph.engine.write.quarantine import Rejects
from omnigraph.engine.write.spool import Rows, RowSpool
from omnigraph.records.decode import POSITION, Decoder
from omnigraph.records.faults import RAW
from omnigraph.records.sources import LineBatch, Source, read_batches
from omnigraph.records.violations import Findings, Stage
from omnigraph.sets.scratch import Scratch
from omnigraph.settings import Settings

Progress: TypeAlias = Callable[[str, int], None]
"""Told the name of a stage and, while rows are read, how many there were so far."""


@dataclass
class Intake:
    """What was read. `rejects` is there only if bad rows may be left out."""

    catalog: Catalog
    files: tuple[str, ...]
    findings: Findings
    rows: Mapping[str, Rows] = field(default_factory=dict)
    rejects: Rejects | None = None
    explicit_ids: set[str] = field(default_factory=set)
    """The tables of which some row came with an id of its own, or has one by its key."""
    unnumbered: frozenset[int] = frozenset()
    """The numbers of the inputs whose rows have no lines, only values."""


class SpooledIntake:
    """An Intake in the making, in the spools of this process."""

    def __init__(self, intake: Intake, scratch: Scratch) -> None:
        self._intake = intake
        self._scratch = scratch
        self._spools: dict[str, RowSpool] = {}
        intake.rows = self._spools

    def take(self, table_key: str, batch: pa.RecordBatch) -> None:
        found = self._intake.findings.first_stage()
        if self._intake.rejects is None and found is not None and found < Stage.IDS:
            return  # The load has failed; what is left is only counted.
        if table_key not in self._spools:
            self._spools[table_key] = RowSpool(batch.schema, self._scratch)
        self._spools[table_key].append(batch)


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
    spools = SpooledIntake(intake, scratch)
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
            spools.take(table_key, batch)
        intake.explicit_ids |= decoder.explicit_ids
        seen += len(lines.lines) + len(lines.oversized)
        progress("read", seen)
    return intake


def _raw(lines: LineBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(lines.positions), pa.array(lines.lines, pa.binary())], schema=RAW)


__all__ = ["POSITION", "Intake", "Progress", "read_files"]
