"""Random actions, small enough to meet each other: few people, few teams, few emails, three branches besides main.

They are drawn without knowing the graph; `aimed` then turns most of those that name a missing branch to a live one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import hypothesis.strategies as st
from verb_actions import Action, Create, Drop, Index, Load, Mutate
from verb_loads import Line
from verb_model import ENDS, NODES, Delete, Insert, Statement, Update, Where

BRANCHES = ("draft", "draft/x", "team")
PEOPLE = st.sampled_from(["ana", "bo", "cy", "it's", 'a"b', "ключ"])
TEAMS = st.sampled_from(["core", "web"])
EMAILS = st.sampled_from([None, None, "a@x", "b@x", "c@x"])
SMALL = st.none() | st.integers(0, 9)
# Now and then an age that the schema does not allow.
AGES = st.sampled_from([None, *range(10), 120])
EDGE_IDS = st.sampled_from([None, None, "e1", "e2", "e3"])
ANYWHERE = st.sampled_from(["main", "main", *BRANCHES])
_VALUES = {
    "Person": {"name": PEOPLE, "id": PEOPLE, "age": st.integers(0, 9), "email": st.sampled_from(["a@x", "b@x"])},
    "Team": {"code": TEAMS, "id": TEAMS, "size": st.integers(0, 9)},
    "Knows": {"from": PEOPLE, "to": PEOPLE, "since": st.integers(0, 9), "id": st.sampled_from(["e1", "e2"])},
    "MemberOf": {"from": PEOPLE, "to": TEAMS, "id": st.sampled_from(["e1", "e2"])},
}
_SETTABLE = {
    "Person": st.sampled_from(["age", "email"]),
    "Team": st.just("size"),
    "Knows": st.just("since"),
}


@st.composite
def rows(draw: st.DrawFn, type_: str) -> tuple[str | None, tuple[object, ...]]:
    """The id and the values of a row; that of an edge may be None."""
    match type_:
        case "Person":
            return draw(PEOPLE), (draw(AGES), draw(EMAILS))
        case "Team":
            return draw(TEAMS), (draw(SMALL),)
        case "Knows":
            return draw(EDGE_IDS), (draw(PEOPLE), draw(PEOPLE), draw(SMALL))
    return draw(EDGE_IDS), (draw(PEOPLE), draw(TEAMS))


@st.composite
def inserts(draw: st.DrawFn) -> Insert:
    type_ = draw(st.sampled_from(["Person", "Person", "Team", "Knows", "MemberOf"]))
    id_, values = draw(rows(type_))
    return Insert(type_, id_ if type_ in ("Person", "Team") else None, values)


@st.composite
def wheres(draw: st.DrawFn, type_: str) -> Where:
    columns = draw(st.lists(st.sampled_from(sorted(_VALUES[type_])), min_size=1, max_size=2, unique=True))
    compared = st.sampled_from(["=", "=", "!=", "<", "<=", ">"])
    return Where(tuple((column, draw(compared), draw(_VALUES[type_][column])) for column in columns))


@st.composite
def updates(draw: st.DrawFn) -> Update:
    type_ = draw(st.sampled_from(sorted(_SETTABLE)))
    column = draw(_SETTABLE[type_])
    value = draw({"age": AGES, "email": EMAILS}.get(column, SMALL))
    return Update(type_, column, value, draw(wheres(type_)))


@st.composite
def deletes(draw: st.DrawFn) -> Delete:
    type_ = draw(st.sampled_from(["Person", "Team", "Knows", "MemberOf"]))
    return Delete(type_, draw(wheres(type_)))


STATEMENTS: st.SearchStrategy[list[Statement]] = st.one_of(
    st.lists(inserts(), min_size=1, max_size=4),
    st.lists(inserts() | updates(), min_size=1, max_size=3),
    st.lists(deletes(), min_size=1, max_size=2),
)
MUTATIONS = st.builds(Mutate, ANYWHERE, STATEMENTS)


@st.composite
def loads(draw: st.DrawFn) -> Load:
    types = draw(st.lists(st.sampled_from(["Person", "Team", "Knows", "MemberOf"]), max_size=6))
    quarantine = draw(st.booleans())
    lines = []
    for number, type_ in enumerate(types):
        garbled = quarantine and type_ != "MemberOf" and draw(st.integers(0, 4)) == 0
        id_, values = draw(rows(type_))
        lines.append(Line(number, type_, id_, values, garbled))
    mode = draw(st.sampled_from(["append", "merge", "overwrite"]))
    if mode != "append" and draw(st.booleans()):
        ends = {end for line in lines if line.type_ in ENDS for end in zip(ENDS[line.type_], line.values, strict=False)}
        given = {(line.type_, line.id_) for line in lines}
        lines += [
            Line(len(types) + n, *end, (None,) * (len(NODES[end[0]]) - 1)) for n, end in enumerate(sorted(ends - given))
        ]
    base = draw(st.sampled_from([None, "main", "draft"]))
    return Load(draw(ANYWHERE), lines, mode, quarantine, draw(st.booleans()), base)


CREATIONS = st.builds(Create, ANYWHERE, st.sampled_from(BRANCHES))
DROPS = st.builds(Drop, st.sampled_from(BRANCHES))
INDEXINGS = st.builds(Index, ANYWHERE)
# Nearly always accepted, on any branch and with any content.
PLAIN_WRITES = st.builds(
    Mutate,
    ANYWHERE,
    st.builds(
        lambda who, team, age: [
            Insert("Person", who, (age, None)),
            Insert("Team", team, (age,)),
            Insert("Knows", None, (who, who, age)),
        ],
        PEOPLE,
        TEAMS,
        SMALL,
    ),
)
CONTROLS: st.SearchStrategy[Action] = st.one_of(CREATIONS, DROPS, INDEXINGS)
WRITES: st.SearchStrategy[Action] = st.one_of(PLAIN_WRITES, MUTATIONS, loads(), INDEXINGS)
# Where a missing branch is turned to; 0 leaves it missing.
AIMS = st.integers(0, 7)


def aimed(action: Action, live: Sequence[str], aim: int) -> Action:
    target = live[aim % len(live)]
    if aim == 0 or (target == "main" and isinstance(action, Drop)):
        return action
    if isinstance(action, Create):
        if aim > 4 and action.branch in live:
            return Drop(action.branch)
        return action if action.source in live else replace(action, source=target)
    if isinstance(action, Load) and action.base is not None:
        return action
    return action if action.branch in live else replace(action, branch=target)  # type: ignore[type-var]
