"""Which tables a branch shows, as a pure function of manifest rows; the step-by-step state agrees with it."""

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from omnigraph import Conflict
from omnigraph.manifest.rows import Row
from omnigraph.manifest.snapshot import SubTableEntry, TableState, reconstruct

X, Y = "nodes/x", "nodes/y"


def registered(at: int, location: str | None = X, key: str = "node:T") -> Row:
    return Row(f"table:{key}@{location}", "table", location, table_key=key, created_at_version=at)


def pinned(
    at: int, version: int, rows: int = 0, location: str | None = X, branch: str | None = None, key: str = "node:T"
) -> Row:
    name = f"table_version:{key}@{location}@{branch}@{version}"
    return Row(name, "table_version", location, "{}", key, version, branch, rows, at)


def buried(at: int, version: int, location: str | None = X, key: str = "node:T") -> Row:
    return Row(
        f"table_tombstone:{key}@{location}@{version}", "table_tombstone", location, "{}", key, version, None, None, at
    )


BASE = [registered(1), pinned(1, 1), pinned(2, 2, 20), pinned(4, 3, 30)]


@pytest.mark.parametrize(("version", "shown"), [(1, (1, 0)), (2, (2, 20)), (3, (2, 20)), (4, (3, 30)), (9, (3, 30))])
def test_graph_version_shows_the_newest_table_version_published_up_to_it(version: int, shown: tuple[int, int]):
    assert reconstruct(BASE, None, version) == {"node:T": SubTableEntry(X, shown[0], None, shown[1])}


def test_before_the_first_publish_there_are_no_tables():
    assert reconstruct(BASE, None, 0) == {}


def test_tombstone_hides_its_version_and_every_older_one():
    rows = [*BASE, buried(5, 3)]
    assert reconstruct(rows, None, 5) == {}
    assert reconstruct(rows, None, 4)["node:T"].table_version == 3


def test_tombstone_below_the_newest_version_hides_nothing():
    assert reconstruct([*BASE, buried(5, 2)], None, 5)["node:T"].table_version == 3


def test_name_dropped_and_added_again_shows_the_new_location_only():
    rows = [*BASE, buried(5, 3), registered(6, Y), pinned(6, 1, 7, Y)]
    assert reconstruct(rows, None, 6) == {"node:T": SubTableEntry(Y, 1, None, 7)}
    assert reconstruct(rows, None, 5) == {}
    assert reconstruct(rows, None, 4)["node:T"].location == X


def test_tombstone_of_one_location_does_not_hide_another():
    rows = [registered(1), pinned(1, 1), buried(2, 9), registered(3, Y), pinned(3, 1, 7, Y)]
    assert reconstruct(rows, None, 3)["node:T"] == SubTableEntry(Y, 1, None, 7)


def test_two_live_locations_of_one_name_are_an_error_that_names_both():
    rows = [*BASE, registered(5, Y), pinned(5, 1, 7, Y)]
    with pytest.raises(Conflict, match=f"node:T has two live locations: {X}, {Y}"):
        reconstruct(rows, None, 5)


def test_branch_shows_its_own_fork_even_when_main_is_further():
    rows = [*BASE, pinned(5, 2, 99, X, "draft")]
    assert reconstruct(rows, "draft", 5)["node:T"] == SubTableEntry(X, 2, "draft", 99)


def test_branch_without_a_fork_shows_what_was_published_last_before_it():
    rows = [*BASE, pinned(5, 9, 99, X, "team/a")]
    assert reconstruct(rows, "team/b", 5)["node:T"] == SubTableEntry(X, 9, "team/a", 99)
    assert reconstruct(rows, "team/b", 4)["node:T"] == SubTableEntry(X, 3, None, 30)


def test_rows_without_a_location_lie_where_the_name_was_registered():
    rows = [registered(1), pinned(1, 1, 0, None), pinned(2, 2, 20, None)]
    assert reconstruct(rows, None, 2)["node:T"] == SubTableEntry(X, 2, None, 20)
    assert reconstruct([*rows, buried(3, 2, None)], None, 3) == {}


def test_row_without_a_location_of_a_name_never_registered_is_an_error():
    with pytest.raises(Conflict, match="names no location"):
        reconstruct([pinned(1, 1, 0, None)], None, 1)


def test_unknown_kinds_of_rows_are_ignored():
    unknown = Row("future:1", "future_thing", X, "{}", "node:T", 99, None, 5, 2)
    commit = Row("graph_commit:after:genesis", "graph_commit", metadata="{}", created_at_version=2)
    assert reconstruct([*BASE, unknown, commit], None, 9) == reconstruct(BASE, None, 9)


def test_text_of_the_object_id_decides_nothing():
    disguised = [Row(f"anything-{i}", *_columns(row)) for i, row in enumerate(BASE)]
    assert reconstruct(disguised, None, 4) == reconstruct(BASE, None, 4)


def test_tables_are_sorted_by_key():
    rows = [r for key in ("node:Z", "edge:B", "node:A") for r in (registered(1, f"nodes/{key}", key),)]
    rows += [pinned(1, 1, 0, f"nodes/{key}", None, key) for key in ("node:Z", "edge:B", "node:A")]
    assert list(reconstruct(rows, None, 1)) == ["edge:B", "node:A", "node:Z"]


def test_registration_alone_shows_no_table_but_occupies_its_location():
    state = TableState()
    state.apply([registered(1)])
    assert state.resolve(None) == {}
    assert state.ever_registered(X)
    assert not state.ever_registered(Y)


def _columns(row: Row) -> tuple:
    columns = (row.object_type, row.location, row.metadata, row.table_key, row.table_version, row.table_branch)
    return (*columns, row.row_count, row.created_at_version)


KEYS, BRANCHES = ["node:T", "node:U", "edge:E"], [None, "draft", "team/a"]


@st.composite
def histories(draw) -> list[list[Row]]:
    """Publishes in order. Each may pin, drop or re-add; a name is re-added only where its old location is dead."""
    publishes: list[list[Row]] = []
    live: dict[str, tuple[str, int]] = {}
    for at in range(1, draw(st.integers(1, 12)) + 1):
        rows: list[Row] = []
        for key in draw(st.lists(st.sampled_from(KEYS), unique=True, max_size=3)):
            rows += _act(draw(st.sampled_from(["pin", "drop", "fork"])), key, at, live)
        if draw(st.booleans()):
            rows.append(Row(f"other:{at}", "unknown_kind", X, "{}", "node:T", 77, None, 1, at))
        publishes.append(rows)
    return publishes


def _act(act: str, key: str, at: int, live: dict[str, tuple[str, int]]) -> list[Row]:
    if key not in live:
        live[key] = (f"nodes/{key}-{at}", 1)
        return [registered(at, live[key][0], key), pinned(at, 1, 0, live[key][0], None, key)]
    location, version = live[key]
    if act == "drop":
        del live[key]
        return [buried(at, version, location, key)]
    live[key] = (location, version + 1)
    return [pinned(at, version + 1, at, location, BRANCHES[at % 3] if act == "fork" else None, key)]


@settings(max_examples=200, deadline=None)
@given(histories(), st.sampled_from(BRANCHES))
def test_state_advanced_step_by_step_equals_reconstruction_from_scratch(history: list[list[Row]], branch: str | None):
    state, so_far = TableState(), []
    kept: list[tuple[int, TableState]] = []
    for at, rows in enumerate(history, 1):
        state = state.copy()
        state.apply(rows)
        so_far += rows
        kept.append((at, state))
        assert state.resolve(branch) == reconstruct(so_far, branch, at)
    for at, old in kept:
        assert old.resolve(branch) == reconstruct(so_far, branch, at)
