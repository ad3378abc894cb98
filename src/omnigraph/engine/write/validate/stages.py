"""Runs the stages in order; the first one with a violation is the last one that runs."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence

from omnigraph.base.errors import KeyConflict, OmniError
from omnigraph.catalog.catalog import NodeType
from omnigraph.engine.write.validate.cardinality import check_cardinality
from omnigraph.engine.write.validate.check import Check
from omnigraph.engine.write.validate.endpoints import check_endpoints
from omnigraph.engine.write.validate.ids import IdTaken, check_ids
from omnigraph.engine.write.validate.unique import check_unique
from omnigraph.records.violations import Findings, Stage


def validate(check: Check) -> frozenset[str]:
    """Stages 4 to 8 over the change set; answers the keys of the tables it read, which the commit must rely on.

    Rows of a repeated id must have been dropped already where the last one wins.
    """
    findings = check.findings
    for stage, run in _STAGES.items():
        found = findings.first_stage()
        # What was found in a row by itself and what is found between rows may be of the same stage.
        if found is not None and found < stage:
            break
        run(check)
    return frozenset(check.stored.read)


def check_all_values(check: Check) -> None:
    """Stage 5, for the types that have `@range` or `@check`."""
    for change in check.changes.ordered():
        type_ = check.type_of(change)
        if change.rows is not None and isinstance(type_, NodeType) and (type_.ranges or type_.checks):
            aside = check.aside
            findings = check.findings if aside is None else Findings(0, sink=aside.take)
            check.values(change, type_, findings)


_STAGES: dict[Stage, Callable[[Check], None]] = {
    Stage.IDS: check_ids,
    Stage.VALUES: check_all_values,
    Stage.UNIQUE: check_unique,
    Stage.ENDPOINTS: check_endpoints,
    Stage.CARDINALITY: check_cardinality,
}


def refusal(findings: Findings, files: Sequence[str], unnumbered: Container[int] = ()) -> OmniError | None:
    """The error that tells what was found; ids that are stored already are a conflict, not bad input."""
    stage = findings.first_stage()
    if stage is None:
        return None
    listed = findings.listed(stage)
    taken = [found for found in listed if isinstance(found, IdTaken)]
    if taken and len(taken) == len(listed):
        ids = tuple(found.id for found in taken if found.table_key == taken[0].table_key)
        return KeyConflict(table_key=taken[0].table_key, ids=ids, count=findings.count(stage))
    return findings.error(files, unnumbered)
