"""What a handle does with its schema: telling what a new one would change, and bringing it in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from omnigraph.catalog.build import compile_source
from omnigraph.catalog.contract import AcceptedSchema
from omnigraph.catalog.evolution.plan import SchemaPlan
from omnigraph.catalog.evolution.sources import plan_source
from omnigraph.engine.evolve.apply import ApplyCall, schema_apply
from omnigraph.engine.schema_plan import SchemaApplyResult, SchemaPreview, empty_tables, preview
from omnigraph.engine.view import View
from omnigraph.engine.write.changes import Annotations
from omnigraph.graph_reads import Reads
from omnigraph.plan.stored import refuse_broken


class Schemas(Reads):
    """The part of a graph handle that plans and applies schema changes."""

    def schema_plan(self, source: str, allow_data_loss: bool = False, *, file: str | None = None) -> SchemaPlan:
        """The steps from the schema in force to a `.pg` source; nothing is written.

        `allow_data_loss`: drops are hard. `file` names the source in errors.
        """
        return self._planned(source, allow_data_loss, file)[0]

    def _planned(self, source: str, allow_data_loss: bool, file: str | None) -> tuple[SchemaPlan, View]:
        """The plan, and main as it was planned for."""
        accepted, view = self._accepted_now()
        empty = empty_tables(view.snapshot)
        plan = plan_source(accepted.ir, source, file=file, allow_data_loss=allow_data_loss, empty=empty)
        return plan, view

    def _accepted_now(self) -> tuple[AcceptedSchema, View]:
        """The schema in force and main at one moment, though somebody else may apply another one meanwhile."""
        while True:
            view, accepted = self.view("main"), self.schema("main")
            if accepted.catalog is view.catalog:
                return accepted, view

    def schema_preview(
        self,
        source: str,
        allow_data_loss: bool = False,
        *,
        file: str | None = None,
        queries: Mapping[str, str] | None = None,
    ) -> SchemaPreview:
        """What an apply would do, with the rows of main that each step is about; nothing is written.

        `queries`: stored queries, texts by path; those the new schema breaks are refused as an apply refuses them.
        """
        plan, view = self._planned(source, allow_data_loss, file)
        if queries and plan.supported and plan.steps:
            refuse_broken(view.catalog, compile_source(source, file), queries)
        return preview(view, plan)

    def schema_apply(
        self,
        source: str,
        *,
        allow_data_loss: bool = False,
        dry_run: bool = False,
        file: str | None = None,
        queries: Mapping[str, str] | None = None,
        actor: str | None = None,
        message: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> SchemaApplyResult:
        """Make a `.pg` source the schema in force, as one commit on main; no commit when nothing changes.

        `allow_data_loss`: what is dropped can never be read again. `queries`: stored queries, texts by path; the apply
        is refused if it breaks one. `progress` is told the key of each table that is staged.
        """
        if not dry_run:
            self.refuse_read_only()
        call = ApplyCall(source, allow_data_loss, file, queries, dry_run)
        return schema_apply(self._ctx, self._schema.accepted, call, Annotations(actor, message, metadata), progress)

    def schema_apply_as(self, actor: str, source: str, **more: Any) -> SchemaApplyResult:
        return self.schema_apply(source, actor=actor, **more)
