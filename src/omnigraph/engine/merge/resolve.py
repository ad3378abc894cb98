"""How conflicting rows are decided: by a strategy, by a file of choices, or not at all.

Holds at every return:
  1. A choice decides only a row that conflicts, in the merge of exactly the commits its file was made for.
  2. What was decided, and how, is known afterwards; a conflict that nobody decided is still one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

import orjson

from omnigraph.base.errors import BadRequest, Conflict, Unavailable
from omnigraph.engine.merge.conflicts import MergeConflict
from omnigraph.engine.merge.table import CHOICES, Granularity, Strategy

LISTED_MAX = 1_000
# Every reader of the history reads this too; it is bounded as what users attach to a commit is.
_METADATA_BYTES = 64 * 1024
_HEADS = ("source_commit_id", "target_commit_id", "base_commit_id")
_MEMBERS = frozenset({*_HEADS, "granularity", "choices"})
_ENTRY = frozenset({"table_key", "row_id", "kind", "properties", "base", "ours", "theirs", "choice"})
_ROW = frozenset({"properties", "endpoints"})
_ANOTHER = "Nothing was written. Make another file with --dry-run --resolve and fill in its choices."


@dataclass(frozen=True)
class Given:
    """A row spelled out in the file; `endpoints` may be left out where both sides agree on them."""

    properties: Mapping[str, Any]
    endpoints: Mapping[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        told: dict[str, Any] = {"properties": dict(self.properties)}
        return told if self.endpoints is None else {**told, "endpoints": dict(self.endpoints)}


Choice = str | Given


@dataclass(frozen=True)
class Heads:
    """The three commits a merge is about."""

    source: str
    target: str
    base: str

    def to_json(self) -> dict[str, str]:
        return dict(zip(_HEADS, (self.source, self.target, self.base), strict=True))


@dataclass(frozen=True)
class Decision:
    """How one conflict was settled."""

    table_key: str
    row_id: str
    kind: str
    choice: Choice

    def to_json(self) -> dict[str, Any]:
        chosen = self.choice if isinstance(self.choice, str) else self.choice.to_json()
        return {"table_key": self.table_key, "row_id": self.row_id, "kind": self.kind, "choice": chosen}


def check_options(strategy: str | None, granularity: str) -> None:
    if strategy is not None and strategy not in get_args(Strategy):
        raise BadRequest(f"unknown merge strategy {strategy!r}", "Use ours or theirs.")
    if granularity not in get_args(Granularity):
        raise BadRequest(f"unknown granularity {granularity!r}", "Use row or property.")


@dataclass
class Resolver:
    """Asked about each conflicting row; remembers what it said."""

    strategy: Strategy | None = None
    granularity: Granularity = "row"
    choices: Mapping[tuple[str, str], Choice] = field(default_factory=dict)
    listed: list[Decision] = field(default_factory=list)
    total: int = 0
    _used: set[tuple[str, str]] = field(default_factory=set)

    def choice(self, conflict: MergeConflict) -> Choice | None:
        key = (conflict.table_key, conflict.row_id)
        found = self.choices.get(key, self.strategy)
        if key in self.choices:
            self._used.add(key)
        if found is not None:
            self.total += 1
            if len(self.listed) < LISTED_MAX:
                self.listed.append(Decision(*key, conflict.kind, found))
        return found

    def refuse_unused(self) -> None:
        """A choice that decided nothing was meant for something else."""
        unused = sorted(self.choices.keys() - self._used)
        if unused:
            table_key, row_id = unused[0]
            more = f" (and {len(unused) - 1} more)" if len(unused) > 1 else ""
            raise BadRequest(
                f"the resolution file has a choice for {table_key} '{row_id}', which does not conflict{more}",
                "Nothing was written. Remove it, or make a new file with --dry-run --resolve.",
            )

    def metadata(self) -> dict[str, Any]:
        """What the commit remembers of all this."""
        told: dict[str, Any] = {} if self.strategy is None else {"strategy": self.strategy}
        kept, size = [], 0
        for decision in self.listed:
            entry = decision.to_json()
            size += len(orjson.dumps(entry))
            if size > _METADATA_BYTES:
                break
            kept.append(entry)
        told |= {"granularity": self.granularity, "choices": kept}
        return {**told, "choices_total": self.total} if self.total > len(kept) else told


def read_choices(path: str, heads: Heads, granularity: Granularity) -> dict[tuple[str, str], Choice]:
    """The choices of a resolution file; entries without one are left out."""
    told = _object(path, _loaded(path), "the file", _MEMBERS)
    for name in (*_HEADS, "choices"):
        if name not in told:
            raise _bad(path, f"it has no '{name}'", _ANOTHER)
    if {name: told[name] for name in _HEADS} != heads.to_json():
        raise Conflict(
            "resolution file is for other heads",
            f"Nothing was written. '{path}' was made for other branches, or before {_moved(told, heads)} moved. "
            "Make another file with --dry-run --resolve NEW_FILE; one that is there is never replaced.",
        )
    made_with = told.get("granularity", "row")
    if made_with != granularity:
        hint = f"Nothing was written. Add --granularity {made_with}, or make another file with --dry-run --resolve."
        raise _bad(path, f"was made with --granularity {made_with}, not {granularity}", hint)
    if not isinstance(told["choices"], list):
        raise _bad(path, "'choices' is not a list")
    found: dict[tuple[str, str], Choice] = {}
    for number, entry in enumerate(told["choices"], 1):
        key, choice = _entry(path, number, entry)
        if choice is None:
            continue
        if key in found:
            raise _bad(path, f"choice {number}: {key[0]} '{key[1]}' is chosen twice")
        found[key] = choice
    return found


def write_template(path: str, heads: Heads, granularity: Granularity, choices: Sequence[Mapping[str, Any]]) -> None:
    """A file to fill in; one that is there is never replaced."""
    told = {**heads.to_json(), "granularity": granularity, "choices": [{**c, "choice": None} for c in choices]}
    data = orjson.dumps(told, option=orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY) + b"\n"
    try:
        with open(path, "xb") as file:
            file.write(data)
    except OSError as error:
        raise Unavailable(f"cannot write '{path}': {error.strerror}", "Nothing was merged.", what="file") from error


def is_present(path: str) -> bool:
    return os.path.exists(path)


def _loaded(path: str) -> Any:
    try:
        with open(path, "rb") as file:
            return orjson.loads(file.read())
    except FileNotFoundError as error:
        raise BadRequest(
            f"there is no resolution file '{path}'", "Make one with --dry-run --resolve, fill it in, merge again."
        ) from error
    except OSError as error:
        raise BadRequest(f"cannot read '{path}': {error.strerror}") from error
    except ValueError as error:
        raise _bad(path, f"it is not valid JSON: {error}", "Nothing was written. Correct the file.") from error


def _entry(path: str, number: int, entry: Any) -> tuple[tuple[str, str], Choice | None]:
    place = f"choice {number}"
    told = _object(path, entry, place, _ENTRY)
    key = (told.get("table_key"), told.get("row_id"))
    if not isinstance(key[0], str) or not isinstance(key[1], str):
        raise _bad(path, f"{place} needs 'table_key' and 'row_id'")
    choice = told.get("choice")
    if choice is None or choice in CHOICES:
        return (key[0], key[1]), choice
    if isinstance(choice, str):
        raise _bad(path, f"{place}: unknown choice '{choice}'")
    row = _object(path, choice, f"{place}: 'choice'", _ROW)
    properties = _object(path, row.get("properties"), f"{place}: 'properties'", None)
    ends = row.get("endpoints")
    checked = None if ends is None else _object(path, ends, f"{place}: 'endpoints'", frozenset({"from", "to"}))
    return (key[0], key[1]), Given(properties, checked)


def _object(path: str, value: Any, place: str, members: frozenset[str] | None) -> dict[str, Any]:
    hint = _ANOTHER if place == "the file" else ""
    if not isinstance(value, dict):
        raise _bad(path, f"{place} is not an object", hint)
    unknown = sorted(value.keys() - members) if members is not None else []
    if unknown:
        raise _bad(path, f"{place} has an unknown member '{unknown[0]}'", hint)
    return value


def _moved(told: Mapping[str, Any], heads: Heads) -> str:
    """Which of the two branches has another head than the file says."""
    source, target = told["source_commit_id"] != heads.source, told["target_commit_id"] != heads.target
    return "the source" if source and not target else "the branch merged into" if target and not source else "both"


def _bad(path: str, what: str, hint: str = "") -> BadRequest:
    choices = f"Nothing was written. A choice is {', '.join(map(repr, CHOICES))} or an object with 'properties'."
    return BadRequest(f"resolution file '{path}': {what}", hint or choices)
