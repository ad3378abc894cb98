"""What a table version records of the files it needs: names and sizes, from its metadata alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from omnigraph.storage.failures import translated
from omnigraph.storage.tables import Table

_DATA, _INDICES = "data", "_indices"


@dataclass(frozen=True)
class RecordedFile:
    """A data or deletion file, below the root; Lance records no size of a deletion file."""

    path: str
    size: int | None


@dataclass(frozen=True)
class RecordedSegment:
    """One segment of an index: its files lie in a folder of its own and have `size` bytes together."""

    index: str
    columns: tuple[str, ...]
    kind: str
    folder: str
    size: int | None


def recorded_files(table: Table) -> Iterator[RecordedFile]:
    """Every data and deletion file that reading the version may need."""
    places = _Places(table)
    with translated(f"list the files of {table.ref.path}"):
        for fragment in table.fragments():
            for file in fragment.files:
                yield RecordedFile(f"{places.of(file.base_id)}/{_DATA}/{file.path}", file.file_size_bytes)
            gone = fragment.deletion_file
            if gone is not None:
                yield RecordedFile(f"{places.of(gone.base_id)}/{gone.path(fragment.id)}", None)


def recorded_segments(table: Table) -> Iterator[RecordedSegment]:
    places = _Places(table)
    with translated(f"describe indexes of {table.ref.path}"):
        for index in table.dataset.describe_indices():
            for segment in index.segments:
                folder = f"{places.of(segment.base_id)}/{_INDICES}/{segment.uuid}"
                size = segment.size_bytes
                yield RecordedSegment(index.name, tuple(index.field_names), index.index_type, folder, size)


def lacks_index_files(table: Table) -> bool:
    """Whether a segment of an index has no files where the version says they lie."""
    objects = table.ref.root.objects
    return any(next(iter(objects.walk(segment.folder)), None) is None for segment in recorded_segments(table))


class _Places:
    """Where files lie that a fork has from its base; a base outside the root was refused when the table was opened."""

    def __init__(self, table: Table) -> None:
        self._own = table.ref.path
        root = _bare(table.ref.root.uri)
        self._bases = {
            number: _bare(str(base.path)).removeprefix(root).strip("/")
            for number, base in table.dataset.base_paths().items()
        }

    def of(self, base_id: int | None) -> str:
        return self._own if base_id is None else self._bases[base_id]


def _bare(uri: str) -> str:
    return uri.split("://", 1)[-1].rstrip("/")
