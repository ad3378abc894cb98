"""The text functions of the naive evaluator over the words of the full-text index."""

from __future__ import annotations

import pyarrow as pa

from omnigraph.engine.read.search.tokens import tokens_of
from read.naive_parts import no_embedding, searching_by


def _words(text: str, stemmed: bool) -> list[str]:
    found = tokens_of(pa.array([text]), stemmed=stemmed)
    return [found.words[code] for code in found.codes.tolist()]


INDEX_WORDS = searching_by(lambda text: _words(text, True), lambda text: _words(text, False), no_embedding)
