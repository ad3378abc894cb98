"""Tables at exact versions: opening, heads, scans and look-ups. Nothing here changes anything.

A table on a branch is opened by its `tree/` path: a handle checked out from main would read main's files.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc
from lance.dataset import Session

from omnigraph.base.errors import Reclaimed
from omnigraph.storage.failures import Unreadable, translated
from omnigraph.storage.predicates import LOOKUP_BY_FILTER_MAX, id_in

_MAX_VERSION = (1 << 64) - 1
_session: Any = Session()


@dataclass(frozen=True)
class TableRef:
    """A table's place: its location below the root and the branch whose versions are meant."""

    root: str
    location: str
    branch: str | None = None

    @property
    def uri(self) -> str:
        base = f"{self.root}/{self.location}"
        return f"{base}/tree/{self.branch}" if self.branch else base

    @property
    def main(self) -> TableRef:
        return TableRef(self.root, self.location)

    def version_file(self, version: int) -> str:
        return f"{self.uri}/_versions/{_MAX_VERSION - version:020d}.manifest"


@dataclass(frozen=True)
class Addresses:
    """Where stored rows lie: parallel lists of id, stable row id and row address."""

    ids: list[str]
    row_ids: list[int]
    row_addresses: list[int]


class Table:
    """A table at one version; safe to share between threads."""

    def __init__(self, ref: TableRef, dataset: lance.LanceDataset) -> None:
        self.ref = ref
        self.dataset = dataset

    @property
    def version(self) -> int:
        return int(self.dataset.version)

    @cached_property
    def schema(self) -> pa.Schema:
        return self.dataset.schema

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
        if len(ids) <= LOOKUP_BY_FILTER_MAX:
            return self.read(columns, id_in(ids)) if ids else self.read(columns, "false")
        wanted = pa.array(ids, pa.string())
        names = list(columns) if columns else self.schema.names
        kept = [
            batch.filter(pc.is_in(batch.column("id"), value_set=wanted))
            for batch in self.batches([*names, *([] if "id" in names else ["id"])])
        ]
        return pa.Table.from_batches(kept).select(names) if kept else self.read(names, "false")

    def addresses(self, ids: Sequence[str]) -> Addresses:
        found = self.find(ids, ["id", "_rowid", "_rowaddr"])
        return _addresses(found)

    def addresses_where(self, where: str) -> Addresses:
        return _addresses(self.read(["id", "_rowid", "_rowaddr"], where))

    def fragment_count(self) -> int:
        return len(self.dataset.get_fragments())

    def fragments(self) -> list[Any]:
        return [f.metadata for f in self.dataset.get_fragments()]


def _addresses(found: pa.Table) -> Addresses:
    columns = found.to_pydict()
    return Addresses(columns["id"], columns["_rowid"], columns["_rowaddr"])


def open_table(ref: TableRef, version: int | None, table_key: str = "") -> Table:
    """The table at `version`, or at its newest readable version when None."""
    try:
        with translated(f"open {table_key or ref.location}"):
            return Table(ref, lance.dataset(ref.uri, version=version, session=_session))
    except ValueError as error:
        if version is not None and not has_version(ref, version):
            raise Reclaimed(table_key or ref.location, version) from error
        raise Unreadable(f"{table_key or ref.location} version {version} cannot be opened: {error}") from error


def table_exists(ref: TableRef) -> bool:
    return bool(_version_numbers(ref))


def has_version(ref: TableRef, version: int) -> bool:
    return os.path.exists(ref.version_file(version))


def head_version(ref: TableRef, known: int) -> int:
    """The newest version number, readable or not. Constant cost while `known` still is the newest."""
    if not has_version(ref, known + 1) and has_version(ref, known):
        return known
    numbers = _version_numbers(ref)
    return numbers[-1] if numbers else 0


def remove_version(ref: TableRef, version: int) -> None:
    """Take away a version file that cannot be read; only ever above a pin and under the branch lock."""
    with translated(f"remove version {version} of {ref.location}"):
        os.unlink(ref.version_file(version))


def _version_numbers(ref: TableRef) -> list[int]:
    try:
        names = os.listdir(f"{ref.uri}/_versions")
    except (FileNotFoundError, NotADirectoryError):
        return []
    stems = (n.removesuffix(".manifest") for n in names if n.endswith(".manifest"))
    return sorted(_MAX_VERSION - int(s) for s in stems if s.isdigit() and len(s) == 20)
