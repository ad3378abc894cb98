"""The tables that lie beside a grammar are those of the grammar."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import orjson
import pytest
from lark import Lark
from lark.exceptions import UnexpectedToken

from omnigraph.base.errors import ParseError
from omnigraph.lang import grammars
from omnigraph.lang.gq.assemble import Assembler as GqAssembler
from omnigraph.lang.gq.lexer import GqLexer
from omnigraph.lang.grammars import LANGUAGES, TABLES, made, parser_of, tables_of
from omnigraph.lang.pg.assemble import Assembler as PgAssembler
from omnigraph.lang.pg.lexer import PgLexer

PARTS = {"omnigraph.lang.gq": (GqLexer, GqAssembler), "omnigraph.lang.pg": (PgLexer, PgAssembler)}
FIXTURES = Path(__file__).parents[1]
TEXTS = {
    "omnigraph.lang.gq": [path.read_text(encoding="utf-8") for path in sorted(FIXTURES.rglob("*.gq"))],
    "omnigraph.lang.pg": [
        "node Person { name: String @key age: I32? }\nedge Knows: Person -> Person { since: Date? }",
        "interface Named { name: String }\nnode City implements Named { name: String @key kind: enum(a, b)? @index }",
        "node Person { name String }",
        "edge: Person -> { }",
    ],
}


def answer(parser: Lark, text: str) -> object:
    """The tree, or where and at what the parser stopped, and what it would have taken there."""
    try:
        return parser.parse(text)
    except UnexpectedToken as error:
        return error.token.type, error.line, error.column, error.accepts or error.expected
    except ParseError as error:
        return str(error)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_tables_are_those_of_the_grammar_beside_them(language):
    """If this fails after a change of a grammar: python -m omnigraph.lang.grammars."""
    grammar = files(language).joinpath("grammar.lark").read_text(encoding="utf-8")
    written = orjson.loads(files(language).joinpath(TABLES).read_bytes())
    assert written["made_of"] == orjson.loads(tables_of(grammar))["made_of"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_parser_from_tables_answers_like_one_from_the_grammar(language):
    lexer, assembler = PARTS[language]
    grammar = files(language).joinpath("grammar.lark").read_text(encoding="utf-8")
    quick, slow = parser_of(language, lexer, assembler()), made(grammar, lexer, assembler())
    assert len(TEXTS[language]) > 3
    for text in TEXTS[language]:
        assert answer(quick, text) == answer(slow, text)


def test_tables_of_another_release_of_lark_are_not_used(monkeypatch):
    called = []
    monkeypatch.setattr(grammars.lark, "__version__", "0.0.1")
    monkeypatch.setattr(grammars, "made", lambda *given: called.append(given) or made(*given))
    assert parser_of("omnigraph.lang.pg", PgLexer, PgAssembler()).parse(TEXTS["omnigraph.lang.pg"][0])
    assert called
