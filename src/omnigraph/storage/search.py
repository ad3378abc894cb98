"""Full-text and vector search as Lance offers them: the words of a text, what an index covers, and what it finds.

Holds for every answer:
  1. It comes from the fragments an index covers and from no others; the caller reads the rest.
  2. A full-text index counts only if it was built with `TEXT_SETTINGS`: another one knows other words.
  3. Phrases are never asked for: Lance leaves a gap where a stop word was, so it would miss rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import lance
import numpy as np
import pyarrow as pa
from lance.query import FullTextOperator, MatchQuery

from omnigraph.storage.failures import translated
from omnigraph.storage.tables import Table

# What a word is, in indexes and outside them: a longest run of letters and digits, in lower case, stemmed.
TEXT_SETTINGS: dict[str, Any] = {
    "base_tokenizer": "simple",
    "language": "English",
    "max_token_length": None,
    "lower_case": True,
    "stem": True,
    "remove_stop_words": True,
    "custom_stop_words": None,
    "ascii_folding": False,
}
_PLAIN = {**TEXT_SETTINGS, "stem": False, "remove_stop_words": False}
_AS_WRITTEN = {**_PLAIN, "lower_case": False}
_FIRST = "first0"
_TEXT_INDEX = "Inverted"
_VECTOR_INDEX = "IVF_"
_BATCH_BYTES = 16 << 20


def words(text: str, *, stemmed: bool) -> list[str]:
    """The words of a text in order: stems without stop words, or all words in lower case."""
    return [found.text for found in _tokens(text, TEXT_SETTINGS if stemmed else _PLAIN)]


def word_forms(runs: Sequence[str], *, stemmed: bool) -> list[str | None]:
    """For each run of letters and digits the word it is; None for a stop word."""
    forms: list[str | None] = [None] * len(runs)
    # Lance counts positions from the first word that is left, so one that always stays leads.
    for found in _tokens(" ".join([_FIRST, *runs]), TEXT_SETTINGS if stemmed else _PLAIN)[1:]:
        forms[found.position - 1] = found.text
    return forms


def word_characters(characters: str) -> set[str]:
    """Those of the characters that words are made of."""
    return {found.text for found in _tokens(" ".join(characters), _AS_WRITTEN)}


def _tokens(text: str, settings: dict[str, Any]) -> list[Any]:
    with translated("read the words of a text"):
        return lance.tokenize(text, **settings)


def text_coverage(table: Table, column: str) -> frozenset[int]:
    """The present fragments that the column's full-text index covers; none if it was built with other settings."""
    return _coverage(
        table,
        column,
        lambda found: (
            found.index_type == _TEXT_INDEX
            and all(found.details.get(name, ...) == value for name, value in TEXT_SETTINGS.items())
        ),
    )


def vector_coverage(table: Table, column: str) -> frozenset[int]:
    """The present fragments that the column's vector index covers."""
    return _coverage(
        table,
        column,
        lambda found: found.index_type.startswith(_VECTOR_INDEX) and found.details.get("metric_type") == "COSINE",
    )


def _coverage(table: Table, column: str, serves: Callable[[Any], bool]) -> frozenset[int]:
    with translated(f"describe indexes of {table.ref.location}"):
        present = set(fragment_ids(table))
        return frozenset(
            int(number)
            for found in table.described_indices
            if found.field_names == [column] and serves(found)
            for segment in found.segments
            for number in segment.fragment_ids
            if number in present
        )


def fragment_ids(table: Table) -> list[int]:
    return [int(f.fragment_id) for f in table.dataset.get_fragments()]


def text_hits(table: Table, column: str, text: str, *, all_words: bool, where: str | None) -> pa.Array:
    """The row ids of covered rows that have one, or all, of the words of the text."""
    return _text_search(table, column, text, all_words, where, covered_only=True).column("_rowid").combine_chunks()


def text_scores(table: Table, column: str, text: str, where: str | None) -> pa.Table:
    """`_rowid` and `_score` of the rows that have one of the words, those the index does not cover included."""
    return _text_search(table, column, text, False, where, covered_only=False)


def _text_search(
    table: Table, column: str, text: str, all_words: bool, where: str | None, *, covered_only: bool
) -> pa.Table:
    operator = FullTextOperator.AND if all_words else FullTextOperator.OR
    with translated(f"search {table.ref.location}"):
        return table.dataset.scanner(
            columns=["_rowid", "_score"],
            full_text_query=MatchQuery(text, table.stored_name(column), fuzziness=0, operator=operator),
            filter=where,
            prefilter=True,
            fast_search=covered_only,
        ).to_table()


def vector_hits(table: Table, column: str, query: np.ndarray[Any, Any], count: int, probes: int) -> pa.Array:
    """The row ids of covered rows near the query, as far as the `probes` nearest partitions hold them."""
    with translated(f"search {table.ref.location}"):
        found = table.dataset.scanner(
            columns=["_rowid", "_distance"],
            nearest={
                "column": column,
                "q": query,
                "k": count,
                "metric": "cosine",
                "nprobes": probes,
                "use_index": True,
            },
            fast_search=True,
        ).to_table()
    return found.column("_rowid").combine_chunks()


def rows_of_fragments(
    table: Table,
    columns: Sequence[str],
    where: str | None = None,
    fragments: Sequence[int] | None = None,
    batch_rows: int = 16_384,
) -> Iterator[pa.RecordBatch]:
    """The columns and `_rowid` of all rows, or of those in the given fragments, a bounded batch at a time."""
    chosen = None
    if fragments is not None:
        wanted = set(fragments)
        chosen = [f for f in table.dataset.get_fragments() if f.fragment_id in wanted]
        if not chosen:
            return
    with translated(f"read {table.ref.location}"):
        yield from table.dataset.scanner(
            columns=[*columns, "_rowid"],
            filter=where,
            fragments=chosen,
            batch_size=batch_rows,
            batch_size_bytes=_BATCH_BYTES,
        ).to_reader()
