"""The rules that make the commit protocol safe, each of them removable.

The model obeys a rule where the specification does. Removing one (`SPECIFIED.without("heal")`) gives the protocol as
it would be without that sentence of the specification; the tests show that each such protocol breaks a promise.
"""

from dataclasses import dataclass, fields, replace


@dataclass(frozen=True)
class Rules:
    """Which sentences of the specification are in force."""

    # A write is published, by itself or by a roll-forward, only onto the head commit its re-check saw.
    # Without: it is published onto any head under which the versions it wrote from are still the pins.
    parent_binding: bool = True

    # Roll-back, undo and heal publish onto the very head they observed before they restored; a moved head starts over.
    # Without: they read the head again just before the publish and use that one.
    bound_settle: bool = True

    # An undo first looks in the manifest: its own commit id there means somebody rolled the write forward.
    # Without: it undoes and refuses without looking.
    own_commit_check: bool = True

    # Under the lock, versions above a pin that no sidecar explains are undone.
    # Without: they stay, and writers refuse because head != pin.
    heal: bool = True

    # A publish pins the versions the write planned.
    # Without: it pins whatever head each of its tables has at that moment.
    exact_pins: bool = True

    # A sidecar is deleted only when the manifest holds a commit stamped with its operation id.
    # Without: when there is nothing to restore, it is deleted and no commit says so.
    settle_before_delete: bool = True

    def without(self, rule: str) -> "Rules":
        """These rules with one of them removed."""
        return replace(self, **{rule: False})


SPECIFIED = Rules()
RULE_NAMES = tuple(field.name for field in fields(Rules))
