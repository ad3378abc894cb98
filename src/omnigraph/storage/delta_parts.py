"""Where two states of a table may differ, as parts that any process can read: uris, versions, fragments.

Holds for the parts of two states: for every id whose row differs, each state's row of it is in one of that state's
parts, if the state has the row. They may hold rows that do not differ: those that a compaction only moved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import lance
import numpy as np
import pyarrow as pa

from omnigraph.storage.failures import Unreadable, translated
from omnigraph.storage.predicates import LOOKUP_BY_FILTER_MAX
from omnigraph.storage.row_deltas import Numbers, Paired, paired_fragments
from omnigraph.storage.shapes import Shape, shaped
from omnigraph.storage.tables import Table

_ADDRESS = "_rowaddr"
_OFFSET_BITS = np.uint64(0xFFFFFFFF)
_BATCH_ROWS = 8_192
_BATCH_BYTES = 16 << 20
# Beyond this many rows of one fragment a scan of it beats naming them.
_NAMED_MAX = 20 * LOOKUP_BY_FILTER_MAX


@dataclass(frozen=True)
class Place:
    """A table at one version, as any process reaches it."""

    uri: str
    version: int
    options: Mapping[str, str] | None = field(default=None, repr=False)
    shape: Shape | None = None

    @staticmethod
    def of(table: Table) -> Place:
        return Place(table.ref.uri, table.version, table.ref.options, table.shape)

    def open(self) -> Any:
        options = None if self.options is None else dict(self.options)
        try:
            return shaped(lance.dataset(self.uri, version=self.version, storage_options=options), self.shape)
        except ValueError as error:
            raise Unreadable(f"{self.uri} version {self.version} cannot be opened: {error}") from error


@dataclass(frozen=True)
class WholeFragment:
    """All rows of a fragment."""

    place: Place
    fragment_id: int

    def rows(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with translated(f"read {self.place.uri}"):
            dataset = self.place.open()
            yield from _scan(dataset, dataset.get_fragment(self.fragment_id), columns)


@dataclass(frozen=True)
class DeletedThere:
    """The rows of a fragment that another state, which holds the same fragment, has deleted."""

    place: Place
    fragment_id: int
    there: Place
    there_id: int

    def rows(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with translated(f"read {self.place.uri}"):
            dataset, other = self.place.open(), self.there.open()
            fragment = dataset.get_fragment(self.fragment_id)
            kept = _live_offsets(other, other.get_fragment(self.there_id))
            gone = np.setdiff1d(_live_offsets(dataset, fragment), kept, assume_unique=True)
            addresses = gone + np.uint64(self.fragment_id << 32)
            if len(addresses) <= _NAMED_MAX:
                for at in range(0, len(addresses), LOOKUP_BY_FILTER_MAX):
                    named = ", ".join(map(str, addresses[at : at + LOOKUP_BY_FILTER_MAX].tolist()))
                    yield from _scan(dataset, fragment, columns, f"{_ADDRESS} IN ({named})")
                return
            for batch in _scan(dataset, fragment, [*columns, _ADDRESS]):
                hit = np.isin(batch.column(batch.num_columns - 1).to_numpy(), addresses)
                if hit.any():
                    yield batch.filter(pa.array(hit)).select(list(columns))


DeltaPart = WholeFragment | DeletedThere


@dataclass(frozen=True)
class DeltaParts:
    """`row_count`: about how many rows there are to compare."""

    before: tuple[DeltaPart, ...]
    after: tuple[DeltaPart, ...]
    row_count: int


def delta_parts(before: Table | None, after: Table | None, columns: Sequence[str]) -> DeltaParts:
    """The parts in which two states of a table may differ; None is a state without rows. Only metadata is read."""
    if before is None or after is None or before.ref.location != after.ref.location:
        whole = [_fragments(table) for table in (before, after)]
        found = Paired(whole[0], whole[1], ())
    else:
        found = paired_fragments(before, after, columns)
    old, new = (None if table is None else Place.of(table) for table in (before, after))
    rows = sum(int(f.metadata.num_rows) for f in (*found.lost, *found.fresh))
    for one, other in found.thinned:
        rows += abs(_deleted_count(one) - _deleted_count(other))
    return DeltaParts(_side(old, found.lost, new, found.thinned), _side(new, found.fresh, old, _turned(found)), rows)


def _side(
    place: Place | None, own: Sequence[Any], there: Place | None, thinned: Sequence[tuple[Any, Any]]
) -> tuple[DeltaPart, ...]:
    if place is None:
        return ()
    parts: list[DeltaPart] = [WholeFragment(place, int(fragment.fragment_id)) for fragment in own]
    if there is not None:
        parts += [DeletedThere(place, int(one.fragment_id), there, int(other.fragment_id)) for one, other in thinned]
    return tuple(parts)


def _turned(found: Paired) -> list[tuple[Any, Any]]:
    return [(new, old) for old, new in found.thinned]


def _fragments(table: Table | None) -> tuple[Any, ...]:
    return () if table is None else tuple(table.dataset.get_fragments())


def _deleted_count(fragment: Any) -> int:
    found = fragment.metadata.deletion_file
    return 0 if found is None else int(found.num_deleted_rows or 0)


def _live_offsets(dataset: Any, fragment: Any) -> Numbers:
    found = [batch.column(0).to_numpy() & _OFFSET_BITS for batch in _scan(dataset, fragment, [_ADDRESS])]
    return np.concatenate([np.empty(0, np.uint64), *found])


def _scan(dataset: Any, fragment: Any, columns: Sequence[str], where: str | None = None) -> Iterator[pa.RecordBatch]:
    scanner = dataset.scanner(
        list(columns),
        where,
        fragments=[fragment],
        batch_size=_BATCH_ROWS,
        batch_size_bytes=_BATCH_BYTES,
        late_materialization=True if where is not None else None,
        # An index of a branch may point into another branch's files; nothing here needs one.
        use_scalar_index=False,
    )
    yield from scanner.to_reader()
