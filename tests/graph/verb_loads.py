"""What a load means, as plain dictionaries: three modes, and the rows a quarantine leaves out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from verb_model import AGE_MAX, EDGES, ENDS, NEW, NODES, Content, Row, copied, holds


@dataclass(frozen=True)
class Line:
    """A node or edge of the input; an edge without id gets one of its own. `garbled`: a number is given as a text."""

    number: int
    type_: str
    id_: str | None
    values: Row
    garbled: bool = False

    @property
    def key(self) -> tuple[str, str]:
        return self.type_, self.id_ or f"{NEW}line-{self.number}"

    def told(self) -> dict[str, Any]:
        names = NODES.get(self.type_) or EDGES[self.type_]
        cells = (self.id_, *self.values) if self.type_ in NODES else self.values
        data = dict(zip(names, cells, strict=True))
        if self.garbled:
            data[{"Person": "age", "Team": "size"}.get(self.type_, "since")] = "old"
        if self.type_ in NODES:
            return {"type": self.type_, "data": data}
        ends = {name: data.pop(name) for name in ("from", "to")}
        return {"edge": self.type_, **ends, "data": data if self.id_ is None else {**data, "id": self.id_}}


def ndjson(lines: Iterable[Line]) -> str:
    return "".join(json.dumps(line.told(), ensure_ascii=False) + "\n" for line in lines)


@dataclass
class Loaded:
    """What a load makes of a content. `refused_ids` is true when ids that are stored already are all that is wrong."""

    before: Content
    mode: str
    lines: list[Line]
    quarantine: bool
    rejected: list[Line] = field(default_factory=list)
    merged: int = 0
    refused_ids: bool = False

    def outcome(self) -> Content | None:
        """The content afterwards; None when nothing is written."""
        self._reject(line for line in self.lines if line.garbled)
        if self.mode == "merge":
            last = {line.key: line for line in self.lines}
            self.merged = len(self.lines) - len(last)
            self.lines = [line for line in self.lines if last[line.key] is line]
        repeated = self._repeated(EDGES)
        taken = [line for line in self.lines if self.mode == "append" and line.key[1] in self.before[line.type_]]
        self.refused_ids = bool(taken) and not repeated and not self.rejected and not self.quarantine
        self._reject([*repeated, *taken])
        self._reject(line for line in self.lines if line.type_ == "Person" and not _in_range(line.values[0]))
        while self._reject([*self._repeated(NODES), *self._clashing()]):
            pass
        if not self._leave_out_edges_of_rejected_nodes() or (self.rejected and not self.quarantine):
            return None
        after = self._applied()
        return after if holds(self.before, after) else None

    @property
    def changes_nothing(self) -> bool:
        return not self.lines

    def _reject(self, wrong: Iterable[Line]) -> bool:
        found = {line.number: line for line in wrong}
        self.rejected += found.values()
        self.lines = [line for line in self.lines if line.number not in found]
        return bool(found)

    def _repeated(self, types: Iterable[str]) -> list[Line]:
        times = Counter(line.key for line in self.lines)
        return [line for line in self.lines if line.type_ in types and self.mode != "merge" and times[line.key] > 1]

    def _clashing(self) -> list[Line]:
        """New people whose email another new one has, or a stored one that stays as it is."""
        new = [line for line in self.lines if line.type_ == "Person" and line.values[1] is not None]
        replaced = {line.id_ for line in self.lines if line.type_ == "Person"}
        kept = [] if self.mode == "overwrite" else [r[1] for i, r in self.before["Person"].items() if i not in replaced]
        held = Counter([*kept, *(line.values[1] for line in new)])
        return [line for line in new if held[line.values[1]] > 1]

    def _leave_out_edges_of_rejected_nodes(self) -> bool:
        """False when an edge has an end that nobody supplied."""
        nodes, refused = self._applied(), {(line.type_, line.id_) for line in self.rejected if line.type_ in NODES}
        orphans = []
        for line in self.lines:
            ends = [*zip(ENDS.get(line.type_, ()), line.values, strict=False)]
            missing = [(node, end) for node, end in ends if end not in nodes[node]]
            if any(end not in refused for end in missing):
                return False
            orphans += [line] if missing else []
        self._reject(orphans)
        return True

    def _applied(self) -> Content:
        after = copied(self.before)
        if self.mode == "overwrite":
            after |= {line.type_: {} for line in self.lines}
        for line in self.lines:
            after[line.type_][line.key[1]] = line.values
        return after


def _in_range(age: int | None) -> bool:
    return age is None or 0 <= age <= AGE_MAX
