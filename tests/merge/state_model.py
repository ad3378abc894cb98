"""What branches, merges and undoing mean, as plain dictionaries: the oracle of the merge machine.

It knows nothing of tables, versions and engines. A content maps a table to its rows by id; a row is the tuple of its
`COLUMNS`. Contents are never changed in place, so that every commit may keep the one it had.
"""

from __future__ import annotations

import itertools
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

SCHEMA = """
node Person { name: String @key  age: I32?  tags: [String]?  nick: String? @unique  @range(age, 0..9) }
node Team { code: String @key  size: I32? }
edge Knows: Person -> Person { since: I32?  @unique(src, dst) }
edge MemberOf: Person -> Team @card(0..2) { role: String? }
"""
P, T, K, M = "node:Person", "node:Team", "edge:Knows", "edge:MemberOf"
COLUMNS = {
    P: ("age", "tags", "nick"),
    T: ("size",),
    K: ("src", "dst", "since"),
    M: ("src", "dst", "role"),
}
KEYS = {P: "name", T: "code"}
ENDS = {K: (P, P), M: (P, T)}
AGE_MAX, TEAMS_MAX = 9, 2

Row = tuple[Any, ...]
Content = dict[str, dict[str, Row]]
# A conflict as far as everybody must agree on it: table, row, kind, and the properties in dispute.
Dispute = tuple[str, str, str, tuple[str, ...]]
Choose = Callable[[Dispute], str | None]


def empty() -> Content:
    return {key: {} for key in COLUMNS}


def with_rows(content: Content, rows: dict[str, dict[str, Row]], gone: Iterable[tuple[str, str]] = ()) -> Content:
    """The content with some rows put and others removed."""
    after = {key: {**held, **rows.get(key, {})} for key, held in content.items()}
    for key, id_ in gone:
        after[key].pop(id_, None)
    return after


def with_cascades(content: Content) -> Content:
    """Without the edges that miss an end."""
    lost = orphans(content)
    return with_rows(content, {}, lost) if lost else content


def orphans(content: Content) -> list[tuple[str, str]]:
    return [
        (edge, id_)
        for edge, ends in ENDS.items()
        for id_, row in content[edge].items()
        if any(row[place] not in content[node] for place, node in enumerate(ends))
    ]


def violations(content: Content) -> set[tuple[str, str, str]]:
    """Everything that breaks a rule: of rows that clash each one, of a cardinality the source."""
    found = {(edge, id_, "orphan_edge") for edge, id_ in orphans(content)}
    for key, columns in ((P, (2,)), (K, (0, 1))):
        groups: dict[tuple[Any, ...], list[str]] = {}
        for id_, row in content[key].items():
            groups.setdefault(tuple(row[c] for c in columns), []).append(id_)
        clashing = [ids for values, ids in groups.items() if len(ids) > 1 and None not in values]
        found |= {(key, id_, "unique_violation") for ids in clashing for id_ in ids}
    sources = Counter(row[0] for row in content[M].values())
    found |= {(M, source, "cardinality_violation") for source, n in sources.items() if n > TEAMS_MAX}
    ages = {id_: row[0] for id_, row in content[P].items() if row[0] is not None}
    return found | {(P, i, "value_constraint_violation") for i, age in ages.items() if not 0 <= age <= AGE_MAX}


@dataclass(frozen=True)
class Net:
    """One row that differs between two contents."""

    table_key: str
    id_: str
    before: Row | None
    after: Row | None

    @property
    def op(self) -> str:
        if self.before is None:
            return "insert"
        return "delete" if self.after is None else "update"


def net(before: Content, after: Content) -> list[Net]:
    """Every row that differs, by table and id."""
    return [
        Net(key, id_, before[key].get(id_), after[key].get(id_))
        for key in sorted(COLUMNS)
        for id_ in sorted(before[key].keys() | after[key].keys())
        if before[key].get(id_) != after[key].get(id_)
    ]


@dataclass(frozen=True)
class Merged:
    """The merged content, or the rows nobody could decide, or the rules the result would break."""

    content: Content
    disputes: frozenset[Dispute] = frozenset()
    broken: frozenset[tuple[str, str, str]] = frozenset()

    @property
    def is_refused(self) -> bool:
        return bool(self.disputes or self.broken)


def three_way(base: Content, source: Content, target: Content, by_property: bool, choose: Choose) -> Merged:
    merged, disputes = empty(), set()
    for key in COLUMNS:
        for id_ in base[key].keys() | source[key].keys() | target[key].keys():
            sides = _Sides(key, id_, *(side[key].get(id_) for side in (base, source, target)))
            row = sides.merged(by_property, choose)
            if isinstance(row, Undecided):
                disputes.add(row.dispute)
            elif row is not None:
                merged[key][id_] = row
    if disputes:
        return Merged(merged, frozenset(disputes))
    return Merged(merged, broken=frozenset(violations(merged)))


@dataclass(frozen=True)
class Undecided:
    dispute: Dispute


@dataclass(frozen=True)
class _Sides:
    """One row as the three sides have it."""

    key: str
    id_: str
    base: Row | None
    source: Row | None
    target: Row | None

    def merged(self, by_property: bool, choose: Choose) -> Row | Undecided | None:
        if self.source in (self.base, self.target):
            return self.target
        if self.target == self.base:
            return self.source
        if self.base is None:
            return self._chosen("divergent_insert", choose)
        if self.source is None or self.target is None:
            return self._chosen("delete_vs_update", choose)
        return self._by_property(choose) if by_property else self._chosen("divergent_update", choose)

    def _chosen(self, kind: str, choose: Choose) -> Row | Undecided | None:
        dispute = (self.key, self.id_, kind, ())
        match choose(dispute):
            case "ours":
                return self.target
            case "theirs":
                return self.source
            case "base":
                return self.base
            case "delete":
                return None
        return Undecided(dispute)

    def _by_property(self, choose: Choose) -> Row | Undecided | None:
        assert self.base is not None
        assert self.source is not None
        assert self.target is not None
        row = list(self.target)
        disputed: list[int] = []
        for unit in _units(self.key):
            base, source, target = (tuple(side[c] for c in unit) for side in (self.base, self.source, self.target))
            if source in (base, target):
                continue
            if target != base:
                disputed += unit
                continue
            for column in unit:
                row[column] = self.source[column]
        if not disputed:
            return tuple(row)
        dispute = (self.key, self.id_, "divergent_update", tuple(sorted(COLUMNS[self.key][c] for c in disputed)))
        choice = choose(dispute)
        if choice == "delete":
            return None
        if choice is None:
            return Undecided(dispute)
        side = {"ours": self.target, "theirs": self.source, "base": self.base}[choice]
        for column in disputed:
            row[column] = side[column]
        return tuple(row)


def _units(key: str) -> list[tuple[int, ...]]:
    """The two ends of an edge are one value."""
    if key in ENDS:
        return [(0, 1), *((c,) for c in range(2, len(COLUMNS[key])))]
    return [(c,) for c in range(len(COLUMNS[key]))]


@dataclass(frozen=True)
class Commit:
    """`branch` is the one it was made on; `version` only breaks ties between bases that lie equally near."""

    id_: str
    parent: str | None
    merged: str | None
    content: Content
    branch: str
    version: int

    @property
    def parents(self) -> list[str]:
        return [p for p in (self.parent, self.merged) if p is not None]


@dataclass
class Line:
    """A branch: its newest commit and the branch it was made from."""

    head: str
    parent: str | None = None


@dataclass
class Model:
    """All branches and tags, and every commit there ever was."""

    commits: dict[str, Commit] = field(default_factory=dict)
    branches: dict[str, Line] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    # Which branch reads whose tables is the engine's own affair; the machine tells what it sees of it.
    is_shown: Callable[[str], bool] = lambda _branch: False

    def add(self, commit: Commit) -> None:
        self.commits[commit.id_] = commit
        self.branches.setdefault(commit.branch, Line(commit.id_)).head = commit.id_

    def content(self, branch: str) -> Content:
        return self.commits[self.branches[branch].head].content

    def chain(self, branch: str) -> list[str]:
        """The history of a branch: first parents, newest first."""
        return list(self._first_parents(self.branches[branch].head))

    def _first_parents(self, head: str) -> Iterator[str]:
        at: str | None = head
        while at is not None:
            yield at
            at = self.commits[at].parent

    def visible(self) -> set[str]:
        """The commits of live branches; those of a deleted one are gone with it."""
        return {commit for name in self.branches for commit in self.chain(name)}

    def own(self, branch: str) -> set[str]:
        return {commit for commit in self.chain(branch) if self.commits[commit].branch == branch}

    def is_needed(self, branch: str) -> bool:
        """Whether a branch must stay: others were made from it, show its tables, or a tag names its commits."""
        return (
            any(line.parent == branch for line in self.branches.values())
            or bool(self.own(branch) & set(self.tags.values()))
            or self.is_shown(branch)
        )

    def base(self, one: str, two: str) -> str:
        """Of the commits both heads descend from and no other such commit does, the nearest to both."""
        known = self.visible()
        from_one, from_two = self._distances(one, known), self._distances(two, known)
        common = from_one.keys() & from_two.keys()
        below = {d for c in common for p in self.commits[c].parents if p in known for d in self._distances(p, known)}
        newest = common - below
        return min(newest, key=lambda c: (from_one[c] + from_two[c], -self.commits[c].version, c))

    def _distances(self, head: str, known: set[str]) -> dict[str, int]:
        found, waiting = {head: 0}, deque([head])
        while waiting:
            at = waiting.popleft()
            for parent in self.commits[at].parents:
                if parent in known and parent not in found:
                    found[parent] = found[at] + 1
                    waiting.append(parent)
        return found

    def past(self, branch: str, key: str, id_: str) -> list[tuple[str, Net]]:
        """The commits of a branch that changed one row, newest first."""
        chain = self.chain(branch)
        found = []
        for commit, parent in itertools.pairwise(chain):
            before, after = (self.commits[c].content[key].get(id_) for c in (parent, commit))
            if before != after:
                found.append((commit, Net(key, id_, before, after)))
        return found
