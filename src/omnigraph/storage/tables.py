"""Tables at exact versions: opening, heads, scans and look-ups. Nothing here changes anything.

A table on a branch is opened by its `tree/` path: a handle checked out from main would read main's files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lance.dataset import Session

from omnigraph.base.errors import GraphMoved, OmniError, Reclaimed
from omnigraph.storage.failures import Unreadable, translated
from omnigraph.storage.places import Root
from omnigraph.storage.predicates import LOOKUP_BY_FILTER_MAX, column_in
from omnigraph.storage.shapes import EmptyDataset, Shape, shape_of, shaped
from omnigraph.storage.torn import is_whole

VERSIONS = "_versions"
ASIDE = "d"
"""How the file of a version without a place among the numbered ones begins."""
_MAX_VERSION = (1 << 64) - 1
_NEWEST = 100
_CREATED = "_row_created_at_version"
_UPDATED = "_row_last_updated_at_version"
_session: Any = Session()
# What is read once needs no room to be kept.
_FRESH_BYTES = 32 << 20
# So many vectors are looked at in one go.
_LOOK_ROWS = 1_024


@dataclass(frozen=True)
class TableRef:
    """A table's place: its location below the root and the branch whose versions are meant."""

    root: Root
    location: str
    branch: str | None = None

    @property
    def path(self) -> str:
        """The table's place below the root."""
        return f"{self.location}/tree/{self.branch}" if self.branch else self.location

    @property
    def uri(self) -> str:
        return f"{self.root.uri}/{self.path}"

    @property
    def options(self) -> dict[str, str] | None:
        options = self.root.storage_options
        return None if options is None else dict(options)

    @property
    def main(self) -> TableRef:
        return TableRef(self.root, self.location)

    def version_file(self, version: int) -> str:
        """The object below the root that makes `version` exist."""
        return f"{self.path}/{VERSIONS}/{_MAX_VERSION - version:020d}.manifest"


@dataclass(frozen=True)
class Addresses:
    """Where stored rows lie: parallel lists of id, stable row id and row address."""

    ids: list[str]
    row_ids: list[int]
    row_addresses: list[int]


@dataclass(frozen=True)
class IndexState:
    """How many segments an index has and which fragments they cover."""

    segments: int
    fragment_ids: frozenset[int]


@dataclass(frozen=True)
class RowsSince:
    """Rows that were added or replaced, and how many of them are new."""

    rows: pa.Table
    inserted: int


class Table:
    """A table at one version; safe to share between threads."""

    def __init__(self, ref: TableRef, dataset: lance.LanceDataset, shape: Shape | None = None) -> None:
        self.ref = ref
        self.dataset: lance.LanceDataset = shaped(dataset, shape)
        self.shape = shape
        """Where its columns are not those that are stored; such a table is only read."""
        self.version = int(dataset.version)
        self.below_torn = False
        """Whether a newer version exists that cannot be read."""

    @cached_property
    def schema(self) -> pa.Schema:
        return self.dataset.schema

    def showing(self, declared: pa.Schema, literals: Mapping[str, pa.Scalar] | None = None) -> Table:
        """This state by the declared columns: itself where it stores them; `literals` for some that it does not."""
        shape = shape_of(self.schema, declared, literals)
        return self if shape is None else Table(self.ref, self.dataset, shape)

    def stored_name(self, column: str) -> str:
        """What an index knows a column by."""
        return column if self.shape is None else self.shape.stored_name(column) or column

    @cached_property
    def field_ids(self) -> Mapping[str, frozenset[int]]:
        """The numbers that files know a column by, and the columns inside it; a rename keeps them."""
        stored = {field.name(): _field_ids(field) for field in self.dataset.lance_schema.fields()}
        if self.shape is None:
            return stored
        return {shown: stored[name] for shown, name in self.shape.by_name.items() if name is not None}

    @cached_property
    def column_bytes(self) -> Mapping[str, int]:
        """How much of the store each column takes, as it is stored there."""
        with translated(f"measure {self.ref.location}"):
            fields: Any = self.dataset.stats.data_stats().fields
            stored = {found.id: int(found.bytes_on_disk) for found in fields}
        return {name: sum(stored.get(id, 0) for id in ids) for name, ids in self.field_ids.items()}

    @property
    def has_stable_row_ids(self) -> bool:
        return bool(self.dataset.has_stable_row_ids)

    def count_rows(self, where: str | None = None) -> int:
        with translated(f"count {self.ref.location}"):
            return int(self.dataset.count_rows(filter=where))

    def read(self, columns: Sequence[str] | None = None, where: str | None = None) -> pa.Table:
        with translated(f"read {self.ref.location}"):
            return self.dataset.to_table(columns=list(columns) if columns else None, filter=where)

    def batches(self, columns: Sequence[str] | None = None, where: str | None = None) -> pa.RecordBatchReader:
        with translated(f"read {self.ref.location}"):
            wanted = list(columns) if columns else None
            return self.dataset.scanner(columns=wanted, filter=where).to_reader()

    def find(self, ids: Sequence[str], columns: Sequence[str] | None = None) -> pa.Table:
        """The stored rows with these ids, in no particular order."""
        wanted = pa.array(ids, pa.string())
        where = column_in("id", wanted) if len(ids) <= LOOKUP_BY_FILTER_MAX else None
        if where is not None:
            return self.read(columns, where)
        names = list(columns) if columns else self.schema.names
        with translated(f"read {self.ref.location}"):
            kept = [
                batch.filter(pc.is_in(batch.column("id"), value_set=wanted))
                for batch in self.batches([*names, *([] if "id" in names else ["id"])])
            ]
        return pa.Table.from_batches(kept).select(names) if kept else self.read(names, "false")

    def matching(self, column: str, values: pa.Array, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The stored rows whose column holds one of the values, by its index when the values are few."""
        if not len(values):
            return
        where = column_in(column, values) if len(values) <= LOOKUP_BY_FILTER_MAX else None
        if where is not None:
            yield from self.batches(columns, where)
            return
        names = [*columns, *([] if column in columns else [column])]
        for batch in self.batches(names):
            found = batch.filter(pc.is_in(batch.column(column), value_set=values))
            if found.num_rows:
                yield found.select(list(columns))

    def take(self, row_ids: Sequence[int], columns: Sequence[str]) -> pa.Table:
        """The rows with these row ids, in the order given."""
        with translated(f"read {self.ref.location}"):
            return self.dataset._take_rows(list(row_ids), columns=list(columns))

    def addresses(self, ids: Sequence[str]) -> Addresses:
        found = self.find(ids, ["id", "_rowid", "_rowaddr"])
        return _addresses(found)

    def addresses_where(self, where: str) -> Addresses:
        return _addresses(self.read(["id", "_rowid", "_rowaddr"], where))

    def fragment_count(self) -> int:
        return len(self.dataset.get_fragments())

    def index_states(self) -> dict[str, IndexState]:
        """What each index covers, by its name."""
        with translated(f"describe indexes of {self.ref.location}"):
            return {
                found.name: IndexState(
                    len(found.segments), frozenset(int(n) for part in found.segments for n in part.fragment_ids)
                )
                for found in self.dataset.describe_indices()
            }

    def fragment_rows(self) -> dict[int, int]:
        """The number of rows of each fragment, by its id."""
        with translated(f"read {self.ref.location}"):
            return {int(f.fragment_id): int(f.count_rows()) for f in self.dataset.get_fragments()}

    def count_vectors(self, column: str, fragment_ids: Sequence[int], limit: int | None = None) -> tuple[int, int]:
        """How many vectors of these fragments have a length as Lance counts it, and how many none; up to `limit`."""
        with translated(f"read {self.ref.location}"):
            chosen = [f for f in self.dataset.get_fragments() if f.fragment_id in set(fragment_ids)]
            where, rows, directions = f"`{column}` IS NOT NULL", 0, 0
            scanner = self.dataset.scanner([column], where, limit, fragments=chosen, batch_size=_LOOK_ROWS)
            for batch in scanner.to_reader():
                rows, directions = rows + batch.num_rows, directions + _directions(batch.column(0))
            return directions, rows - directions

    def has_replaced_rows(self, fragment_ids: Sequence[int]) -> bool:
        """Whether one of these fragments holds a row that took the place of an earlier one with the same row id."""
        with translated(f"read {self.ref.location}"):
            chosen = [f for f in self.dataset.get_fragments() if f.fragment_id in set(fragment_ids)]
            where = f"{_CREATED} < {_UPDATED}"
            return any(
                self.dataset.scanner([_CREATED], where, limit=1, fragments=[f]).to_table().num_rows for f in chosen
            )

    def rows_since(self, before: Table, columns: Sequence[str], rows_max: int) -> RowsSince | None:
        """What came since an earlier version of the same table; None if it is more than `rows_max` rows."""
        known = {f.fragment_id for f in before.dataset.get_fragments()}
        with translated(f"read {self.ref.location}"):
            # A row that is replaced moves to a new fragment.
            fresh = [f for f in self.dataset.get_fragments() if f.fragment_id not in known]
            where = f"{_UPDATED} > {before.version}"
            if not fresh:
                return RowsSince(self.read(columns, "false"), 0)
            wanted = [*columns, _CREATED]
            found = self.dataset.scanner(wanted, where, limit=rows_max + 1, fragments=fresh).to_table()
        if found.num_rows > rows_max:
            return None
        inserted = pc.sum(pc.greater(found.column(_CREATED), before.version)).as_py() or 0
        return RowsSince(found.select(list(columns)), int(inserted))

    def fragments(self) -> list[Any]:
        return [f.metadata for f in self.dataset.get_fragments()]

    @cached_property
    def described_indices(self) -> Sequence[Any]:
        """What each index is and which fragments it covers."""
        return self.dataset.describe_indices()

    @cached_property
    def fragments_by_files(self) -> Mapping[tuple[str, ...], Any]:
        """What is known of each fragment, by its data files, which are never written again under the same name."""
        return {tuple(file.path for file in f.files): f for f in self.fragments()}


def _directions(vectors: pa.FixedSizeListArray) -> int:
    values = vectors.flatten().to_numpy(zero_copy_only=False).astype(np.float32).reshape(len(vectors), -1)
    with np.errstate(over="ignore"):
        return int((values * values > 0).any(axis=1).sum())


def _field_ids(field: Any) -> frozenset[int]:
    return frozenset([field.id()]).union(*(_field_ids(child) for child in field.children()))


def _addresses(found: pa.Table) -> Addresses:
    columns = found.to_pydict()
    return Addresses(columns["id"], columns["_rowid"], columns["_rowaddr"])


def open_table(ref: TableRef, version: int | None, table_key: str = "", *, fresh: bool = False) -> Table:
    """The table at `version`, or at its newest readable version when None.

    `fresh`: nothing that this process keeps in memory answers for what lies on disk.
    """
    session = Session(_FRESH_BYTES, _FRESH_BYTES) if fresh else _session
    try:
        with translated(f"open {table_key or ref.location}"):
            table = Table(ref, lance.dataset(ref.uri, version=version, session=session, storage_options=ref.options))
    except ValueError as error:
        if version is not None and not has_version(ref, version):
            raise Reclaimed(table_key or ref.location, version) from error
        raise Unreadable(f"{table_key or ref.location} version {version} cannot be opened: {error}") from error
    if ref.branch is not None:
        _refuse_moved(table)
    return table


def open_declared(ref: TableRef, version: int, table_key: str, declared: pa.Schema) -> Table:
    """The table with the declared columns, whatever is stored; at version 0 it is not made yet and has no rows."""
    if version:
        return open_table(ref, version, table_key).showing(declared)
    nothing: Any = EmptyDataset(declared)
    return Table(ref, nothing)


def _refuse_moved(table: Table) -> None:
    """A fork records where its base lies; one that lies elsewhere is another graph's and is never followed."""
    root = table.ref.root.uri
    for base in table.dataset.base_paths().values():
        recorded = str(base.path)
        if not f"{_without_scheme(recorded)}/".startswith(f"{_without_scheme(root)}/"):
            raise GraphMoved(branch=table.ref.branch or "main", recorded_base=recorded, root=root)


def _without_scheme(uri: str) -> str:
    return uri.split("://", 1)[-1].rstrip("/")


def open_newest(ref: TableRef, table_key: str = "") -> Table:
    """The table at its newest version that is not torn; a power cut may have torn a newer one."""
    failed: OmniError | None = None
    try:
        table = open_table(ref, None, table_key)
        if table.version > 0:  # a version file full of zeros opens as version 0
            return table
    except GraphMoved:
        raise
    except OmniError as error:
        failed = error
    numbers = _version_numbers(ref)
    for version in reversed(numbers):
        if not is_torn(ref, version):
            table = open_table(ref, version, table_key)
            table.below_torn = version != numbers[-1]
            return table
    raise failed or Unreadable(f"no version of {table_key or ref.location} can be opened")


def is_torn(ref: TableRef, version: int) -> bool:
    """Whether a version is there and its file is not whole."""
    found = ref.root.objects.get(ref.version_file(version))
    return found is not None and not is_whole(found.data, version)


def torn_versions(ref: TableRef) -> list[int]:
    """Versions above the newest whole one, newest first.

    Each is looked at itself: a version that a slow writer lands meanwhile is newer than what was opened, and whole.
    """
    return list(takewhile(lambda version: is_torn(ref, version), reversed(_version_numbers(ref))))


def table_exists(ref: TableRef) -> bool:
    """Whether there is a table; one whose only version a power cut tore was never made."""
    numbers = _version_numbers(ref)
    return bool(numbers) and not (numbers == [1] and is_torn(ref, 1))


def has_version(ref: TableRef, version: int) -> bool:
    return ref.root.objects.exists(ref.version_file(version))


def head_version(ref: TableRef, known: int) -> int:
    """The newest version number, readable or not. Constant cost while `known` still is the newest."""
    if not has_version(ref, known + 1) and has_version(ref, known):
        return known
    return newest_number(ref)


def newest_number(ref: TableRef) -> int:
    """The newest version number, readable or not; 0 where there is no table."""
    numbers = _version_numbers(ref)
    return numbers[-1] if numbers else 0


def remove_version(ref: TableRef, version: int) -> None:
    """Take away a version file that cannot be read; only ever above a pin and under the branch lock."""
    ref.root.objects.delete(ref.version_file(version))


def _version_numbers(ref: TableRef) -> list[int]:
    """The newest version numbers, ascending."""
    # Names count downwards, so the first ones of a listing are the newest versions.
    keys = ref.root.objects.list(f"{ref.path}/{VERSIONS}", limit=_NEWEST)
    return sorted(v for v in map(version_number, keys) if v is not None)


def version_number(key: str) -> int | None:
    """The version that an object in a table's folder of versions makes exist; None for other objects there."""
    name = key.rsplit("/", 1)[1]
    stem = name.removesuffix(".manifest")
    return _MAX_VERSION - int(stem) if name != stem and stem.isdigit() and len(stem) == 20 else None
