"""Random actions that suit the model: few names and few values, so that the two sides of a merge meet often."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from state_actions import Action, Delete, Index, Insert, Load, Mutate, Spot, Update, Write
from state_model import COLUMNS, KEYS, Content, K, M, Model, P, Row, T, violations, with_cascades, with_rows
from state_verbs import Create, Drop, Merge, Reset, Revert, Tag, Untag

BRANCHES = ("draft", "team/x", "team", "wip", "v1")
TAGS = ("v1", "v2", "rel/1", "draft")
PEOPLE = ("ana", "bo", "cy", "it's", 'a"b', "ключ")
TEAMS = ("core", "web", "ops")
EDGE_IDS = ("e1", "e2", "e3", "e4", "e5", "e6")
SIDES = ("ours", "theirs")


class Draws:
    """Draws from one source of chance, so that a seed makes the same life again."""

    def __init__(self, chance: random.Random, model: Model) -> None:
        self.chance, self.model = chance, model
        self._kinds: dict[type[Action], tuple[int, Callable[[], Action]]] = {
            Mutate: (30, self.mutate),
            Load: (9, self.load),
            Write: (16, self.write),
            Index: (1, lambda: Index(self.live())),
            Merge: (11, self.merge),
            Revert: (4, self.revert),
            Reset: (2, lambda: Reset(branch := self.live(), self.spot(branch))),
            Create: (9, self.create),
            Drop: (7, self.drop),
            Tag: (4, self.tag),
            Untag: (3, lambda: Untag(self.one_of(sorted(self.model.tags)) if self.model.tags else "v2")),
        }

    def action(self) -> Action:
        weights = [weight for weight, _ in self._kinds.values()]
        return self.of_kind(self.chance.choices(list(self._kinds), weights)[0])

    def of_kind(self, kind: type[Action]) -> Action:
        return self._kinds[kind][1]()

    def one_of(self, values: Sequence[Any]) -> Any:
        return self.chance.choice(values)

    def live(self) -> str:
        return self.one_of(sorted(self.model.branches))

    def spot(self, branch: str) -> Spot:
        """Mostly a commit of this branch and not long ago."""
        back = self.chance.choice((0, 0, 1, 1, 2, 3, 5, 9, 1000))
        return Spot(branch if self.chance.random() < 0.9 else self.live(), back)

    def row(self, key: str) -> tuple[str, Row]:
        small = self.one_of((None, 0, 1, 2, 3))
        match key:
            case "node:Person":
                # Now and then an age that the schema does not allow.
                age = 12 if self.chance.random() < 0.04 else small
                tags = self.one_of((None, [], ["x"], ["x", "y"], ["y", "x"]))
                return self.one_of(PEOPLE), (age, tags, self.one_of((None, None, "", "n1", "n2", "n3")))
            case "node:Team":
                return self.one_of(TEAMS), (small,)
            case "edge:Knows":
                return self.one_of(EDGE_IDS), (self.one_of(PEOPLE), self.one_of(PEOPLE), small)
        return self.one_of(EDGE_IDS), (self.one_of(PEOPLE), self.one_of(TEAMS), self.one_of((None, "", "lead")))

    def key(self) -> str:
        return self.chance.choices((P, T, K, M), (5, 2, 3, 3))[0]

    def good_rows(self, content: Content, count: int) -> list[tuple[str, str, Row]]:
        """Rows that may be put one after the other, each id once; an end that is missing comes along."""
        found: dict[tuple[str, str], Row] = {}
        for _ in range(count):
            key = self.key()
            id_, row = self.row(key)
            new = {(key, id_): row}
            if key in (K, M):
                ends = ((P, row[0]), (T if key == M else P, row[1]))
                new |= {end: self.row(end[0])[1] for end in ends if end[1] not in content[end[0]]}
            after = content
            for (k, i), r in new.items():
                after = with_rows(after, {k: {i: r}})
            if not violations(after) and not new.keys() & found.keys():
                found |= new
                content = after
        return [(key, id_, row) for (key, id_), row in found.items()]

    def mutate(self) -> Mutate:
        branch = self.live()
        content = self.model.content(branch)
        what = self.chance.random()
        if what < 0.3:
            statements = tuple(Delete(*self.stored(content)) for _ in range(self.one_of((1, 1, 2))))
            return Mutate(branch, statements)
        if what < 0.6:
            return Mutate(branch, tuple(self.update(content) for _ in range(self.one_of((1, 1, 2)))))
        rows = self.good_rows(content, self.one_of((1, 2, 3)))
        if what > 0.95 or not rows:
            key = self.key()
            rows = [(key, *self.row(key))]
        return Mutate(branch, tuple(Insert(key, id_ if key in KEYS else None, row) for key, id_, row in rows))

    def stored(self, content: Content) -> tuple[str, str]:
        """A row that is there, or mostly."""
        # By their values, for the graph gives edges other ids in each run.
        rows = [(key, id_) for key in COLUMNS for id_, _ in sorted(content[key].items(), key=_values_first)]
        return self.one_of(rows) if rows and self.chance.random() < 0.95 else (P, self.one_of(PEOPLE))

    def update(self, content: Content) -> Update:
        key, id_ = self.stored(content)
        settable = [c for c in COLUMNS[key] if c not in ("src", "dst")]
        column = self.one_of(settable)
        return Update(key, id_, column, self.row(key)[1][COLUMNS[key].index(column)])

    def load(self) -> Load:
        branch, mode = self.live(), self.one_of(("append", "merge", "merge"))
        content = self.model.content(branch)
        rows = self.good_rows(content, self.one_of((1, 2, 4)))
        if mode == "append" and self.chance.random() < 0.8:
            rows = [(key, id_, row) for key, id_, row in rows if id_ not in content[key]]
        rows = rows or [(T, *self.row(T))]
        return Load(branch, mode, tuple(rows))

    def write(self) -> Write:
        """Rows put and others removed with what hangs on them; of these, edges may also change their ends."""
        branch = self.live()
        before = self.model.content(branch)
        puts = self.good_rows(before, self.one_of((1, 1, 2, 3)))
        after = before
        for key, id_, row in puts:
            after = with_rows(after, {key: {id_: row}})
        kept = {(key, id_) for key, id_, _ in puts}
        gone: tuple[tuple[str, str], ...] = ()
        if self.chance.random() < 0.4 and any(before.values()):
            less = with_cascades(with_rows(after, {}, [self.stored(before)]))
            lost = {(key, id_) for key in COLUMNS for id_ in after[key].keys() - less[key].keys()}
            if not lost & kept:
                gone = tuple(sorted(lost))
        if not puts and not gone:
            puts = [(T, *self.row(T))]
        return Write(branch, tuple(puts), gone)

    def merge(self) -> Action:
        if len(self.model.branches) == 1:
            return self.create()
        source, into = self.chance.sample(sorted(self.model.branches), 2)
        strategy = self.one_of((None, None, *SIDES))
        granularity = self.one_of(("row", "property"))
        what = self.chance.random()
        if what < 0.12:
            return Merge(source, into, strategy, granularity, dry_run=True)
        choices: tuple[str | None, ...] = ()
        if what < 0.27:
            choices = tuple(self.chance.choices(("ours", "theirs", "base", "delete", None), (3, 3, 2, 1, 1), k=3))
        return Merge(source, into, strategy, granularity, choices, delete=self.chance.random() < 0.08)

    def revert(self) -> Revert:
        branch = self.live()
        return Revert(branch, self.spot(branch))

    def create(self) -> Create:
        free = [name for name in BRANCHES if name not in self.model.branches and name not in self.model.tags]
        return Create(self.live(), self.one_of(free if free and self.chance.random() < 0.9 else BRANCHES))

    def drop(self) -> Drop:
        names = sorted(set(self.model.branches) - {"main"})
        return Drop(self.one_of(names) if names and self.chance.random() < 0.95 else self.one_of(BRANCHES))

    def tag(self) -> Tag:
        return Tag(self.one_of(TAGS), self.spot(self.live()))


def _values_first(entry: tuple[str, Row]) -> tuple[str, str]:
    return repr(entry[1]), entry[0]
