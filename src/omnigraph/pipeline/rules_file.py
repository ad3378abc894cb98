"""Files of upkeep rules, read strictly, and the note beside them of when rules for the whole graph last ran."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import ClassVar, cast, get_args

import orjson

from omnigraph.base.clock import duration, iso_us
from omnigraph.base.errors import BadRequest, NotFound
from omnigraph.engine.upkeep.rules import EVERY_BRANCH, WHOLE_GRAPH, Rule, Verb, When
from omnigraph.pipeline.job.problems import PipelineInvalid, Problems
from omnigraph.pipeline.job.tree import Branch, read_tree

_KEYS = ("do", "branches", "when", "keep", "older_than")
_EPOCH, _MICROSECOND = datetime.fromtimestamp(0, UTC), timedelta(microseconds=1)
_WHEN = ("unindexed_rows", "fragments", "every")


@dataclass(eq=False)
class RulesInvalid(PipelineInvalid):
    """A rules file is wrong in one or more places."""

    code: ClassVar[str] = "invalid_rules"
    hint: str = "Nothing was run. Correct the file; --dry-run shows what it would do."


def read_rules(file: str) -> tuple[Rule, ...]:
    """The rules of a file; every problem of it is told at once."""
    try:
        with open(file, encoding="utf-8") as opened:
            text = opened.read()
    except FileNotFoundError:
        raise NotFound(f"rules file '{file}' not found", "Give the path of a file of upkeep rules.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadRequest(f"rules file '{file}' cannot be read: {error}") from error
    problems = Problems(file, RulesInvalid)
    top = read_tree(text, problems, "version and rules")
    found = _rules(top) if top is not None else []
    problems.refuse()
    return tuple(found)


def _rules(top: Branch) -> list[Rule]:
    given = top.members(("version", "rules"), required=("version", "rules"))
    if "version" in given and given["version"].scalar() != "1":
        given["version"].problems.add(given["version"].spot, "wrong_value", "version must be 1")
    counts: dict[str, int] = {}
    found = []
    for item in given["rules"].items() if "rules" in given else []:
        rule = _rule(item, counts)
        found += [] if rule is None else [rule]
    return found


def _rule(item: Branch, counts: dict[str, int]) -> Rule | None:
    given = item.members(_KEYS, required=("do",))
    do = given["do"].one_of(get_args(Verb)) if "do" in given else None
    if do is None:
        return None
    counts[do] = counts.get(do, 0) + 1
    _refuse_unfit(item, given, do)
    branches = tuple(b for one in given["branches"].items() if (b := one.text())) if "branches" in given else ()
    return Rule(
        do if counts[do] == 1 else f"{do}#{counts[do]}",
        cast(Verb, do),
        branches if do in WHOLE_GRAPH or "branches" in given else (EVERY_BRANCH,),
        _when(given["when"], do) if "when" in given else None,
        given["keep"].count() if "keep" in given else None,
        _duration(given["older_than"]) if "older_than" in given else None,
    )


def _refuse_unfit(item: Branch, given: Mapping[str, Branch], do: str) -> None:
    """Members that mean nothing for the verb would be passed over in silence."""
    foreign = {"branches"} if do in WHOLE_GRAPH else set()
    foreign |= set() if do == "cleanup" else {"keep", "older_than"}
    for name in sorted(foreign & set(given)):
        item.problems.add(given[name].spot, "unknown_key", f"'{name}' means nothing for {do}")
    if "branches" in given and given["branches"].is_list and not given["branches"].items():
        told = f"names no branch; leave it out or use '{EVERY_BRANCH}'"
        item.problems.add(given["branches"].spot, "missing_key", told)
    if do == "cleanup" and not {"keep", "older_than"} & set(given):
        item.problems.add(item.spot, "missing_key", "cleanup needs keep, older_than, or both")


def _when(branch: Branch, do: str) -> When:
    given = branch.members(_WHEN)
    if branch.is_mapping and not branch.entries():
        branch.problems.add(branch.spot, "missing_key", f"expects one of {', '.join(_WHEN)}")
    for name in ("unindexed_rows", "fragments"):
        if do in WHOLE_GRAPH and name in given:
            branch.problems.add(given[name].spot, "unknown_key", f"{do} can only wait for 'every'")
    return When(
        given["unindexed_rows"].count() if "unindexed_rows" in given else None,
        given["fragments"].count() if "fragments" in given else None,
        _duration(given["every"]) if "every" in given else None,
    )


def _duration(branch: Branch) -> timedelta | None:
    text = branch.scalar()
    if text is None:
        return None
    try:
        return duration(text)
    except ValueError as error:
        branch.problems.add(branch.spot, "wrong_value", f"{error}, not {text!r}")
        return None


@dataclass(frozen=True)
class RunNotes:
    """`FILE.state.json`: when each rule for the whole graph last ran, by graph and rule."""

    path: str

    @staticmethod
    def beside(file: str) -> RunNotes:
        return RunNotes(f"{file}.state.json")

    def read(self, uri: str) -> dict[str, int]:
        """Microseconds since the epoch, by the names of rules."""
        noted = self._all().get(uri, {})
        try:
            return {name: (datetime.fromisoformat(text) - _EPOCH) // _MICROSECOND for name, text in noted.items()}
        except (TypeError, ValueError, AttributeError) as error:
            raise self._bad(error) from error

    def add(self, uri: str, runs_us: Mapping[str, int]) -> None:
        """Keep these runs beside what was noted; the file is whole at every moment."""
        noted = self._all()
        noted[uri] = {**noted.get(uri, {}), **{name: iso_us(at) for name, at in runs_us.items()}}
        data = orjson.dumps({"version": 1, "graphs": noted}, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS)
        fresh = f"{self.path}.{os.getpid()}.new"
        try:
            with open(fresh, "wb") as opened:
                opened.write(data)
                opened.flush()
                os.fsync(opened.fileno())
            os.replace(fresh, self.path)
        except OSError as error:
            raise BadRequest(f"'{self.path}' cannot be written: {error}", "The rules ran all the same.") from error

    def _all(self) -> dict[str, dict[str, str]]:
        try:
            with open(self.path, "rb") as opened:
                told = orjson.loads(opened.read())
            return dict(told["graphs"])
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise self._bad(error) from error

    def _bad(self, error: Exception) -> BadRequest:
        return BadRequest(
            f"'{self.path}' cannot be understood: {error}", "Remove it; rules with 'every' then count as never run."
        )
