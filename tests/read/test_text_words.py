"""The words of a text are those the full-text index has, whichever way they are found."""

from pathlib import Path

import lance
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lance.query import MatchQuery, PhraseQuery
from search_tables import TEXT, edit_distance, indexed, plain_words, stems, table_of, texts

from omnigraph.engine.read.search.edits import within_edits
from omnigraph.engine.read.search.tokens import tokens_of
from omnigraph.storage.search import TEXT_SETTINGS, text_coverage, words

pytestmark = pytest.mark.slow

ODD = "The Foxes' don't 1,234 x² foo_bar café cafe\u0301 İstanbul ΣΑΣ straße ﬁne 日本語 हिन्दी Ⓐ \x00 \U0001f44d ÿ"
texts_of_all_kinds = st.one_of(
    st.none(),
    st.text(max_size=12),
    st.text(alphabet=ODD, max_size=12),
    st.lists(st.sampled_from(["the", "Running", "runs", "of", "sky", "skies", "O'Neil", "fox’s"]), max_size=5).map(
        " ".join
    ),
)


def listed(texts_: pa.Array, stemmed: bool) -> list[list[str]]:
    found = tokens_of(texts_, stemmed=stemmed)
    bounds = zip(found.starts, found.starts[1:], strict=False)
    return [[found.words[code] for code in found.codes[a:b]] for a, b in bounds]


@settings(max_examples=150, deadline=None)
@given(st.lists(texts_of_all_kinds, max_size=6), st.integers(0, 2))
def test_words_of_many_texts_at_once_are_those_of_each_alone(bodies: list[str | None], skipped: int):
    column = pa.array(bodies, pa.string()).slice(skipped)
    assert listed(column, stemmed=True) == [stems(text) for text in bodies[skipped:]]
    assert listed(column, stemmed=False) == [plain_words(text) for text in bodies[skipped:]]


def test_words_with_any_unicode_character_are_those_lance_finds():
    points = "".join(chr(n) for n in range(0x110000) if not 0xD800 <= n < 0xE000)
    bodies = [points[first : first + 1024] for first in range(0, len(points), 1024)]
    assert listed(pa.array(bodies), stemmed=False) == [plain_words(text) for text in bodies]


def test_words_are_split_at_what_is_neither_letter_nor_digit_and_stemmed_in_lower_case():
    assert words("The Foxes' running, 1,234 times; don't", stemmed=True) == [
        "fox",
        "run",
        "1",
        "234",
        "time",
        "don",
        "t",
    ]
    assert words("The Foxes' RUNNING", stemmed=False) == ["the", "foxes", "running"]
    assert words("Café CAFE " + "a" * 60, stemmed=True) == ["café", "cafe", "a" * 60], "nothing is folded or left out"
    assert words("the of and — !", stemmed=True) == []


short_words = st.text(alphabet="abé", max_size=6)


@settings(max_examples=200, deadline=None)
@given(st.lists(short_words, max_size=8), short_words.filter(bool), st.integers(0, 7))
def test_words_within_edits_are_those_whose_levenshtein_distance_is_small_enough(found, wanted, edits):
    assert within_edits(found, wanted, edits).tolist() == [edit_distance(word, wanted) <= edits for word in found]


def test_words_within_very_many_edits_are_all_words():
    assert within_edits(["a", "b" * 500], "c", 10**30).tolist() == [True, True]


def test_text_index_is_built_with_the_settings_every_other_reader_uses(tmp_path: Path):
    table = indexed(table_of(tmp_path, texts(["red fox", "café"])), TEXT)
    [described] = table.dataset.describe_indices()
    assert {name: described.details[name] for name in TEXT_SETTINGS} == TEXT_SETTINGS
    assert text_coverage(table, "body") == {f.fragment_id for f in table.dataset.get_fragments()}


def test_text_index_with_other_settings_is_not_relied_on(tmp_path: Path):
    table = table_of(tmp_path, texts(["red fox", "café"]))
    table.dataset.create_scalar_index("body", "INVERTED", name="body_text_idx")
    assert text_coverage(type(table)(table.ref, lance.dataset(table.ref.uri)), "body") == set()


@pytest.fixture
def phrases(tmp_path: Path) -> lance.LanceDataset:
    return indexed(table_of(tmp_path, texts(["fox the dog", "fox dog", "dog fox", "many foxes"]), 1), TEXT).dataset


def found_by(dataset: lance.LanceDataset, query: MatchQuery | PhraseQuery) -> list[str]:
    return sorted(dataset.to_table(columns=["id", "_score"], full_text_query=query)["id"].to_pylist())


def test_lance_keeps_a_gap_in_phrases_where_a_stop_word_was(phrases: lance.LanceDataset):
    """Our phrase is of words that count, so Lance's answer would miss rows."""
    assert found_by(phrases, PhraseQuery("fox dog", "body")) == ["t1"]
    assert found_by(phrases, PhraseQuery("fox the dog", "body")) == ["t0"]


def test_lance_finds_every_row_with_one_word_and_limits_nothing(tmp_path: Path):
    table = indexed(table_of(tmp_path, texts([f"common w{i}" for i in range(3000)])), TEXT)
    found = table.dataset.to_table(columns=["_rowid", "_score"], full_text_query=MatchQuery("common", "body"))
    assert found.num_rows == 3000
