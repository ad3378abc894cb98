"""The verbs people use, as things a process can die in; and what a user can see of a graph before and after.

A case is known by its id in every place; `chosen` picks those of the short ring: each point once, each verb once.
"""

from __future__ import annotations

import json
import os
import random
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from omnigraph.base.failpoints import WINDOWS
from omnigraph.graph import Graph

SCHEMA = """
node Person { name: String @key  age: I32?  @index(age) }
node City { name: String @key }
edge Knows: Person -> Person
edge LivesIn: Person -> City @card(0..1)
"""
SEED = """query seed() {
  insert Person { name: "ana", age: 31 } insert Person { name: "bo", age: 7 } insert Person { name: "cy" }
  insert City { name: "oslo" }
  insert Knows { from: "ana", to: "bo" } insert Knows { from: "bo", to: "ana" }
  insert LivesIn { from: "ana", to: "oslo" }
}"""
ROWS: tuple[dict[str, Any], ...] = (
    {"type": "Person", "data": {"name": "di", "age": 44}},
    {"type": "City", "data": {"name": "rome"}},
    {"edge": "Knows", "from": "di", "to": "di", "data": {"id": "k1"}},
    {"edge": "LivesIn", "from": "di", "to": "rome", "data": {"id": "l1"}},
)
AGAIN: tuple[dict[str, Any], ...] = (*ROWS, {"type": "Person", "data": {"name": "ana", "age": 32}})
# What overwrites must keep whole: every edge still has its ends.
INSTEAD: tuple[dict[str, Any], ...] = (
    {"type": "Person", "data": {"name": "ana"}},
    {"type": "City", "data": {"name": "oslo"}},
    {"edge": "Knows", "from": "ana", "to": "ana", "data": {"id": "k2"}},
)
SAMPLE_SIZE = 15
BAD: tuple[dict[str, Any], ...] = (*ROWS, {"type": "Person", "data": {"name": "x", "age": "old"}})


def _nothing(_graph: Graph) -> None:
    return


def _load(rows: tuple[dict[str, Any], ...], mode: str, **more: Any) -> Callable[[Graph], object]:
    def act(graph: Graph) -> object:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "rows.jsonl")
            with open(path, "w", encoding="utf-8") as file:
                file.writelines(json.dumps(row) + "\n" for row in rows)
            return graph.load(path, mode=mode, **more)  # type: ignore[arg-type]

    return act


def _mutate(body: str, branch: str | None = None) -> Callable[[Graph], object]:
    return lambda graph: graph.mutate(f"query q() {{ {body} }}", branch=branch)


@dataclass(frozen=True)
class Verb:
    """`points` are where a process may die in it; `tables` is how many tables its first commit moves."""

    name: str
    act: Callable[[Graph], object]
    points: tuple[str, ...]
    tables: int
    prepare: Callable[[Graph], object] = _nothing
    branch: str = "main"


@dataclass(frozen=True)
class VerbCase:
    """A process dies in `verb` when it comes to `point` for the `skip + 1`-th time."""

    verb: Verb
    point: str
    skip: int = 0

    @property
    def id(self) -> str:
        return f"{self.verb.name}-{self.point}{f'#{self.skip + 1}' if self.skip else ''}"

    @property
    def window(self) -> str:
        return self.point.rpartition(".")[2]

    @property
    def lands(self) -> bool:
        """Whether the verb is done once somebody has opened the graph; otherwise it never happened."""
        writer, _, window = self.point.rpartition(".")
        if writer in ("stage", "fork"):
            return False
        if writer.startswith("tag_"):
            return window.startswith("post_")
        if writer in ("branch_create", "branch_delete"):
            # A load onto a new branch has made the branch, and nothing else.
            return window == "post_manifest" and not self.verb.tables
        if not self.verb.tables:
            return window != "pre_phase_a"  # no table has to move, so that an armed write is finished
        if writer != self.verb.points[0].rpartition(".")[0]:
            return True  # the rows were committed before their indexes
        if window == "mid_phase_b":
            return self.skip == self.verb.tables - 1
        return window not in ("pre_phase_a", "post_phase_a_pre_phase_b")


def _windows(writer: str) -> tuple[str, ...]:
    return tuple(f"{writer}.{window}" for window in WINDOWS)


_INSERT = 'insert Person { name: "di" } insert Knows { from: "di", to: "ana" }'
_DELETE = 'delete Person where name = "ana"'
_FORKS = ("fork.post_create", "stage.files_written")
_CREATE: Callable[[Graph], object] = lambda graph: graph.branch_create("draft")  # noqa: E731


def _create_and_write(graph: Graph) -> None:
    graph.branch_create("draft")
    graph.mutate('query q() { insert Person { name: "ed" } }', branch="draft")


def _create_again(graph: Graph) -> None:
    """The name had a life before, so that its tables and forks must start beyond what that one reached."""
    _create_and_write(graph)
    graph.branch_delete("draft")
    graph.branch_create("draft")


def _create_and_tag(graph: Graph) -> None:
    _create_and_write(graph)
    graph.tag_create("team/v1", "draft")


def _two_sides(graph: Graph) -> None:
    """Rows that come, change and go on a branch, and others on main; `other` has only what both had."""
    graph.branch_create("other")
    graph.branch_create("draft")
    graph.mutate('query q() { insert Person { name: "ed" } insert Knows { from: "ed", to: "ana" } }', branch="draft")
    graph.mutate('query q() { update Person set { age: 9 } where name = "bo" }', branch="draft")
    graph.mutate('query q() { insert Person { name: "flo" } insert City { name: "rome" } }')
    graph.mutate('query q() { delete Person where name = "cy" }')


def _pieces(graph: Graph, branch: str = "main") -> None:
    """Several fragments of two tables, of which the indexes cover the first; a row that changed and one that went."""
    for name in ("ed", "flo"):
        body = f'insert Person {{ name: "{name}", age: 7 }} insert Knows {{ from: "{name}", to: "ana" }}'
        graph.mutate(f"query q() {{ {body} }}", branch=branch)
    graph.mutate('query q() { update Person set { age: 9 } where name = "bo" }', branch=branch)
    graph.mutate('query q() { delete Person where name = "cy" }', branch=branch)


def _pieces_on_a_fork(graph: Graph) -> None:
    graph.branch_create("draft")
    _pieces(graph, "draft")


_OPTIMIZES = (*_windows("optimize"), "stage.set_aside")
# Of either table the indexes are dropped, the fragments rewritten, and the indexes built again.
_OPTIMIZE_STEPS = 6
_MUTATIONS, _LOADS, _INDEXES = _windows("mutation"), _windows("load"), _windows("ensure_indices")
_OF_CREATE, _OF_DELETE = ("branch_create.post_manifest",), ("branch_delete.pre_manifest", "branch_delete.post_manifest")
_OF_TAG_CREATE = ("tag_create.pre_put", "tag_create.post_put")
_OF_TAG_DELETE = ("tag_delete.pre_delete", "tag_delete.post_delete")
_MERGES, _REVERTS, _RESETS = _windows("branch_merge"), _windows("revert"), _windows("reset")
_ADOPTIONS = tuple(point for point in _MERGES if "mid_phase_b" not in point)
_NEW = {"branch": "draft", "from_branch": "main", "index": False}
VERBS = {
    v.name: v
    for v in (
        Verb("insert", _mutate(_INSERT), _MUTATIONS, 2),
        Verb("update", _mutate("update Person set { age: 8 } where age < 10"), _MUTATIONS, 1),
        Verb("delete", _mutate(_DELETE), _MUTATIONS, 3),
        Verb("append", _load(ROWS, "append"), (*_LOADS, *_INDEXES, "stage.files_written"), 4),
        Verb("merge", _load(AGAIN, "merge", index=False), _LOADS, 4),
        Verb("overwrite", _load(INSTEAD, "overwrite", index=False), _LOADS, 3),
        Verb("quarantine", _load(BAD, "append", on_error="quarantine", index=False), _LOADS, 4),
        Verb("ensure_indices", lambda graph: graph.ensure_indices(), _INDEXES, 2, _mutate(_INSERT)),
        Verb("first_write", _mutate(_INSERT, "draft"), (*_MUTATIONS, *_FORKS), 2, _CREATE, "draft"),
        Verb("first_delete", _mutate(_DELETE, "draft"), (*_MUTATIONS, *_FORKS), 3, _create_and_write, "draft"),
        Verb("first_write_of_a_later_life", _mutate(_INSERT, "draft"), _FORKS, 2, _create_again, "draft"),
        Verb("load_on_new_branch", _load(ROWS, "append", **_NEW), (*_LOADS, *_FORKS, *_OF_CREATE), 4, branch="draft"),
        Verb("branch_create", _CREATE, _OF_CREATE, 0, branch="draft"),
        Verb(
            "branch_create_from",
            lambda graph: graph.branch_create_from("draft", "later"),
            _OF_CREATE,
            0,
            _create_and_write,
            "later",
        ),
        Verb(
            "branch_merge", lambda graph: graph.branch_merge("draft"), (*_MERGES, "stage.files_written"), 2, _two_sides
        ),
        Verb(
            "first_merge",
            lambda graph: graph.branch_merge("draft", "other"),
            (*_MERGES, *_FORKS),
            2,
            _two_sides,
            "other",
        ),
        Verb("adopt", lambda graph: graph.branch_merge("main", "other"), _ADOPTIONS, 0, _two_sides, "other"),
        Verb("revert", lambda graph: graph.commit_revert("main~1"), _REVERTS, 2, _two_sides),
        Verb("reset", lambda graph: graph.branch_reset("main", "main~2"), _RESETS, 2, _two_sides),
        Verb("optimize", lambda graph: graph.optimize(), _OPTIMIZES, _OPTIMIZE_STEPS, _pieces),
        Verb(
            "optimize_fork",
            lambda graph: graph.optimize("draft"),
            _OPTIMIZES,
            _OPTIMIZE_STEPS,
            _pieces_on_a_fork,
            "draft",
        ),
        Verb("branch_delete", lambda graph: graph.branch_delete("draft"), _OF_DELETE, 0, _create_and_write, "draft"),
        Verb("tag_create", lambda graph: graph.tag_create("v1", "draft"), _OF_TAG_CREATE, 0, _create_and_tag),
        Verb("tag_delete", lambda graph: graph.tag_delete("team/v1"), _OF_TAG_DELETE, 0, _create_and_tag),
    )
}


def every_case() -> list[VerbCase]:
    """Each point of each verb; in the middle of the tables also after the last of them."""
    cases = [VerbCase(verb, point) for verb in VERBS.values() for point in verb.points]
    last = [VerbCase(c.verb, c.point, c.verb.tables - 1) for c in cases if "mid_phase_b" in c.point]
    return [*cases, *(c for c in last if c.skip and c.point == f"{c.verb.points[0].rpartition('.')[0]}.mid_phase_b")]


def chosen(cases: list[VerbCase], seed: int) -> set[str]:
    """The ids for the short ring on a disk: every point and every verb once, and a sample of the others."""
    fixed = _covering(cases, lambda case: case.point)
    return fixed | set(random.Random(seed).sample(sorted(c.id for c in cases if c.id not in fixed), SAMPLE_SIZE))


def chosen_on_s3(cases: list[VerbCase]) -> set[str]:
    """As `chosen`, and thinner: a window once, not once for each writer."""
    return _covering(cases, lambda case: case.window)


def _covering(cases: list[VerbCase], place_of: Callable[[VerbCase], str]) -> set[str]:
    """The ids of cases that die in every place, and in every verb, at least once; the verbs take turns."""
    places: dict[str, VerbCase] = {}
    met: dict[str, int] = {}
    for place in dict.fromkeys(map(place_of, cases)):
        case = min((c for c in cases if place_of(c) == place), key=lambda c: met.get(c.verb.name, 0))
        places[place] = case
        met[case.verb.name] = met.get(case.verb.name, 0) + 1
    others = {c.verb.name: c for c in cases if c.verb.name not in met}
    return {c.id for c in (*places.values(), *others.values())}


def build(uri: str) -> None:
    with Graph.init(uri, SCHEMA) as graph:
        graph.mutate(SEED)
        graph.ensure_indices()


def content(graph: Graph) -> dict[str, list[str]]:
    """Every branch and tag as its export tells it; the ids of edges are made up anew each time and do not count."""
    shown = {name: graph.snapshot(name) for name in graph.branch_list()}
    shown |= {f"tag {tag.name}": graph.snapshot_of(tag.name) for tag in graph.tag_list()}
    return {
        name: sorted(map(_plain, b"".join(graph.export(snapshot=snapshot)).splitlines()))
        for name, snapshot in shown.items()
    }


def _plain(line: bytes) -> str:
    told = json.loads(line)
    if "edge" in told:
        told["data"].pop("id")
    return json.dumps(told, sort_keys=True)
