"""Indexes: their files are there, those a table once had are still there, and they answer as the rows do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from omnigraph.catalog.catalog import declared_indexes
from omnigraph.commit.drift import drift_of
from omnigraph.engine.read.search.tokens import pieces, tokens_of
from omnigraph.engine.verify.findings import Damage
from omnigraph.engine.verify.inspection import UNREADABLE, Inspection, place_of
from omnigraph.engine.view import Current
from omnigraph.engine.write.ensure_indices import spec_of
from omnigraph.manifest.snapshot import SubTableEntry
from omnigraph.storage.index_answers import indexed_rows, scanned_ranges
from omnigraph.storage.inventory import RecordedSegment, recorded_segments
from omnigraph.storage.search import (
    rows_of_fragments,
    text_coverage,
    text_hits,
    vector_coverage,
    vector_hits,
)
from omnigraph.storage.tables import Table, has_version, open_table

_WORDS_MAX = 8
_NEAREST_MAX = 4_096
_ALL_PARTITIONS = 1 << 20


def check_indexes(look: Inspection, branch: str | None, key: str, entry: SubTableEntry, table: Table) -> None:
    """The indexes of one pinned version."""
    found: dict[str, list[RecordedSegment]] = {}
    for segment in recorded_segments(table):
        found.setdefault(segment.index, []).append(segment)
    for name, segments in sorted(found.items()):
        lost = _lost(look, entry.location, segments)
        if lost is not None:
            told = f"index {name} of v{table.version}: {lost[1]}"
            look.add(Damage.MISSING_INDEX, branch, key, told, pinned=table.version, path=lost[0].folder)
            continue
        look.progress("indexes", look.rows)
        try:
            wrong = _disagreement(table, segments[0])
        except UNREADABLE as error:
            wrong = f"it cannot be asked: {error}"
        if wrong is not None:
            told = f"index {name} of v{table.version} answers otherwise than the rows: {wrong}"
            look.add(Damage.INDEX_ANSWERS, branch, key, told, pinned=table.version, path=segments[0].folder)


def _lost(look: Inspection, location: str, segments: Sequence[RecordedSegment]) -> tuple[RecordedSegment, str] | None:
    """The first segment whose files are not those that are recorded, and how they differ."""
    listing = look.listing(location)
    wrong = next((s for s in segments if listing.bytes_below(s.folder) != s.size), None)
    if wrong is None:
        return None
    listing.renew()
    size = listing.bytes_below(wrong.folder)
    if size == wrong.size or (wrong.size is None and size is not None):
        return None
    return wrong, "its files are missing" if size is None else f"its files have {size} bytes, recorded are {wrong.size}"


def _disagreement(table: Table, segment: RecordedSegment) -> str | None:
    """What one index says otherwise than the rows do; None when they agree."""
    if len(segment.columns) != 1:
        return None
    column = segment.columns[0]
    if segment.kind == "Inverted":
        return _words_disagree(table, column)
    if segment.kind.startswith("IVF"):
        return _vectors_disagree(table, column)
    for part in scanned_ranges(table, column):
        found = indexed_rows(table, part.where)
        if found != part.rows:
            differ = "as many, but others" if found.count == part.rows.count else str(found.count)
            return f"for {part.where} the rows are {part.rows.count}, the index finds {differ}"
    return None


def _words_disagree(table: Table, column: str) -> str | None:
    """Some words of the texts, each asked of the index and of the texts it covers."""
    covered = sorted(text_coverage(table, column))
    chosen = _some_words(table, column, covered)
    read: dict[str, list[np.ndarray]] = {word: [] for word in chosen}
    for batch in rows_of_fragments(table, [column], fragments=covered):
        row_ids, first = batch.column("_rowid").to_numpy(), 0
        for piece in pieces(batch.column(column)):
            tokens = tokens_of(piece, stemmed=True)
            for word in chosen:
                wanted = np.array([known == word for known in tokens.words], bool)
                read[word].append(row_ids[first : first + len(piece)][tokens.texts_with(wanted)])
            first += len(piece)
    for word, parts in read.items():
        rows = np.unique(np.concatenate(parts))
        hits = np.unique(text_hits(table, column, word, all_words=False, where=None).to_numpy())
        # A stem need not be its own stem, so the index may look for another word.
        if not np.array_equal(rows, hits) and tokens_of(pa.array([word]), stemmed=True).words == [word]:
            return f"{len(rows)} texts have the word '{word}', the index finds {len(hits)}"
    return None


def _some_words(table: Table, column: str, covered: Sequence[int]) -> list[str]:
    chosen: dict[str, None] = {}
    for batch in rows_of_fragments(table, [column], fragments=covered):
        for piece in pieces(batch.column(column)):
            words = tokens_of(piece, stemmed=True).words
            chosen.update(dict.fromkeys(words[:: max(1, len(words) // _WORDS_MAX)]))
            if len(chosen) >= _WORDS_MAX:
                return list(chosen)[:_WORDS_MAX]
    return list(chosen)


def _vectors_disagree(table: Table, column: str) -> str | None:
    """The index, asked for all it has, names rows that are there, each once."""
    covered = sorted(vector_coverage(table, column))
    held, query = set[int](), None
    for row_ids, first in _held(table, column, covered):
        held.update(row_ids)
        query = first if query is None else query
        if len(held) > _NEAREST_MAX:
            break
    if query is None:
        return None
    hits = vector_hits(table, column, query, _NEAREST_MAX, _ALL_PARTITIONS).to_pylist()
    if len(set(hits)) != len(hits):
        return "a vector is there twice"
    if len(held) <= _NEAREST_MAX and set(hits) != held:
        return f"{len(held)} rows have a vector, the index knows {len(hits)}"
    return None


def _held(table: Table, column: str, covered: Sequence[int]) -> Iterator[tuple[list[int], np.ndarray]]:
    """Row ids of rows that have a vector, and one of the vectors."""
    for batch in rows_of_fragments(table, [column], f"`{column}` IS NOT NULL", covered):
        if batch.num_rows:
            yield batch.column("_rowid").to_pylist(), np.asarray(batch.column(column)[0].as_py(), np.float32)


def check_lost_indexes(
    look: Inspection, branch: str | None, key: str, entries: Sequence[SubTableEntry], current: Current, table: Table
) -> None:
    """Declared indexes that the version before this one had. One that was never built is no damage: queries read on.

    `entries`: what the branch showed of the table before, the newest first.
    """
    type_ = current.catalog.find_table(current.key_at(table.ref.location) or "")
    declared = [index for index in declared_indexes(type_) if index.column in table.schema.names] if type_ else []
    missing = {spec_of(index).name for index in declared} - table.index_states().keys()
    if not missing or not table.count_rows():
        return
    for entry in entries:
        ref = look.ref(place_of(entry))
        if ref != table.ref or not has_version(ref, entry.table_version):
            return
        if "Overwrite" in drift_of(look.ctx, entry).operations:
            return  # everything was replaced since, and indexes go with what they covered
        before = open_table(ref, entry.table_version, key)
        for name in sorted(missing & before.index_states().keys()):
            told = f"index {name} of v{entry.table_version} is no more in v{table.version}"
            look.add(Damage.MISSING_INDEX, branch, key, told, pinned=table.version)
            missing.discard(name)
        if not missing:
            return
