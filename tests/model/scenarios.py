"""The scenarios the tests explore: four pairs of writers, both locks, several budgets of faults."""

from .explore import Scenario
from .state import Faults, Operation

ONE_TABLE = Operation(writes=(0,))
TWO_TABLES = Operation(writes=(0, 1))
TWO_STEPS = Operation(writes=(0, 0, 1))
READS_NODES = Operation(writes=(1,), reads=(0,))

# Explored completely on every slow run; a few ten thousand moments each.
DAILY = (
    Scenario(
        "flock: two tables against one, and a refresher",
        (TWO_TABLES, ONE_TABLE),
        Faults(crashes=1, lost_answers=1),
        refreshes=1,
    ),
    Scenario("flock: both two tables", (TWO_TABLES, TWO_TABLES), Faults(crashes=2, lost_answers=1)),
    Scenario("flock: two steps on one table", (TWO_STEPS, ONE_TABLE), Faults(crashes=2, lost_answers=1)),
    Scenario(
        "flock: a read set, and a refresher",
        (READS_NODES, ONE_TABLE),
        Faults(crashes=1, lost_answers=1),
        refreshes=1,
    ),
    Scenario(
        "lease: two tables against one",
        (TWO_TABLES, ONE_TABLE),
        Faults(crashes=1, takeovers=1, lost_answers=1),
        leased=True,
    ),
    Scenario(
        "lease: two tables against one, stale lease checks, no recoverer",
        (TWO_TABLES, ONE_TABLE),
        Faults(takeovers=1, stale_checks=2, lost_answers=1),
        leased=True,
        recoveries=0,
    ),
    Scenario(
        "lease: two steps on one table, commits sent again",
        (TWO_STEPS, ONE_TABLE),
        Faults(takeovers=1, lost_answers=1, retries=1),
        leased=True,
    ),
    Scenario(
        "lease: a read set, stale lease checks",
        (READS_NODES, ONE_TABLE),
        Faults(takeovers=1, stale_checks=2),
        leased=True,
    ),
    Scenario(
        "lease: a read set, and a refresher",
        (READS_NODES, ONE_TABLE),
        Faults(takeovers=1),
        leased=True,
        refreshes=1,
    ),
)

# Up to about a million moments each.
LARGE = (
    Scenario(
        "flock: two tables against one, and a refresher",
        (TWO_TABLES, ONE_TABLE),
        Faults(crashes=2, lost_answers=1),
        refreshes=1,
    ),
    Scenario(
        "flock: both two tables, and a refresher",
        (TWO_TABLES, TWO_TABLES),
        Faults(crashes=2, lost_answers=1),
        refreshes=1,
    ),
    Scenario(
        "flock: two steps on one table, and a refresher",
        (TWO_STEPS, ONE_TABLE),
        Faults(crashes=2, lost_answers=1),
        refreshes=1,
    ),
    Scenario(
        "flock: three writers",
        (TWO_TABLES, ONE_TABLE, READS_NODES),
        Faults(crashes=1, lost_answers=1),
    ),
    Scenario(
        "lease: two tables against one",
        (TWO_TABLES, ONE_TABLE),
        Faults(crashes=1, takeovers=2, lost_answers=1),
        leased=True,
    ),
    Scenario(
        "lease: two tables against one, stale lease checks",
        (TWO_TABLES, ONE_TABLE),
        Faults(takeovers=2, stale_checks=1),
        leased=True,
    ),
    Scenario(
        "lease: two steps on one table",
        (TWO_STEPS, ONE_TABLE),
        Faults(takeovers=2, lost_answers=1),
        leased=True,
    ),
    Scenario(
        "lease: a read set",
        (READS_NODES, ONE_TABLE),
        Faults(crashes=1, takeovers=2, lost_answers=1),
        leased=True,
    ),
    Scenario(
        "lease: a read set, stale lease checks",
        (READS_NODES, ONE_TABLE),
        Faults(takeovers=2, stale_checks=1),
        leased=True,
    ),
    Scenario(
        "lease: a read set, stale lease checks and a refresher",
        (READS_NODES, ONE_TABLE),
        Faults(takeovers=1, stale_checks=1),
        leased=True,
        refreshes=1,
    ),
    Scenario(
        "lease: two tables against one, two late answers, no recoverer",
        (TWO_TABLES, ONE_TABLE),
        Faults(takeovers=1, lost_answers=2),
        leased=True,
        recoveries=0,
    ),
    Scenario(
        "lease: three writers, no recoverer",
        (TWO_TABLES, ONE_TABLE, READS_NODES),
        Faults(takeovers=2),
        leased=True,
        recoveries=0,
    ),
)

# A small scenario in which everything the model can do happens.
EVERYTHING = Scenario(
    "lease: everything, small",
    (TWO_TABLES, ONE_TABLE),
    Faults(crashes=1, takeovers=1, lost_answers=1),
    leased=True,
    recoveries=0,
)

# The scenario that breaks without parent binding, with more trouble but no stale check.
TRUTHFUL_CHECKS = Scenario(
    "lease: a read set, truthful lease checks",
    (READS_NODES, ONE_TABLE),
    Faults(takeovers=2, lost_answers=1),
    leased=True,
)

# For each rule, where its removal shows first.
WITHOUT = {
    "parent_binding": Scenario(
        "lease: a read set, a stale lease check",
        (READS_NODES, ONE_TABLE),
        Faults(takeovers=1, stale_checks=1),
        leased=True,
        recoveries=0,
    ),
    "bound_settle": Scenario("lease: two take-overs", (TWO_TABLES, ONE_TABLE), Faults(takeovers=2), leased=True),
    "own_commit_check": Scenario("flock: a refresher", (TWO_TABLES, ONE_TABLE), Faults(lost_answers=1), refreshes=1),
    "heal": Scenario("lease: one take-over", (TWO_TABLES, ONE_TABLE), Faults(takeovers=1), leased=True),
    "exact_pins": Scenario(
        "lease: one take-over, one late answer",
        (TWO_TABLES, ONE_TABLE),
        Faults(takeovers=1, lost_answers=1),
        leased=True,
    ),
    "settle_before_delete": Scenario(
        "lease: one late answer, and a refresher",
        (TWO_TABLES, ONE_TABLE),
        Faults(lost_answers=1),
        leased=True,
        refreshes=1,
    ),
}
