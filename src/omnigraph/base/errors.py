"""Every error a user can meet, and the one base class of them all.

Holds for each concrete error:
  1. It has typed fields, a stable `code`, a `kind` the edges translate, and a hint: what to do now.
  2. It survives pickling, so it crosses process borders unchanged.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar


class Kind(Enum):
    """What an error means to a caller; each edge has one table from kind to its own code."""

    BAD_INPUT = "bad_input"
    NOT_FOUND = "not_found"
    RECLAIMED = "reclaimed"
    DENIED = "denied"
    CONFLICT = "conflict"
    PRECONDITION = "precondition"
    IN_DOUBT = "in_doubt"
    UNAVAILABLE = "unavailable"
    LIMIT = "limit"
    INTERNAL = "internal"


def _rebuild(cls: type[OmniError], state: dict[str, Any]) -> OmniError:
    error = cls.__new__(cls)
    error.__dict__.update(state)
    return error


class OmniError(Exception):
    """The base of every error OmniGraph raises on purpose."""

    code: ClassVar[str] = "internal"
    kind: ClassVar[Kind] = Kind.INTERNAL
    hint: str = ""

    def describe(self) -> str:
        """The one-line text of the error, without the hint."""
        raise AssertionError(f"{type(self).__name__} does not describe itself")

    def details(self) -> dict[str, Any]:
        """The typed fields, for programs."""
        if not dataclasses.is_dataclass(self):
            return {}
        named = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return {k: v for k, v in named.items() if k not in ("text", "hint", "excerpt")}

    @property
    def __notes__(self) -> list[str]:  # type: ignore[override]
        """What Python prints below a traceback: the hint, then what was added."""
        return [*([f"hint: {self.hint}"] if self.hint else []), *self.__dict__.get("_added_notes", ())]

    def add_note(self, note: str) -> None:
        self.__dict__.setdefault("_added_notes", []).append(note)

    def __str__(self) -> str:
        return self.describe()

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), dict(self.__dict__))


@dataclass(eq=False)
class _Stated(OmniError):
    """An error whose text is given where it is raised."""

    text: str
    hint: str = ""

    def describe(self) -> str:
        return self.text


@dataclass(eq=False)
class SourceError(_Stated):
    """The text of a schema or query is wrong at one place."""

    line: int | None = None
    column: int | None = None
    file: str | None = None
    excerpt: tuple[str, ...] = ()
    """The line in question and a mark below its place, for whoever has the text at hand."""
    prefix: ClassVar[str] = ""
    kind: ClassVar[Kind] = Kind.BAD_INPUT

    def describe(self) -> str:
        placed = f"{self.place()}{self.text}"
        return f"{self.prefix}: {placed}" if self.prefix else placed

    def place(self) -> str:
        """`file:line:column: ` as far as it is known."""
        if self.line is None:
            return ""
        return f"{self.file + ':' if self.file else ''}{self.line}:{self.column or 1}: "


class ParseError(SourceError):
    code: ClassVar[str] = "parse_error"
    prefix: ClassVar[str] = "parse error"


class CatalogError(SourceError):
    code: ClassVar[str] = "catalog_error"
    prefix: ClassVar[str] = "catalog error"


@dataclass(eq=False)
class TypeCheckError(SourceError):
    """A query that parses does not fit the schema; `rule` is the code of the rule it breaks."""

    rule: str = ""
    code: ClassVar[str] = "type_error"
    prefix: ClassVar[str] = "type error"

    def describe(self) -> str:
        return f"{self.prefix}: {self.rule}: {self.place()}{self.text}"


@dataclass(eq=False)
class UnsupportedSchemaChange(SourceError):
    """The desired schema asks for something no step can do; nothing was written."""

    entity: str = ""
    lint_code: str | None = None
    code: ClassVar[str] = "unsupported_change"

    def describe(self) -> str:
        return f"{self.place()}unsupported change on {self.entity}: {self.text}"


class BadRequest(_Stated):
    code: ClassVar[str] = "bad_request"
    kind: ClassVar[Kind] = Kind.BAD_INPUT


@dataclass(eq=False)
class BreaksQueries(BadRequest):
    """Stored queries that a new schema would break, each as `{file, line, query, message}`."""

    text: str = ""
    hint: str = "Nothing was written. Change the queries together with the schema, or keep what they use."
    broken: tuple[dict[str, Any], ...] = ()

    def describe(self) -> str:
        several = f"{len(self.broken)} stored queries" if len(self.broken) > 1 else "1 stored query"
        return f"the new schema breaks {several}: {self.broken[0]['message']}"


@dataclass(eq=False)
class InvalidData(OmniError):
    """Rows of a load or mutation break the rules; the first stage that found something lists what it found.

    Each violation is `{file, line, type, property, reason, message}`; rows of a view have no line but their values as
    `row`. `total` counts those that are not listed too.
    """

    violations: tuple[dict[str, Any], ...] = ()
    total: int = 0
    stage: str = ""
    code: ClassVar[str] = "invalid_data"
    kind: ClassVar[Kind] = Kind.BAD_INPUT
    hint: str = "Nothing was written. Correct the rows, or load with --on-error quarantine to set them aside."

    def describe(self) -> str:
        if not self.violations:
            return f"{self.total} violations"
        first = self.violations[0]
        line = f":{first['line']}" if first.get("line") is not None else ""
        place = f"{first['file']}{line}: " if first.get("file") else ""
        rest = f" (and {self.total - 1} more)" if self.total > 1 else ""
        return f"{place}{first['message']}{rest}"


class NotFound(_Stated):
    code: ClassVar[str] = "not_found"
    kind: ClassVar[Kind] = Kind.NOT_FOUND


class Conflict(_Stated):
    """Somebody else was first, or the rows disagree; nothing was written."""

    code: ClassVar[str] = "conflict"
    kind: ClassVar[Kind] = Kind.CONFLICT


@dataclass(eq=False)
class ExpectedVersionMismatch(Conflict):
    """Another commit reached the table after this write was prepared."""

    text: str = ""
    hint: str = "Nothing was written. Read the branch again and retry."
    table_key: str = ""
    expected: int = 0
    actual: int = 0

    def describe(self) -> str:
        return f"{self.table_key} is at version {self.actual}, this write was prepared on {self.expected}"


@dataclass(eq=False)
class KeyConflict(Conflict):
    """A strict insert met an id that the table already has."""

    text: str = ""
    hint: str = "Nothing was written. Use an upsert to replace rows, or choose other ids."
    table_key: str = ""
    ids: tuple[str, ...] = ()
    count: int = 0

    def describe(self) -> str:
        shown = ", ".join(repr(i) for i in self.ids[:5])
        more = f" and {self.count - 5} more" if self.count > 5 else ""
        return f"{self.table_key} already has id {shown}{more}"


@dataclass(eq=False)
class MergeConflicts(Conflict):
    """Every conflict of a merge or a revert, sorted by table key, id and kind.

    Each is `{table_key, row_id, kind, message}`, with `properties` where only some of a row are in dispute.
    """

    text: str = ""
    hint: str = (
        "Nothing was written. See both sides with --dry-run; decide with --strategy ours|theirs, or choice by choice: "
        "--dry-run --resolve FILE makes a file to fill in."
    )
    merge_conflicts: tuple[dict[str, Any], ...] = ()

    def describe(self) -> str:
        named = [f"{c['table_key']} '{c['row_id']}' ({c['kind']})" for c in self.merge_conflicts[:3]]
        more = len(self.merge_conflicts) - len(named)
        return f"merge conflicts: {', '.join(named)}" + (f"; and {more} more" if more else "")


@dataclass(eq=False)
class RowLevelCasContention(Conflict):
    """The publish lost its compare-and-swap too many times in a row."""

    text: str = ""
    hint: str = "Nothing was written. Many writers publish to this branch; retry."
    branch: str = ""
    attempts: int = 0

    def describe(self) -> str:
        return f"branch '{self.branch}': the manifest moved during each of {self.attempts} publish attempts"


@dataclass(eq=False)
class GraphMoved(Conflict):
    """A branch records its base at another place: the graph was moved or copied."""

    text: str = ""
    hint: str = "A clone of it has every branch; put back to its old place it has them too. Main works here as it is."
    branch: str = ""
    recorded_base: str = ""
    root: str = ""

    def describe(self) -> str:
        return (
            f"graph was moved or copied; run omnigraph clone (branch '{self.branch}' was recorded at "
            f"{self.recorded_base}, the graph is at {self.root})"
        )


@dataclass(eq=False)
class Drift(OmniError):
    """A table's head is ahead of its pin and no sidecar explains it."""

    table_key: str
    branch: str
    pinned: int
    head: int
    code: ClassVar[str] = "drift"
    kind: ClassVar[Kind] = Kind.CONFLICT
    hint: str = "Another tool wrote to this table. Nothing was written. Run omnigraph repair."

    def describe(self) -> str:
        return f"{self.table_key} on branch '{self.branch}' has head {self.head} ahead of its pin {self.pinned}"


@dataclass(eq=False)
class Reclaimed(OmniError):
    """An old version was removed by cleanup."""

    table_key: str
    version: int
    code: ClassVar[str] = "reclaimed"
    kind: ClassVar[Kind] = Kind.RECLAIMED
    hint: str = "Cleanup removed it; a newer commit or a tag is still readable."

    def describe(self) -> str:
        return f"historical version {self.version} of {self.table_key} was reclaimed"


@dataclass(eq=False)
class ChangeFeedGap(OmniError):
    """A feed cannot go on: cleanup removed what the next commit would be compared with."""

    first_unreadable_commit_id: str
    cursor: str | None = None
    code: ClassVar[str] = "change_feed_gap"
    kind: ClassVar[Kind] = Kind.RECLAIMED
    hint: str = "Take a baseline (omnigraph changes baseline) and poll on from its resume_cursor."

    def describe(self) -> str:
        return f"the changes of commit {self.first_unreadable_commit_id} were reclaimed"


@dataclass(eq=False)
class ChangeDiffRefusal(Conflict):
    """A commit that cannot be told as changes of entities; `reason` is parentless_commit or schema_boundary."""

    text: str = ""
    hint: str = "Compare other commits with omnigraph branch diff, or export the commit."
    reason: str = ""
    graph_commit_id: str = ""
    type_name: str | None = None

    def describe(self) -> str:
        if self.reason == "parentless_commit":
            return f"commit {self.graph_commit_id} is the first one: there is nothing to compare it with"
        return f"commit {self.graph_commit_id} changed the schema of {self.type_name}"


@dataclass(eq=False)
class PreconditionFailed(OmniError):
    """The branch head is not the commit the caller required."""

    expected: str
    actual: str
    code: ClassVar[str] = "precondition_failed"
    kind: ClassVar[Kind] = Kind.PRECONDITION
    hint: str = "Nothing was written. Read the branch again and decide."

    def describe(self) -> str:
        return f"the branch head is {self.actual}, the write required {self.expected}"


class PolicyDenied(_Stated):
    code: ClassVar[str] = "policy_denied"
    kind: ClassVar[Kind] = Kind.DENIED


@dataclass(eq=False)
class LimitExceeded(_Stated):
    limit: str = ""
    value: int = 0
    code: ClassVar[str] = "limit_exceeded"
    kind: ClassVar[Kind] = Kind.LIMIT


@dataclass(eq=False)
class Unavailable(_Stated):
    """The store, the disk, Java or a provider is not there; nothing happened."""

    what: str = ""
    code: ClassVar[str] = "unavailable"
    kind: ClassVar[Kind] = Kind.UNAVAILABLE


@dataclass(eq=False)
class RecoveryRequired(OmniError):
    """The outcome of a write is in doubt until recovery has run."""

    operation_id: str
    reason: str = ""
    code: ClassVar[str] = "recovery_required"
    kind: ClassVar[Kind] = Kind.IN_DOUBT
    hint: str = "Open the graph read-write or refresh, then ask for the operation's outcome by its id."

    def describe(self) -> str:
        why = f": {self.reason}" if self.reason else ""
        return f"the outcome of operation {self.operation_id} is in doubt{why}"


class InternalError(_Stated):
    code: ClassVar[str] = "internal"
    kind: ClassVar[Kind] = Kind.INTERNAL
