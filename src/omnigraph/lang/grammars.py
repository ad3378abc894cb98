"""Parsers of our two languages. Working out their tables takes longer than most queries, so they lie beside them.

Holds for every parser: it answers as one made from `grammar.lark` does. Tables of another grammar, or of another
release of Lark, are not used. `python -m omnigraph.lang.grammars` writes them anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

import lark
import orjson
from lark import Lark, Transformer
from lark.exceptions import UnexpectedToken
from lark.grammar import Rule
from lark.lexer import Lexer, LexerState, TerminalDef, Token

from omnigraph.base.errors import ParseError

TABLES = "grammar.json"
LANGUAGES = ("omnigraph.lang.gq", "omnigraph.lang.pg")
_Tree = TypeVar("_Tree")


def parser_of(package: str, lexer: type[Lexer], transformer: Transformer[Any, Any]) -> Lark:
    grammar = _text(package, "grammar.lark")
    tables = orjson.loads(_text(package, TABLES))
    if tables["made_of"] != _made_of(grammar):
        return made(grammar, lexer, transformer)
    data = tables["data"]
    data["options"]["lexer"] = data["parser"]["lexer_conf"]["lexer_type"] = lexer
    steps = data["parser"]["parser"]
    steps["tokens"] = _numbered(steps["tokens"])
    steps["states"] = {state: _numbered(moves) for state, moves in _numbered(steps["states"]).items()}
    load: Any = Lark._load_from_dict
    parser: Lark = load(data, _numbered(tables["memo"]), transformer=transformer)
    return parser


def made(grammar: str, lexer: type[Lexer], transformer: Transformer[Any, Any] | None) -> Lark:
    return Lark(grammar, parser="lalr", lexer=lexer, transformer=transformer, maybe_placeholders=True)


class _NoLexer(Lexer):
    """Stands in while only the tables are of interest."""

    def __init__(self, _conf: Any) -> None: ...

    def lex(self, lexer_state: LexerState, parser_state: Any) -> Iterator[Token]:
        return iter(())


def tables_of(grammar: str) -> bytes:
    data, memo = made(grammar, _NoLexer, None).memo_serialize([TerminalDef, Rule])
    data["options"]["lexer"] = data["parser"]["lexer_conf"]["lexer_type"] = None
    tables = {"made_of": _made_of(grammar), "data": data, "memo": memo}
    return orjson.dumps(tables, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_SORT_KEYS) + b"\n"


def parsed(parser: Lark, text: str, tree: type[_Tree], explain: Callable[[UnexpectedToken, str], ParseError]) -> _Tree:
    """The tree of a whole text."""
    try:
        found = parser.parse(text)
    except UnexpectedToken as unexpected:
        raise explain(unexpected, text) from None
    assert isinstance(found, tree)
    return found


def _made_of(grammar: str) -> str:
    return f"lark {lark.__version__}, {hashlib.sha256(grammar.encode()).hexdigest()}"


def _numbered(held: dict[str, Any]) -> dict[int, Any]:
    """JSON has only texts as keys; the tables have numbers."""
    return {int(key): value for key, value in held.items()}


def _text(package: str, name: str) -> str:
    return files(package).joinpath(name).read_text(encoding="utf-8")


if __name__ == "__main__":
    for language in LANGUAGES:
        Path(str(files(language).joinpath(TABLES))).write_bytes(tables_of(_text(language, "grammar.lark")))
