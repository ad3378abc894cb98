"""Each promise can be seen to break: a checker that finds nothing wrong with a wrong history would prove nothing."""

import pytest

from .invariants import Checker
from .lease import NOBODY
from .rules import SPECIFIED
from .state import Commit, Content, Faults, Lock, Operation, Process, Sidecar, State, Table, Version, World
from .substrate import data_version, restore_version

WORLD = World(SPECIFIED, {"W0": Operation((0, 1)), "W1": Operation((0,), reads=(1,))}, leased=True)
GENESIS = Commit("genesis", "genesis", "genesis", (0, 0), 0, ())

NOTHING: Content = ()
W0_ON_0: Content = (("W0", 0),)
W0_ON_1: Content = (("W0", 1),)
W1_ON_0: Content = (("W1", 0),)


def table(*contents: Content) -> Table:
    return tuple(
        Version("data" if content else "base", content[-1] if content else None, content) for content in contents
    )


def commit(operation: str, *pins: int, kind: str = "published", reads: Content | None = None) -> Commit:
    commit_id = operation if kind in ("published", "rolled_forward") else f"{kind}:{operation}"
    return Commit(commit_id, operation, kind, pins, 1, () if reads is None else ((1, reads),))


def moment(
    tables: tuple[Table, Table], *commits: Commit, outcome: str = "", sidecars: tuple[Sidecar, ...] = ()
) -> State:
    writer = Process(0, "W0", "writer", "done", outcome=outcome)
    return State(tables, (GENESIS, *commits), sidecars, Lock(NOBODY, 1), (writer,), Faults())


BOTH = (table(NOTHING, W0_ON_0), table(NOTHING, W0_ON_1))
WRONG = {
    "1 part of a write": moment(BOTH, commit("W0", 1, 0)),
    "1 a commit without its write": moment(BOTH, commit("W0", 0, 0)),
    "2 committed, then gone": moment(
        (table(NOTHING, W0_ON_0, NOTHING), table(NOTHING, W0_ON_1, NOTHING)),
        commit("W0", 1, 1),
        commit("W1", 2, 2, kind="rolled_back"),
    ),
    "2 acknowledged, never committed": moment(BOTH, outcome="acked"),
    "3 refused, yet visible": moment(BOTH, commit("W0", 1, 1), outcome="refused"),
    "5 applied twice": moment(
        (table(NOTHING, W0_ON_0, W0_ON_0 * 2), table(NOTHING, W0_ON_1, W0_ON_1 * 2)), commit("W0", 2, 2)
    ),
    "6 another's write rides along": moment(
        (table(NOTHING, W1_ON_0, (*W0_ON_0, *W1_ON_0)), table(NOTHING, W0_ON_1)), commit("W0", 2, 1)
    ),
    "6 a heal shows something new": moment(BOTH, commit("heal", 1, 1, kind="healed")),
    "7 what it read has changed": moment(
        (table(NOTHING, W0_ON_0, (*W0_ON_0, *W1_ON_0)), table(NOTHING, W0_ON_1)),
        commit("W0", 1, 1),
        commit("W1", 2, 1, reads=NOTHING),
    ),
    "8 committed after its roll-back": moment(BOTH, commit("W0", 0, 0, kind="rolled_back"), commit("W0", 1, 1)),
    "4 a head below its pin": moment(
        (table(NOTHING), table(NOTHING, W0_ON_1)), sidecars=(Sidecar("W0", (0, 0), 0, 1, ()),)
    )._replace(processes=(Process(0, "R", "recoverer", "stuck"),)),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_broken_promise_is_noticed(what: str) -> None:
    broken = Checker(WORLD).broken(WRONG[what])
    assert broken is not None
    assert broken[0].removeprefix("after one full recovery: ").startswith(what[0])


def test_a_whole_write_keeps_every_promise() -> None:
    assert Checker(WORLD).broken(moment(BOTH, commit("W0", 1, 1), outcome="acked")) is None


def test_an_unpublished_write_without_a_sidecar_is_healed_and_harmless() -> None:
    assert Checker(WORLD).broken(moment(BOTH, outcome="refused")) is None


def test_a_data_commit_rebases_over_data_and_is_refused_after_a_restore() -> None:
    late = ("W1", 0)
    moved = table(NOTHING, W0_ON_0)
    rebased = data_version(moved, late, prepared_at=0)
    assert rebased is not None
    assert rebased.content == (("W0", 0), ("W1", 0))
    restored = (*moved, restore_version(moved, "W0", target=0))
    assert data_version(restored, late, prepared_at=0) is None
    assert data_version(restored, late, prepared_at=2) is not None
