"""Parsers of our two languages. Working out their tables takes longer than most queries, so they lie beside them.

Holds for every parser: it answers as one made from `grammar.lark` does. Tables of another grammar, or of another
release of Lark, are not used. `python -m omnigraph.lang.grammars` writes them anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import lark
import orjson
from lark import Lark, Transformer
from lark.exceptions import UnexpectedToken
from lark.grammar import Rule
from lark.lexer import Lexer, LexerState, TerminalDef, Token
from lark.parsers.lalr_analysis import Reduce, Shift

from omnigraph.base.errors import ParseError

TABLES = "grammar.json"
_SORTED = orjson.OPT_NON_STR_KEYS | orjson.OPT_SORT_KEYS
LANGUAGES = ("omnigraph.lang.gq", "omnigraph.lang.pg")
_Tree = TypeVar("_Tree")


def parser_of(package: str, lexer: type[Lexer], transformer: Transformer[Any, Any]) -> Lark:
    grammar = _text(package, "grammar.lark")
    tables = orjson.loads(_text(package, TABLES))
    if tables["made_of"] != _made_of(grammar):
        return made(grammar, lexer, transformer)
    data = tables["data"]
    data["options"]["lexer"] = data["parser"]["lexer_conf"]["lexer_type"] = lexer
    load: Any = Lark._load_from_dict
    parser: Lark = load(data, _numbered(tables["memo"]), transformer=transformer)
    rules = {named["@"]: rule for named, rule in zip(data["rules"], parser.rules, strict=True)}
    machine: Any = parser.parser.parser
    machine._parse_table.states = _Moves(tables["moves"], data["parser"]["parser"]["tokens"], rules)
    return parser


class _Moves(dict[int, dict[str, tuple[Any, Any]]]):
    """What a parser does in each of its states. A text leads through few of them, so each is read when it is met."""

    def __init__(self, moves: list[str], tokens: dict[str, str], rules: dict[int, Rule]) -> None:
        self._moves, self._tokens, self._rules = moves, tokens, rules

    def __missing__(self, state: int) -> dict[str, tuple[Any, Any]]:
        read = orjson.loads(self._moves[state])
        found = {
            self._tokens[token]: (Reduce, self._rules[to["@"]]) if reduces else (Shift, to)
            for token, (reduces, to) in read.items()
        }
        self[state] = found
        return found


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
    states, data["parser"]["parser"]["states"] = data["parser"]["parser"]["states"], {}
    moves = [orjson.dumps(states[state], option=_SORTED).decode() for state in range(len(states))]
    tables = {"made_of": _made_of(grammar), "data": data, "memo": memo, "moves": moves}
    return orjson.dumps(tables, option=_SORTED) + b"\n"


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
    return _place(package, name).read_text(encoding="utf-8")


def _place(package: str, name: str) -> Path:
    """Both languages lie beside this file; asking the import system for them takes longer than reading them."""
    return Path(__file__).parent / package.rpartition(".")[2] / name


if __name__ == "__main__":
    for language in LANGUAGES:
        _place(language, TABLES).write_bytes(tables_of(_text(language, "grammar.lark")))
