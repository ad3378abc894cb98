"""Which fragments are worth rewriting together. Pure.

Holds:
  1. Each group becomes one fragment of at most `target_rows` rows, unless one fragment alone has more.
  2. What the groups leave is left alone by the next look: two neighbours that would fit together were put together.
  3. Every index part covers a group as a whole or not at all, or its index is among `dropped`.
  4. A text or vector index that stays covers no deleted row of a group: once such a row is in no fragment any more, a
     search for the nearest would still count it.
  5. Every fragment that holds a dropped column is in a group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from omnigraph.storage.compaction import FragmentFacts, Segment

TARGET_ROWS = 1 << 20
DELETED_SHARE_MAX = 0.1
# Up to here text and vector indexes are built again for the sake of fewer fragments.
REBUILT_ROWS_MAX = 1 << 17
# So many fragments with deleted rows may lie aside before an index that covers them is built again.
THINNED_MAX = 16


@dataclass(frozen=True)
class Grouping:
    """Groups of neighbouring fragments, and the indexes that cannot stay when they are rewritten."""

    groups: tuple[tuple[FragmentFacts, ...], ...] = ()
    dropped: frozenset[str] = frozenset()


def grouped(
    fragments: Sequence[FragmentFacts],
    segments: Sequence[Segment],
    is_costly: Callable[[str], bool],
    target_rows: int = TARGET_ROWS,
) -> Grouping:
    """`is_costly`: whether an index with this name is better kept than built again on a large table."""
    costly = [s for s in segments if is_costly(s.index)]
    kept: list[Segment] = []
    if sum(f.rows for f in fragments) > REBUILT_ROWS_MAX:
        worn = {name for name in {s.index for s in costly} if _is_worn(fragments, costly, name)}
        kept = [s for s in costly if s.index not in worn]
    found: list[tuple[FragmentFacts, ...]] = []
    for run in _runs(fragments, kept):
        found += (group for group in _packed(run, target_rows) if _is_worth_it(group))
    return Grouping(tuple(found), frozenset(_split(found, segments) | _outdated(found, costly)))


def _is_worn(fragments: Iterable[FragmentFacts], segments: Iterable[Segment], index: str) -> bool:
    """Whether so much of what an index covers was deleted, or must be rewritten, that it is better built again."""
    covered = frozenset().union(*(s.fragment_ids for s in segments if s.index == index))
    inside = [f for f in fragments if f.number in covered]
    if any(f.deleted and f.has_dropped for f in inside):
        return True
    rows, deleted = sum(f.rows for f in inside), sum(f.deleted for f in inside)
    return deleted > DELETED_SHARE_MAX * (rows + deleted) or sum(1 for f in inside if f.deleted) > THINNED_MAX


def _runs(fragments: Iterable[FragmentFacts], kept: Sequence[Segment]) -> list[list[FragmentFacts]]:
    """Neighbours that the same index parts cover; those with deleted rows that a kept index covers are left out."""
    runs: list[list[FragmentFacts]] = []
    before: tuple[bool, ...] | None = None
    for fragment in fragments:
        covered = tuple(fragment.number in segment.fragment_ids for segment in kept)
        if fragment.deleted and any(covered):
            before = None
            continue
        if covered != before:
            runs.append([])
        runs[-1].append(fragment)
        before = covered
    return runs


def _packed(run: Sequence[FragmentFacts], target_rows: int) -> list[tuple[FragmentFacts, ...]]:
    """The run cut where the next fragment would not fit any more."""
    groups: list[list[FragmentFacts]] = []
    rows = 0
    for fragment in run:
        if not groups or rows + fragment.rows > target_rows:
            groups.append([])
            rows = 0
        groups[-1].append(fragment)
        rows += fragment.rows
    return [tuple(group) for group in groups]


def _is_worth_it(group: tuple[FragmentFacts, ...]) -> bool:
    if len(group) > 1:
        return True
    only = group[0]
    return only.has_dropped or only.deleted > DELETED_SHARE_MAX * (only.rows + only.deleted)


def _split(groups: Sequence[tuple[FragmentFacts, ...]], segments: Sequence[Segment]) -> set[str]:
    """Indexes with a part that covers some fragments of a group and not others."""
    numbers = [frozenset(f.number for f in group) for group in groups]
    return {s.index for s in segments if any(0 < len(s.fragment_ids & group) < len(group) for group in numbers)}


def _outdated(groups: Sequence[tuple[FragmentFacts, ...]], segments: Sequence[Segment]) -> set[str]:
    """Indexes that cover a row which goes for good with the rewrite of its fragment."""
    thinned = {f.number for group in groups for f in group if f.deleted}
    return {s.index for s in segments if s.fragment_ids & thinned}
