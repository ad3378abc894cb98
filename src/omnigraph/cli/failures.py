"""Errors become text, exit codes and HTTP-style bodies here; one table for each."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import typer

from omnigraph.base.errors import (
    BreaksQueries,
    ChangeDiffRefusal,
    ExpectedVersionMismatch,
    GraphMoved,
    InvalidData,
    KeyConflict,
    Kind,
    MergeConflicts,
    OmniError,
    PreconditionFailed,
    SourceError,
    Unavailable,
)
from omnigraph.base.ids import new_ulid

EXIT_USAGE = 2
EXIT_INTERNAL = 70
EXIT_CODES: Mapping[Kind, int] = {
    Kind.BAD_INPUT: 1,
    Kind.NOT_FOUND: 1,
    Kind.RECLAIMED: 1,
    Kind.DENIED: 1,
    Kind.CONFLICT: 3,
    Kind.PRECONDITION: 4,
    Kind.IN_DOUBT: 5,
    Kind.UNAVAILABLE: 6,
    Kind.LIMIT: 7,
    Kind.INTERNAL: EXIT_INTERNAL,
}
# A body names the codes of the HTTP interface, of which there are fewer than errors.
BODY_CODES: Mapping[Kind, str] = {
    Kind.BAD_INPUT: "bad_request",
    Kind.NOT_FOUND: "not_found",
    Kind.RECLAIMED: "reclaimed",
    Kind.DENIED: "forbidden",
    Kind.CONFLICT: "conflict",
    Kind.PRECONDITION: "precondition_failed",
    Kind.IN_DOUBT: "recovery_required",
    Kind.UNAVAILABLE: "unavailable",
    Kind.LIMIT: "limit_exceeded",
    Kind.INTERNAL: "internal",
}
_OWN_BODY_CODES = ("drift", "change_feed_gap")
_NESTED: Mapping[type[OmniError], tuple[str, Callable[[dict[str, Any]], dict[str, Any]]]] = {
    ExpectedVersionMismatch: ("manifest_conflict", dict),
    KeyConflict: ("key_conflict", lambda d: {"table_key": d["table_key"], "id": next(iter(d["ids"]), None), **d}),
    GraphMoved: ("graph_moved", dict),
    PreconditionFailed: ("precondition_failure", dict),
    ChangeDiffRefusal: ("change_diff_refusal", lambda d: {k: v for k, v in d.items() if v is not None}),
}
_NO_COMMAND = re.compile("No such command '([^']+)'")


class UsageMistake(typer.TyperException):
    """The words on the line do not fit together; nothing was looked at yet."""

    exit_code = EXIT_USAGE

    def __init__(self, text: str, hint: str = "") -> None:
        super().__init__(text)
        self.hint = hint


@dataclass(frozen=True)
class Failure:
    """How a command failed, in every form it is told."""

    exit_code: int
    text: str
    hint: str = ""
    body: Mapping[str, Any] = field(default_factory=dict)
    listed: tuple[str, ...] = ()
    """What the text is only the sum of, a line each."""

    @property
    def is_usage(self) -> bool:
        return self.exit_code == EXIT_USAGE


def failure_of(error: BaseException) -> Failure:
    """What to tell about any exception that ended a command."""
    if isinstance(error, typer.TyperException):
        return _usage(error)
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        # Past phase A the commit room answers RecoveryRequired itself, so here nothing has happened.
        error = Unavailable(str(error.strerror), "Free some space and try again.", what="disk")
    if isinstance(error, OmniError) and error.kind is not Kind.INTERNAL:
        text = error.describe()
        body = {"error": text, **_coded(error)}
        return Failure(EXIT_CODES[error.kind], text, error.hint, body, _listed(error))
    return _bug(error)


def _listed(error: OmniError) -> tuple[str, ...]:
    """Every violation or conflict that is known by name, or the line of a source, when that says more than the text."""
    if isinstance(error, SourceError):
        return error.excerpt
    if isinstance(error, BreaksQueries):
        return tuple(str(found["message"]) for found in error.broken) if len(error.broken) > 1 else ()
    if isinstance(error, MergeConflicts):
        return tuple(conflict_line(found) for found in error.merge_conflicts)
    if not isinstance(error, InvalidData) or not error.violations:
        return ()
    if error.total == 1 and not error.violations[0].get("file"):
        return ()
    lines = [_violation(found) for found in error.violations]
    unlisted = error.total - len(lines)
    return (*lines, *([f"and {unlisted} more"] if unlisted else []))


def conflict_line(found: Mapping[str, Any]) -> str:
    disputed = f" [{', '.join(found['properties'])}]" if found.get("properties") else ""
    return f"{found['table_key']} '{found['row_id']}' ({found['kind']}){disputed}: {found['message']}"


def _violation(found: Mapping[str, Any]) -> str:
    line = f":{found['line']}" if found.get("line") is not None else ""
    place = f"{found['file']}{line}" if found.get("file") else "-"
    what = ".".join(str(found[part]) for part in ("type", "property") if found.get(part))
    told = (place, what, str(found["reason"]), str(found["message"]), str(found.get("row") or ""))
    return "  ".join(part for part in told if part)


def _usage(error: typer.TyperException) -> Failure:
    # The parser names the kind of its own error in the middle of the sentence, and sets lists over several lines.
    text = " ".join(error.format_message().replace(": Value error, ", ": ").split())
    hint = getattr(error, "hint", "")
    context = getattr(error, "ctx", None)
    if not hint and context is not None:
        hint = _elsewhere(text, context) or f"See {context.command_path} --help."
    return Failure(error.exit_code, text, hint, {"error": text, "code": "bad_request"})


def _elsewhere(text: str, context: Any) -> str:
    """Where a command is that was looked for in the wrong group, as `merge` is under `branch`."""
    found = _NO_COMMAND.match(text)
    groups = getattr(context.find_root().command, "commands", {})
    paths = [f"omnigraph {g} {found[1]}" for g, group in groups.items() if found and found[1] in _inside(group)]
    return f"Did you mean {' or '.join(paths)}?" if paths else ""


def _inside(group: Any) -> Mapping[str, Any]:
    return getattr(group, "commands", {})


def _coded(error: OmniError) -> dict[str, Any]:
    code = error.code if error.code in _OWN_BODY_CODES else BODY_CODES[error.kind]
    details = error.details()
    for kind, (member, shape) in _NESTED.items():
        if isinstance(error, kind):
            return {"code": code, member: shape(details)}
    return {"code": code, **{name: value for name, value in details.items() if value is not None}}


def _bug(error: BaseException) -> Failure:
    error_id = new_ulid()
    said = str(error).strip().splitlines()
    what = type(error).__name__ + (f": {said[0]}" if said else "")
    text = f"internal error {error_id}: {what} (run again with --debug to see where)"
    body = {"error": f"internal error: {what}", "code": "internal", "error_id": error_id}
    return Failure(EXIT_INTERNAL, text, "", body)
