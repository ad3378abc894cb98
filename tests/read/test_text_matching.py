"""Text functions find the same rows with no, a partial or a full index, whatever was written since."""

import random
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from search_tables import (
    COVERAGES,
    HISTORIES,
    STAMP,
    TEXT,
    forked,
    indexed,
    is_match,
    land,
    partly_indexed,
    table_of,
    texts,
)

from omnigraph.engine.read.search import text as text_module
from omnigraph.engine.read.search.text import TextQuery, matches, matching_rows
from omnigraph.storage.search import text_coverage
from omnigraph.storage.stage import IndexKind, IndexSpec, stage_append, stage_index, stage_overwrite
from omnigraph.storage.tables import Table

WORDS = [
    "fox",
    "Foxes",
    "the",
    "of",
    "running",
    "run",
    "O'Neil",
    "don't",
    "café",
    "cafe",
    "42",
    "4",
    "日本語",
    "x²",
    "-",
]
ASKED = [
    "fox",
    "the fox",
    "foxes run",
    "run the fox",
    "don't",
    "café",
    "42",
    "日本語",
    "zebra",
    "the of",
    "",
    " - ",
    "fxo runing",
]
FUNCTIONS = ["search", "match_text", "fuzzy"]


def some_texts(count: int, seed: int) -> list[str | None]:
    choose = random.Random(seed)
    made = [" ".join(choose.choices(WORDS, k=choose.randint(0, 6))) for _ in range(count)]
    return [None if choose.random() < 0.1 else text for text in made]


def by_reading(table: Table, function: str, asked: str, kind: int | None = None) -> list[int]:
    rows = table.read(["_rowid", "body", "kind"]).to_pylist()
    return sorted(
        row["_rowid"] for row in rows if is_match(function, row["body"], asked) and kind in (None, row["kind"])
    )


@pytest.fixture(params=HISTORIES, ids=lambda history: history.__name__)
def table(request, coverage, tmp_path: Path) -> Table:
    fresh = pa.concat_tables([texts(some_texts(12, 2), first=5), texts(some_texts(9, 3), first=60)])
    return request.param(coverage(table_of(tmp_path, texts(some_texts(60, 1))), TEXT), fresh)


@pytest.fixture(params=COVERAGES, ids=lambda coverage: coverage.__name__)
def coverage(request):
    return request.param


@pytest.mark.parametrize("function", FUNCTIONS)
def test_text_function_finds_the_rows_that_reading_every_text_finds(table: Table, function: str):
    for asked in ASKED:
        found = matching_rows(table, TextQuery(function, "body", asked))
        assert found.to_pylist() == by_reading(table, function, asked), asked


def test_text_function_finds_only_rows_for_which_the_predicate_is_true(table: Table):
    with_index = land(stage_index(table, [IndexSpec("kind", IndexKind.BTREE)], STAMP))
    for function in FUNCTIONS:
        for asked_of in (table, with_index):
            found = matching_rows(asked_of, TextQuery(function, "body", "run the fox"), "kind = 1")
            assert found.to_pylist() == by_reading(table, function, "run the fox", kind=1)


def test_text_on_a_branch_is_found_as_written_there_and_on_main_as_before(coverage, tmp_path: Path):
    main = coverage(table_of(tmp_path, texts(some_texts(30, 4))), TEXT)
    branch, fresh = forked(main), texts(some_texts(9, 5), first=25)
    for history in HISTORIES:
        branch = history(branch, fresh)
        for function in FUNCTIONS:
            for table in (main, branch):
                found = matching_rows(table, TextQuery(function, "body", "run the fox"))
                assert found.to_pylist() == by_reading(table, function, "run the fox"), history.__name__


def test_text_index_is_asked_for_the_rows_it_covers_and_only_the_others_are_read(tmp_path: Path, monkeypatch):
    table = partly_indexed(table_of(tmp_path, texts(["red fox", "blue fox", "a fox"])), TEXT)
    read: list[str] = []
    monkeypatch.setattr(
        text_module, "matches", lambda query, found: read.extend(found.to_pylist()) or matches(query, found)
    )
    assert len(matching_rows(table, TextQuery("search", "body", "foxes"))) == 3
    assert read == ["a fox"]


def test_text_in_rows_added_after_the_index_is_found_with_its_stems(tmp_path: Path):
    table = indexed(table_of(tmp_path, texts(["red fox"])), TEXT)
    table = land(stage_append(table, texts(["blue foxes"], first=1), STAMP))
    assert len(text_coverage(table, "body")) == 1
    assert len(matching_rows(table, TextQuery("search", "body", "fox"))) == 2


def test_text_index_that_an_overwrite_took_away_is_not_asked(tmp_path: Path):
    table = land(stage_overwrite(indexed(table_of(tmp_path, texts(["red fox"])), TEXT), texts(["blue foxes"]), STAMP))
    assert text_coverage(table, "body") == set()
    assert len(matching_rows(table, TextQuery("search", "body", "blue fox"))) == 1


@pytest.mark.parametrize(
    ("function", "text", "asked", "expected"),
    [
        ("search", "The quick brown foxes", "FOX", True),
        ("search", "The quick brown foxes", "wolf fox", True),
        ("search", "The quick brown foxes", "the", False),
        ("search", "The quick brown foxes", "qui", False),
        ("search", "café", "cafe", False),
        ("search", "CAFÉ", "café", True),
        ("search", "O'Neil's boat", "neil", True),
        ("search", "1,234 items", "234", True),
        ("search", "東京 タワー", "東京", True),
        ("search", "a" * 60, "a" * 60, True),
        ("match_text", "quick brown foxes", "brown fox", True),
        ("match_text", "quick brown foxes", "fox brown", False),
        ("match_text", "quick brown foxes", "quick fox", False),
        ("match_text", "fox and the dog", "fox dog", True),
        ("match_text", "fox dog", "fox and the dog", True),
        ("match_text", "fox fox dog", "fox dog", True),
        ("match_text", "anything", "the", False),
        ("fuzzy", "the quick brown fox", "quikc", True),
        ("fuzzy", "elephants", "elephant", True),
        ("fuzzy", "elephants", "elephat", True),
        ("fuzzy", "elephants", "lephan", False),
        ("fuzzy", "ÉLÉPHANT", "éléphent", True),
        ("fuzzy", "", "fox", False),
        ("fuzzy", "fox", "", False),
        ("fuzzy", "anything", "...", False),
    ],
)
def test_text_function_means_what_its_definition_says(function: str, text: str, asked: str, expected: bool):
    assert matches(TextQuery(function, "body", asked), pa.array([text])).to_pylist() == [expected]


@pytest.mark.parametrize("edits", [0, 1, 2, 3])
def test_text_within_edits_follows_the_number_that_is_given(edits: int):
    column = pa.array(["kitten", "kittens", "sitten", "sitting", "mitigate"])
    found = matches(TextQuery("fuzzy", "body", "kitten", edits), column).to_pylist()
    assert found == [is_match("fuzzy", text, "kitten", edits) for text in column.to_pylist()]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_text_that_is_null_or_asked_nothing_never_matches(function: str):
    column = pa.chunked_array([["fox", None, ""], [None]])
    assert matches(TextQuery(function, "body", "fox"), column).to_pylist() == [True, False, False, False]
    assert (
        matches(TextQuery(function, "body", " the " if function != "fuzzy" else " "), column).to_pylist() == [False] * 4
    )
    assert matches(TextQuery(function, "body", "fox"), pa.array([], pa.string())).to_pylist() == []


phrases = st.lists(st.sampled_from(["fox", "foxes", "the", "run", "é"]), max_size=6).map(" ".join)


@settings(max_examples=150, deadline=None)
@given(st.lists(phrases | st.none(), max_size=8), phrases, st.sampled_from(FUNCTIONS))
def test_text_matches_are_those_of_a_reading_of_each_text(bodies: list[str | None], asked: str, function: str):
    found = matches(TextQuery(function, "body", asked), pa.array(bodies, pa.string())).to_pylist()
    assert found == [is_match(function, text, asked) for text in bodies]


def test_texts_in_many_pieces_match_as_in_one(monkeypatch):
    bodies = some_texts(80, 9)
    monkeypatch.setattr("omnigraph.engine.read.search.tokens._PIECE_BYTES", 64)
    column = pa.chunked_array([bodies[:33], bodies[33:]])
    found = matches(TextQuery("match_text", "body", "fox run"), column).to_pylist()
    assert found == [is_match("match_text", text, "fox run") for text in bodies]
    assert any(found)
