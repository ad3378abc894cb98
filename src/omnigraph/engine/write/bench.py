"""Where the checks and the staging of one write are done: in this process, or, for bulk loads, on Spark."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

from omnigraph.engine.view import View
from omnigraph.engine.write.changeset import ChangeSet, TableChange
from omnigraph.engine.write.staging import stage_change
from omnigraph.engine.write.validate.check import Aside, Check
from omnigraph.records.violations import Findings
from omnigraph.sets.scratch import Scratch
from omnigraph.storage.stage import StagedWrite, Stamp, restage_append
from omnigraph.storage.tables import Table


class Bench(Protocol):
    """What both engines offer. `scratch` is room in this process for what is small or goes to a local file."""

    engine: str
    scratch: Scratch

    def check(self, view: View, changes: ChangeSet, findings: Findings, aside: Aside | None = None) -> Check: ...

    def stage(self, table: Table, schema: pa.Schema, change: TableChange, stamp: Stamp) -> StagedWrite:
        """The change as files beside the table; nothing moves."""

    def restage(
        self, table: Table, schema: pa.Schema, change: TableChange, stamp: Stamp, before: StagedWrite
    ) -> StagedWrite | None:
        """A change that was staged on an earlier version, on this one; None if it has to be staged anew.

        None of its rows was touched by others meanwhile.
        """


class EmbeddedBench:
    engine = "embedded"

    def __init__(self, scratch: Scratch) -> None:
        self.scratch = scratch

    def check(self, view: View, changes: ChangeSet, findings: Findings, aside: Aside | None = None) -> Check:
        return Check(view, changes, self.scratch, findings, aside)

    def stage(self, table: Table, schema: pa.Schema, change: TableChange, stamp: Stamp) -> StagedWrite:
        return stage_change(table, schema, change, stamp, self.scratch)

    def restage(
        self, table: Table, schema: pa.Schema, change: TableChange, stamp: Stamp, before: StagedWrite
    ) -> StagedWrite | None:
        return restage_append(table, before, stamp)
