"""What a SQL text may say: one SELECT over the views of the graph.

Holds for every text that passes:
  1. It is one statement that reads; no part of it, however deep, writes, describes or sets anything.
  2. Every table it names is a view of the graph or one of its own WITH tables.
  3. Every table function makes rows of its arguments; no function tells about the process or the database.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

import orjson

from omnigraph.base.errors import BadRequest
from omnigraph.engine.read.sql_database import Database
from omnigraph.lang.diagnostics import did_you_mean

_ONLY_SELECT = "omnigraph sql runs one SELECT or WITH statement over one snapshot"
_NODES = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"})
_TABLE_FUNCTIONS = frozenset({"range", "generate_series", "unnest", "json_each", "json_tree"})
_HARMLESS = frozenset(
    {"current_date", "current_time", "current_timestamp", "current_localtime", "current_localtimestamp", "pg_typeof"}
)
_TELLING_PREFIXES = ("current_", "duckdb_", "has_", "inet_", "pg_", "pragma_", "json_serialize", "json_deserialize")
_TELLING = frozenset(
    {
        "col_description",
        "currval",
        "format_pg_type",
        "get_block_size",
        "getenv",
        "getvariable",
        "in_search_path",
        "index_key",
        "json_execute_serialized_sql",
        "nextval",
        "obj_description",
        "parse_duckdb_log_message",
        "session_user",
        "setseed",
        "setval",
        "shobj_description",
        "sleep_ms",
        "txid_current",
        "user",
        "version",
        "write_log",
    }
)
_FORMATS = frozenset({"printf", "format"})
_WIDE = re.compile(r"\d{5}|\*|:[^}]*\{")
# DuckDB's own views; a WITH table of such a name would make the name allowed everywhere.
_SYSTEM_NAMES = ("duckdb_", "pg_", "pragma_", "sqlite_")
_NOWHERE = (1 << 64) - 1
_LISTED_MAX = 20


@dataclass(eq=False)
class SqlError(BadRequest):
    """A SQL text cannot be run; the position is where DuckDB or our check stopped."""

    line: int | None = None
    column: int | None = None
    code: ClassVar[str] = "sql_error"

    def describe(self) -> str:
        place = "" if self.line is None else f"{self.line}:{self.column}: "
        return f"sql: {place}{self.text}"


def sql_error(sql: str, text: str, hint: str = "", offset: int | None = None) -> SqlError:
    """`offset` counts bytes of the text, as DuckDB does."""
    if offset is None or not 0 <= offset <= len(sql.encode()):
        return SqlError(text, hint)
    before = sql.encode()[:offset].decode(errors="replace")
    return SqlError(text, hint, before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1)


def check(database: Database, sql: str, views: Sequence[str]) -> list[str]:
    """Which of the views the text names; a text that is not one harmless SELECT is refused."""
    if "\x00" in sql:
        raise SqlError("the text holds a NUL character")
    [(text,)] = database.connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [sql]).fetchall()
    try:
        told = orjson.loads(text)
    except ValueError:
        raise SqlError("the statement is nested too deeply", "Use WITH for its parts.") from None
    if told["error"]:
        _refuse_unread(sql, told)
    if not told["statements"]:
        raise SqlError("there is no statement", f"{_ONLY_SELECT}.")
    if len(told["statements"]) > 1:
        raise SqlError(f"there are {len(told['statements'])} statements", f"{_ONLY_SELECT}.")
    return _Checker(sql, views).check(told["statements"][0])


def _refuse_unread(sql: str, told: dict[str, Any]) -> NoReturn:
    if told["error_type"] == "parser":
        position = told.get("position")
        raise sql_error(sql, told["error_message"], offset=int(position) if position else None)
    raise SqlError("only SELECT is allowed", f"{_ONLY_SELECT}.")


class _Checker:
    def __init__(self, sql: str, views: Sequence[str]) -> None:
        self._sql = sql
        self._views = views
        self._own: set[str] = set()
        self._used: dict[str, str] = {}

    def check(self, statement: dict[str, Any]) -> list[str]:
        parts = list(_parts(statement))
        for part in parts:
            for entry in part.get("cte_map", {}).get("map", ()) if isinstance(part.get("cte_map"), dict) else ():
                self._check_name(entry["key"])
        for part in parts:
            self._check(part)
        return list(self._used.values())

    def _check_name(self, name: str) -> None:
        if name.lower().startswith(_SYSTEM_NAMES):
            raise SqlError(f"'{name}' cannot be the name of a WITH table", "Choose another name.")
        self._own.add(name.lower())

    def _check(self, part: dict[str, Any]) -> None:
        kind = part.get("type")
        match kind:
            case "BASE_TABLE":
                self._check_table(part)
            case "TABLE_FUNCTION":
                name = part["function"].get("function_name", "")
                if str(name).lower() not in _TABLE_FUNCTIONS:
                    self._refuse(part, f"the table function '{name}' is not allowed")
            case "SHOW_REF":
                self._refuse(part, "DESCRIBE, SHOW and SUMMARIZE are not allowed", "See omnigraph schema show.")
            case "VALUE_PARAMETER":
                self._refuse(part, "the statement has parameters, which SQL here does not take")
            case str() if kind.endswith("_NODE") and kind not in _NODES:
                self._refuse(part, "only SELECT is allowed")
        if "function_name" in part:
            self._check_function(part)

    def _check_table(self, part: dict[str, Any]) -> None:
        path = part.get("qualified_name", {}).get("path") or [part.get("table_name", "")]
        name = ".".join(path)
        if part.get("schema_name") or part.get("catalog_name") or len(path) > 1:
            self._refuse_table(part, name)
        found = [view for view in self._views if view.lower() == name.lower()]
        if name in found:
            found = [name]
        if not found and name.lower() not in self._own:
            self._refuse_table(part, name)
        for view in found[:1]:
            # DuckDB takes names that differ only in case for the same.
            if len(found) > 1 or self._used.setdefault(view.lower(), view) != view:
                self._refuse(part, f"'{name}' may be several views", "Write it exactly, and only one of them.")

    def _refuse_table(self, part: dict[str, Any], name: str) -> NoReturn:
        meant = did_you_mean(name.rpartition(".")[2], self._views)
        listed = f"There are {', '.join(self._views[:_LISTED_MAX])}." if self._views else "The graph has no types."
        self._refuse(part, f"there is no view '{name}'", meant or listed)

    def _check_function(self, part: dict[str, Any]) -> None:
        name = str(part["function_name"]).lower()
        if part.get("schema") or part.get("catalog"):
            self._refuse(part, f"the function '{name}' must be named without a schema")
        telling = name in _TELLING or (name.startswith(_TELLING_PREFIXES) and name not in _HARMLESS)
        if telling:
            self._refuse(part, f"the function '{name}' is not allowed")
        if name in _FORMATS:
            self._check_format(part, name)

    def _check_format(self, part: dict[str, Any], name: str) -> None:
        """One format can ask for a text of any size, which no limit would stop."""
        given = part.get("arguments") or part.get("children") or [{}]
        first = given[0].get("expression", given[0])
        text = first.get("literal", {}).get("text") if first.get("type") == "VALUE_CONSTANT" else None
        if not isinstance(text, str) or _WIDE.search(text):
            self._refuse(part, f"{name} needs a literal format with widths below 10000")

    def _refuse(self, part: dict[str, Any], text: str, hint: str = "") -> NoReturn:
        offset = part.get("query_location", _NOWHERE)
        placed = None if offset == _NOWHERE else int(offset)
        raise sql_error(self._sql, text, hint or f"{_ONLY_SELECT}, and sees nothing but its views.", placed)


def _parts(statement: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every object of the statement, at any depth."""
    waiting: list[Any] = [statement]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            yield value
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
