"""Which fragments are rewritten together: every promise of the decision, for any table."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.engine.upkeep import groups as decided
from omnigraph.engine.upkeep.groups import DELETED_SHARE_MAX, Grouping, grouped
from omnigraph.storage.compaction import FragmentFacts, Segment

pytestmark = pytest.mark.slow

TARGET = 100
COSTLY = "bio_text_idx"
facts = st.lists(st.tuples(st.integers(1, 150), st.integers(0, 60), st.integers(0, 9)), max_size=25).map(
    lambda found: [FragmentFacts(n, rows, gone, rows * 10, odd == 9) for n, (rows, gone, odd) in enumerate(found)]
)


def is_costly(name: str) -> bool:
    return name == COSTLY


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[FragmentFacts], list[Segment]]:
    fragments = draw(facts)
    covers = st.frozensets(st.integers(0, max(0, len(fragments) - 1)))
    parts = draw(st.lists(st.tuples(st.sampled_from([COSTLY, "id_btree_idx"]), covers), max_size=4))
    return fragments, [Segment(name, cover) for name, cover in parts]


def rewritten(fragments: list[FragmentFacts], found: Grouping) -> list[FragmentFacts]:
    """The table afterwards: each group is one new fragment in its place."""
    numbers = {f.number: group for group in found.groups for f in group}
    after, fresh = [], len(fragments)
    for fragment in fragments:
        group = numbers.get(fragment.number)
        if group is None:
            after.append(fragment)
        elif group[0] is fragment:
            after.append(FragmentFacts(fresh, sum(f.rows for f in group), 0, 0))
            fresh += 1
    return after


@given(tables())
def test_groups_are_neighbours_and_no_fragment_is_in_two(table: tuple[list[FragmentFacts], list[Segment]]) -> None:
    fragments, segments = table
    found = grouped(fragments, segments, is_costly, TARGET)
    for group in found.groups:
        first = fragments.index(group[0])
        assert list(group) == fragments[first : first + len(group)]
    assert len({f.number for g in found.groups for f in g}) == sum(len(g) for g in found.groups)


@given(tables())
def test_a_group_holds_no_more_than_the_target_unless_it_is_one_fragment(
    table: tuple[list[FragmentFacts], list[Segment]],
) -> None:
    for group in grouped(*table, is_costly, TARGET).groups:
        assert len(group) == 1 or sum(f.rows for f in group) <= TARGET


@given(facts)
def test_a_second_look_finds_nothing_to_do(fragments: list[FragmentFacts]) -> None:
    after = rewritten(fragments, grouped(fragments, [], is_costly, TARGET))
    assert grouped(after, [], is_costly, TARGET).groups == ()


@given(facts)
def test_afterwards_two_neighbours_are_more_than_the_target_and_few_rows_are_deleted(
    fragments: list[FragmentFacts],
) -> None:
    after = rewritten(fragments, grouped(fragments, [], is_costly, TARGET))
    assert all(a.rows + b.rows > TARGET for a, b in pairwise(after))
    assert all(f.deleted <= DELETED_SHARE_MAX * (f.rows + f.deleted) for f in after)


@given(tables())
def test_an_index_that_stays_covers_each_group_as_a_whole_or_not_at_all(
    table: tuple[list[FragmentFacts], list[Segment]],
) -> None:
    fragments, segments = table
    found = grouped(fragments, segments, is_costly, TARGET)
    for segment in segments:
        for group in found.groups:
            inside = {f.number for f in group} & segment.fragment_ids
            assert segment.index in found.dropped or len(inside) in (0, len(group))


@given(tables(), st.booleans())
def test_a_costly_index_that_stays_covers_no_deleted_row_of_a_group(
    table: tuple[list[FragmentFacts], list[Segment]], is_large: bool
) -> None:
    fragments, segments = table
    if is_large:
        fragments = [*fragments, FragmentFacts(len(fragments), decided.REBUILT_ROWS_MAX + 1, 0, 0)]
    found = grouped(fragments, segments, is_costly, TARGET)
    thinned = {f.number for group in found.groups for f in group if f.deleted}
    assert not any(s.fragment_ids & thinned for s in segments if s.index == COSTLY and COSTLY not in found.dropped)


@given(tables())
def test_a_costly_index_of_a_large_table_is_dropped_only_where_much_was_deleted_or_has_to_go(
    table: tuple[list[FragmentFacts], list[Segment]],
) -> None:
    fragments, segments = table
    large = [*fragments, FragmentFacts(len(fragments), decided.REBUILT_ROWS_MAX + 1, 0, 0)]
    covered = {n for s in segments if s.index == COSTLY for n in s.fragment_ids}
    inside = [f for f in fragments if f.number in covered]
    rows, deleted = sum(f.rows for f in inside), sum(f.deleted for f in inside)
    few = deleted <= DELETED_SHARE_MAX * (rows + deleted) and sum(1 for f in inside if f.deleted) <= decided.THINNED_MAX
    if few and not any(f.deleted and f.has_dropped for f in inside):
        assert COSTLY not in grouped(large, segments, is_costly, TARGET).dropped


@given(tables(), st.booleans())
def test_no_fragment_that_holds_a_dropped_column_is_left_alone(
    table: tuple[list[FragmentFacts], list[Segment]], is_large: bool
) -> None:
    fragments, segments = table
    if is_large:
        fragments = [*fragments, FragmentFacts(len(fragments), decided.REBUILT_ROWS_MAX + 1, 0, 0)]
    taken = {f.number for group in grouped(fragments, segments, is_costly, TARGET).groups for f in group}
    assert {f.number for f in fragments if f.has_dropped} <= taken
