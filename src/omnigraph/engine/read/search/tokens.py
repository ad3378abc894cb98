"""The words of many texts at once, exactly those the full-text index has.

A word starts as a longest run of word characters; which characters those are, how a run is written in lower case,
stemmed, or left out as a stop word is asked of the index's own tokenizer, once for each distinct character and run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.storage.search import word_characters, word_forms

Numbers: TypeAlias = "np.ndarray[Any, Any]"
Texts: TypeAlias = pa.Array | pa.ChunkedArray

_PIECE_BYTES = 4 << 20
_UNKNOWN, _OTHER, _WORD = 0, 1, 2
# What is known of each character; two threads that ask at once write the same answer.
_kinds: Numbers = np.zeros(0x110000, np.uint8)


@dataclass(frozen=True)
class Tokens:
    """Text i consists of `words[code]` for each code in `codes[starts[i]:starts[i + 1]]`; words are distinct."""

    words: list[str]
    codes: Numbers
    starts: Numbers

    @property
    def text_of(self) -> Numbers:
        """For each code the number of its text."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    def texts_with(self, word_is_wanted: Numbers) -> Numbers:
        """Which texts have a word that is wanted; `word_is_wanted` is parallel to `words`."""
        before = np.concatenate(([0], np.cumsum(word_is_wanted[self.codes])))[self.starts]
        return before[1:] > before[:-1]


def pieces(texts: Texts) -> Iterator[pa.Array]:
    """The texts in order, in arrays that are small enough to be worked on in memory."""
    for chunk in texts.chunks if isinstance(texts, pa.ChunkedArray) else [texts]:
        step = max(1, len(chunk) * _PIECE_BYTES // max(1, chunk.nbytes))
        for first in range(0, len(chunk), step):
            yield chunk.slice(first, step)


def tokens_of(texts: pa.Array, *, stemmed: bool) -> Tokens:
    """The words of each text: stems without stop words, or all words in lower case. A null has none."""
    runs, starts = _runs(texts)
    encoded = runs.dictionary_encode()
    forms = word_forms(encoded.dictionary.to_pylist(), stemmed=stemmed)
    words = list(dict.fromkeys(form for form in forms if form is not None))
    code_of = {word: code for code, word in enumerate(words)}
    codes = np.array([-1 if form is None else code_of[form] for form in forms], np.int32)[encoded.indices.to_numpy()]
    kept = codes >= 0
    before = np.concatenate(([0], np.cumsum(kept)))
    return Tokens(words, codes[kept], before[starts])


def _runs(texts: pa.Array) -> tuple[pa.Array, Numbers]:
    """The runs of word characters of all texts, and where those of each text start."""
    plain = pc.fill_null(texts.cast(pa.string()), "")
    _, offsets_buffer, data_buffer = plain.buffers()
    if not len(plain) or data_buffer is None:
        return pa.array([], pa.string()), np.zeros(len(plain) + 1, np.int64)
    offsets = np.frombuffer(offsets_buffer, np.int32)[plain.offset : plain.offset + len(plain) + 1].astype(np.int64)
    data_buffer = data_buffer.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
    offsets -= offsets[0]
    characters, place = _characters(data_buffer)
    is_word = _are_word_characters(characters)
    # A run ends where the kind of character changes and where a text ends.
    cut = np.ones(len(characters) + 1, bool)
    np.not_equal(is_word[1:], is_word[:-1], out=cut[1:-1])
    cut[np.searchsorted(place, offsets)] = True
    bounds = np.flatnonzero(cut)
    of_words = is_word[bounds[:-1]]
    all_runs = pa.StringArray.from_buffers(len(of_words), pa.py_buffer(place[bounds].astype(np.int32)), data_buffer)
    starts = np.searchsorted(place[bounds[:-1]][of_words], offsets)
    return all_runs.filter(pa.array(of_words)), starts


def _characters(data: pa.Buffer) -> tuple[Numbers, Numbers]:
    """The code points of UTF-8 data and the byte at which each starts, followed by the end."""
    units = np.frombuffer(data, np.uint8)
    if not len(units) or units.max() < 0x80:
        return units, np.arange(len(units) + 1)
    points = np.frombuffer(data.to_pybytes().decode().encode("utf-32-le"), "<u4")
    return points, np.append(np.flatnonzero((units & 0xC0) != 0x80), len(units))


def _are_word_characters(points: Numbers) -> Numbers:
    kinds = _kinds[points]
    if len(kinds) and kinds.min() == _UNKNOWN:
        new = np.unique(points[kinds == _UNKNOWN])
        of_words = [ord(character) for character in word_characters("".join(map(chr, new.tolist())))]
        found = np.full(len(new), _OTHER, np.uint8)
        found[np.isin(new, np.array(of_words, np.uint32))] = _WORD
        _kinds[new] = found
        kinds = _kinds[points]
    return np.equal(kinds, _WORD)
