"""Text matching: `search`, `match_text`, `fuzzy`, and the relevance of what `search` finds.

Holds for every answer:
  1. `matching_rows` names exactly the rows for which `matches` is true, whatever an index covers; and ids of deleted
     rows, if their fragment was rewritten and the index was not.
  2. An index only narrows down where to look; rows it does not cover are read.
  3. A text that is null and a query without words match nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa

from omnigraph.engine.read.search.edits import within_edits
from omnigraph.engine.read.search.tokens import Texts, Tokens, pieces, tokens_of
from omnigraph.storage.deltas import ROW_ID
from omnigraph.storage.search import (
    fragment_ids,
    rows_of_fragments,
    text_coverage,
    text_hits,
    text_scores,
    words,
)
from omnigraph.storage.tables import Table

Numbers: TypeAlias = "np.ndarray[Any, Any]"

MAX_EDITS = 2
# Lance's own constants, so that an index and a scan agree as far as they can.
_BM25_K1, _BM25_B = 1.2, 0.75
_TAKE_ROWS = 8_192
# Above this part of a table its rows are read in their order sooner than one by one.
_TAKE_PART_MAX = 0.25


@dataclass(frozen=True)
class TextQuery:
    """What a text is asked: one of the words (`search`), the phrase (`match_text`), or a similar word (`fuzzy`)."""

    function: Literal["search", "match_text", "fuzzy"]
    column: str
    text: str
    max_edits: int = MAX_EDITS

    @property
    def is_stemmed(self) -> bool:
        return self.function != "fuzzy"

    @cached_property
    def words(self) -> list[str]:
        """The words of the query in order; none match nothing."""
        return words(self.text, stemmed=self.is_stemmed)


def matches(query: TextQuery, texts: Texts) -> pa.BooleanArray:
    """Which of the texts match, read without an index."""
    if not query.words:
        return pa.array(np.zeros(len(texts), bool))
    found = [_matched(query, tokens_of(piece, stemmed=query.is_stemmed)) for piece in pieces(texts)]
    return pa.array(np.concatenate(found) if found else np.zeros(0, bool))


def _matched(query: TextQuery, tokens: Tokens) -> Numbers:
    match query.function:
        case "search":
            wanted = set(query.words)
            return tokens.texts_with(np.array([word in wanted for word in tokens.words], bool))
        case "match_text":
            return _with_phrase(query.words, tokens)
        case "fuzzy":
            near = np.zeros(len(tokens.words), bool)
            for word in dict.fromkeys(query.words):
                near |= within_edits(tokens.words, word, query.max_edits)
            return tokens.texts_with(near)


def _with_phrase(phrase: Sequence[str], tokens: Tokens) -> Numbers:
    """Which texts have the words one after another; stop words between them do not count."""
    found = np.zeros(len(tokens.starts) - 1, bool)
    code_of = {word: code for code, word in enumerate(tokens.words)}
    places = len(tokens.codes) - len(phrase) + 1
    if places < 1 or not all(word in code_of for word in phrase):
        return found
    text_of = tokens.text_of
    begins = text_of[:places] == text_of[len(phrase) - 1 :]
    for step, word in enumerate(phrase):
        begins &= tokens.codes[step : step + places] == code_of[word]
    found[text_of[:places][begins]] = True
    return found


def matching_rows(table: Table, query: TextQuery, where: str | None = None) -> pa.UInt64Array:
    """The ids of all rows that match and for which the predicate is true, ascending."""
    if not query.words:
        return pa.array([], pa.uint64())
    # The index has stems, so it cannot tell which words are similar.
    covered = text_coverage(table, query.column) if query.is_stemmed else frozenset[int]()
    found = _found_by_index(table, query, where) if covered else None
    rest = None if found is None else [n for n in fragment_ids(table) if n not in covered]
    parts = [] if found is None else [found]
    parts += [
        batch.column("_rowid").filter(matches(query, batch.column(query.column)))
        for batch in rows_of_fragments(table, [query.column], where, rest)
    ]
    return _ascending(parts)


def _found_by_index(table: Table, query: TextQuery, where: str | None) -> pa.Array | None:
    """The covered rows that match; None if so many may match that reading all of them is quicker."""
    is_phrase = query.function == "match_text" and len(query.words) > 1
    hits = text_hits(table, query.column, query.text, all_words=is_phrase, where=where)
    if not is_phrase:
        return hits
    if len(hits) > _TAKE_ROWS and len(hits) > table.count_rows() * _TAKE_PART_MAX:
        return None
    # A row with all the words need not have them in order.
    taken = (
        table.take(hits.slice(first, _TAKE_ROWS).to_pylist(), [query.column, ROW_ID])
        for first in range(0, len(hits), _TAKE_ROWS)
    )
    kept = [_one(some.column(ROW_ID)).filter(matches(query, some.column(query.column))) for some in taken]
    return pa.concat_arrays(kept) if kept else hits


def is_found_by_index(table: Table, query: TextQuery) -> bool:
    """Whether an index helps to find what matches."""
    return query.is_stemmed and bool(text_coverage(table, query.column))


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _ascending(parts: list[pa.Array]) -> pa.UInt64Array:
    if not parts:
        return pa.array([], pa.uint64())
    return pa.array(np.unique(np.concatenate([part.to_numpy(zero_copy_only=False) for part in parts])), pa.uint64())


def bm25_scores(
    table: Table, column: str, text: str, where: str | None = None
) -> tuple[pa.UInt64Array, pa.DoubleArray]:
    """The ids of exactly the rows that match `search(column, text)`, ascending, and how relevant each is.

    Higher is better. With an index, even one that covers only a part, Lance scores by what the index counted; without
    one all texts of the table are counted. The two agree while the index covers everything and nothing was deleted;
    else a score, and with it the order of rows, may depend on how much is covered and on deleted rows that still count.
    It does not depend on `where`, and which rows have a score depends on none of it.
    """
    query = TextQuery("search", column, text)
    covered = text_coverage(table, column) if query.words else frozenset[int]()
    scored = text_scores(table, column, text, where).sort_by("_rowid") if covered else None
    if scored is not None and covered.issuperset(fragment_ids(table)):
        return _one(scored.column("_rowid")), _one(scored.column("_score")).cast(pa.float64())
    rows = matching_rows(table, query, where)
    if not len(rows):
        return rows, pa.array([], pa.float64())
    # Lance searched the rest of the table in a way of its own; where it found other rows its word is not taken.
    if scored is not None and _one(scored.column("_rowid")).equals(rows):
        return rows, _one(scored.column("_score")).cast(pa.float64())
    found, scores = _scores_by_reading(table, query)
    return rows, pa.array(scores[np.searchsorted(found, rows.to_numpy())])


def _scores_by_reading(table: Table, query: TextQuery) -> tuple[Numbers, Numbers]:
    """The ids of all rows that match, ascending, and their scores among all texts of the table."""
    weights = Counter(query.words)
    parts = list(_counts(table, query.column, list(weights)))
    texts, length = sum(part.texts for part in parts), sum(part.length for part in parts)
    rows, lengths = (np.concatenate([getattr(part, name) for part in parts]) for name in ("rows", "lengths"))
    often = np.concatenate([part.often for part in parts])
    having = np.count_nonzero(often, axis=0)
    rarity = np.log(1 + (texts - having + 0.5) / (having + 0.5)) * np.array(list(weights.values()))
    norm = _BM25_K1 * (1 - _BM25_B + _BM25_B * lengths / (length / texts))
    scores = (rarity * often * (_BM25_K1 + 1) / (often + norm[:, None])).sum(axis=1)
    order = np.argsort(rows)
    return rows[order], scores[order]


@dataclass(frozen=True)
class _Counts:
    """Of some texts: how many there are and of what length, and how often those that match have each word."""

    texts: int
    length: int
    rows: Numbers
    lengths: Numbers
    often: Numbers


def _counts(table: Table, column: str, wanted: list[str]) -> Iterator[_Counts]:
    for batch in rows_of_fragments(table, [column]):
        rows, first = batch.column("_rowid").to_numpy(), 0
        for piece in pieces(batch.column(column)):
            tokens = tokens_of(piece, stemmed=True)
            code_of = {word: code for code, word in enumerate(tokens.words)}
            text_of, lengths = tokens.text_of, np.diff(tokens.starts)
            often = np.stack(
                [np.bincount(text_of[tokens.codes == code_of.get(w, -1)], minlength=len(piece)) for w in wanted], axis=1
            )
            match_ = often.any(axis=1)
            ids = rows[first : first + len(piece)][match_]
            # Lance counts a text without words as none at all.
            yield _Counts(int(np.count_nonzero(lengths)), int(lengths.sum()), ids, lengths[match_], often[match_])
            first += len(piece)
