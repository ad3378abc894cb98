"""The schema contract: the three files tell the same story, and the tables of main fit it."""

from __future__ import annotations

from omnigraph.base.errors import OmniError
from omnigraph.engine.schema import SchemaKeeper
from omnigraph.engine.upkeep.seen import is_held, outlasting
from omnigraph.engine.verify.findings import Damage
from omnigraph.engine.verify.inspection import Inspection
from omnigraph.engine.view import Current
from omnigraph.manifest import layout


def check_schema(look: Inspection) -> Current | None:
    """The schema in force; None when the contract is broken or main cannot be read."""
    if None not in look.states:
        return None
    told: dict[str, OmniError] = {}
    found: list[Current] = []

    def troubles() -> set[str]:
        """A schema apply that is under way may be between two of its files."""
        try:
            main = look.manifest.state()
            accepted = SchemaKeeper(look.manifest).accepted(main)
            found.append(Current(look.ctx.root, accepted.catalog, main.entries))
        except OmniError as error:
            told[str(error)] = error
            return {str(error)}
        return set()

    for text in outlasting(look.ctx, troubles, lambda: _is_applied(look)):
        error = told[text]
        look.add(Damage.SCHEMA, None, None, f"{text}. {error.hint}".rstrip(), path=layout.SCHEMA_SOURCE)
        return None
    return found[-1] if found else None


def _is_applied(look: Inspection) -> bool:
    return is_held(look.ctx, layout.SCHEMA_LOCK_BRANCH) or is_held(look.ctx, None)
