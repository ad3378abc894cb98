"""What repair does about each finding: the damage table as data. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from omnigraph.engine.verify.findings import Damage, Finding


class Action(StrEnum):
    NO_OP = "no_op"
    HEALED = "healed"
    """The pin becomes the head."""
    FORCED = "forced"
    RESTORED = "restored"
    """The head gets the content of the pin again."""
    REMOVED = "removed"
    REBUILT = "rebuilt"
    LEFT = "left"
    REFUSED = "refused"
    UNREPAIRABLE = "unrepairable"

    @property
    def is_failure(self) -> bool:
        return self in (Action.REFUSED, Action.UNREPAIRABLE)

    @property
    def changes(self) -> bool:
        return self not in (Action.NO_OP, Action.LEFT, Action.REFUSED, Action.UNREPAIRABLE)


CLASSIFICATIONS: Mapping[Damage, str] = {
    Damage.DRIFT_MAINTENANCE: "verified_maintenance",
    Damage.DRIFT_DATA: "suspicious",
    Damage.DRIFT_UNVERIFIABLE: "unverifiable",
}
DRIFTS = frozenset({*CLASSIFICATIONS, Damage.LATE, Damage.TORN_ABOVE})
INDEXES = frozenset({Damage.MISSING_INDEX, Damage.INDEX_ANSWERS})

_ACTIONS: Mapping[Damage, Action] = {
    Damage.DRIFT_MAINTENANCE: Action.HEALED,
    Damage.LATE: Action.RESTORED,
    Damage.TORN_ABOVE: Action.REMOVED,
    Damage.MISSING_INDEX: Action.REBUILT,
    Damage.INDEX_ANSWERS: Action.REBUILT,
    Damage.ORPHAN_FORK: Action.LEFT,
    Damage.ORPHAN_TABLE: Action.LEFT,
    Damage.HEARTBEAT: Action.LEFT,
    Damage.MOVED_BASE: Action.LEFT,
    Damage.PENDING: Action.REFUSED,
    Damage.SCHEMA: Action.REFUSED,
}
_NEEDS_FORCE = "what another tool wrote becomes part of the graph only with --force, after it was checked"


@dataclass(frozen=True)
class Decision:
    action: Action
    error: str | None = None


def decide(found: Finding, force: bool, blocked: str | None = None) -> Decision:
    """What `--confirm` does about a finding. `blocked`: why nothing may be changed now."""
    if found.finding in (Damage.DRIFT_DATA, Damage.DRIFT_UNVERIFIABLE):
        chosen = Decision(Action.FORCED) if force else Decision(Action.REFUSED, _NEEDS_FORCE)
    else:
        action = _ACTIONS.get(found.finding, Action.UNREPAIRABLE)
        told = None if action.changes else f"{found.message}; {found.repair}"
        chosen = Decision(action, told)
    if blocked is not None and chosen.action.changes:
        return Decision(Action.REFUSED, blocked)
    return chosen
