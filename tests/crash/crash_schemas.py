"""Schema applies as things a process can die in: the sources, the points, and which side of the apply follows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from crash_world import TableSeen, heads, pins, seen

from omnigraph.base.failpoints import WINDOWS
from omnigraph.commit.schema_files import needs_settling, recorded_commits
from omnigraph.graph import Graph
from omnigraph.manifest import layout

_TEAM = "node Team { name: String @key }\n"
_CITY = "node City { name: String @key  size: enum(big, small)? }\n"
_KNOWS = "edge Knows: Person -> Person { since: I32? }\n"
SCHEMA = f"node Person {{ name: String @key  age: I32? @index  note: String? }}\n{_CITY}{_KNOWS}"
SEED = """query seed() {
  insert Person { name: "ana", age: 31, note: "first" }
  insert Person { name: "bo", age: 7 } insert Person { name: "cy" }
  insert City { name: "oslo", size: "big" }
  insert Knows { from: "ana", to: "bo" } insert Knows { from: "bo", to: "ana", since: 3 }
}"""
_BEFORE_STAGED = ("lock_made", "files_written", "pre_phase_a", "pre_schema_staging")


@dataclass(frozen=True)
class Remodel:
    """One apply. `landings`: how many table versions it makes; `lost`: the tables whose past it removes."""

    name: str
    source: str
    landings: int
    staged: int
    options: dict[str, Any] = field(default_factory=dict)
    branch: str | None = None
    reclaims: int = 0

    def act(self, graph: Graph) -> object:
        return graph.schema_apply(self.source, message="remodelled", **self.options)


def _person(body: str, head: str = "node Person") -> str:
    return f"{head} {{ name: String @key  {body} }}\n"


_SAME = "age: I32? @index  note: String?"
_MEMBER = 'node Member @rename_from("Person")'
_MEMBERS = "edge Knows: Member -> Member { since: I32? }\n"
REMODELS = {
    r.name: r
    for r in (
        Remodel("add_null", _person(f"{_SAME}  joined: Date?") + _CITY + _KNOWS, 1, 1),
        Remodel("add_literal", _person(f'{_SAME}  country: String @default("NO")') + _CITY + _KNOWS, 2, 1),
        Remodel(
            "rename_indexed",
            _person('years: I32? @index @rename_from("age")  note: String?') + _CITY + _KNOWS,
            2,
            1,
        ),
        Remodel("rename_type", _person(_SAME, _MEMBER) + _CITY + _MEMBERS, 1, 1),
        Remodel("add_type", SCHEMA + _TEAM + "edge In: Person -> Team\n", 2, 2),
        Remodel(
            "rename_edge",
            _person(_SAME)
            + _CITY
            + 'edge Met: Person -> Person @rename_from("Knows") { in: I32? @rename_from("since") }\n',
            1,
            1,
        ),
        Remodel("drop_column", _person("age: I32? @index") + _CITY + _KNOWS, 1, 1),
        Remodel("drop_type", _person(_SAME) + _KNOWS, 0, 0),
        Remodel("widen_enum", SCHEMA.replace("big, small", "big, small, tiny"), 0, 0),
        Remodel("add_index", SCHEMA.replace("note: String?", "note: String? @index"), 0, 0),
        Remodel(
            "describe",
            SCHEMA.replace("node City", 'node City @description("a place")').replace(
                "small)?", "small)? @default(big)"
            ),
            0,
            0,
        ),
        Remodel("drop_hard", _person("age: I32? @index") + _KNOWS, 1, 1, {"allow_data_loss": True}, reclaims=3),
        Remodel(
            "everything",
            _person('years: I32? @index @rename_from("age")  country: String @default("NO")  joined: Date?', _MEMBER)
            + "edge Knows: Member -> Member { since: I32?  weight: F64 @default(0.5) }\n"
            + _TEAM,
            6,
            3,
        ),
        Remodel("beside_a_branch", _person(f"{_SAME}  joined: Date?") + _CITY + _KNOWS + _TEAM, 2, 2, {}, "draft"),
    )
}


@dataclass(frozen=True)
class RemodelCase:
    """A process dies in an apply when it comes to `point` for the `skip + 1`-th time; so do others that recover it."""

    remodel: Remodel
    point: str
    skip: int = 0
    then: tuple[tuple[str, int], ...] = ()

    @property
    def id(self) -> str:
        points = [(self.point, self.skip), *self.then]
        return "-".join([self.remodel.name, *(f"{p}#{n + 1}" if n else p for p, n in points)])

    @property
    def lands(self) -> bool:
        """Whether the new schema is in force once somebody has opened the graph."""
        window = self.point.rpartition(".")[2]
        if window in _BEFORE_STAGED:
            return False
        if window == "mid_schema_staging":
            return self.skip == 2 and not self.remodel.landings
        if window == "post_phase_a_pre_phase_b":
            return not self.remodel.landings
        if window == "mid_phase_b":
            return self.skip == self.remodel.landings - 1
        return True

    @property
    def armed(self) -> bool:
        """Whether a sidecar was there when it died."""
        return self.point.rpartition(".")[2] not in ("lock_made", "files_written", "pre_phase_a", "post_phase_d")


def _points(remodel: Remodel) -> list[tuple[str, int]]:
    points = [("schema_apply.lock_made", 0), *(("stage.files_written", n) for n in range(remodel.staged))]
    points += [("schema_apply.pre_schema_staging", 0), *(("schema_apply.mid_schema_staging", n) for n in range(3))]
    for window in WINDOWS:
        times = remodel.landings if window == "mid_phase_b" else 1
        points += [(f"schema_apply.{window}", n) for n in range(times)]
    points += [("schema_apply.mid_schema_renames", n) for n in range(6)]
    if remodel.reclaims:
        points += [("schema_apply.pre_reclaim", 0)]
        points += [("schema_apply.mid_reclaim", n) for n in range(remodel.reclaims)]
    return points


_RECOVERY = (
    "recovery.pre_phase_a",
    "recovery.post_phase_a_pre_phase_b",
    "recovery.post_phase_b_pre_manifest_commit",
    "recovery.post_manifest_commit_pre_phase_d",
    "recovery.post_audit",
    "recovery.post_phase_d",
)


def _in_recovery(remodel: Remodel) -> list[RemodelCase]:
    """The apply died so that recovery must go forward, or back; then recovery dies too."""
    forward = ("schema_apply.post_phase_b_pre_manifest_commit", 0)
    seconds = [(p, 0) for p in _RECOVERY] + [("schema_apply.mid_schema_renames", n) for n in range(6)]
    cases = [RemodelCase(remodel, *forward, (second,)) for second in seconds]
    if remodel.landings:
        back = ("schema_apply.mid_phase_b", 0) if remodel.landings > 1 else ("schema_apply.post_phase_a_pre_phase_b", 0)
        seconds = [(p, 0) for p in _RECOVERY] + [("recovery.mid_schema_discard", n) for n in range(3)]
        cases += [RemodelCase(remodel, *back, (second,)) for second in seconds]
    published = ("schema_apply.post_manifest_commit_pre_phase_d", 0)
    cases += [RemodelCase(remodel, *published, (("schema_apply.mid_schema_renames", n),)) for n in range(6)]
    return cases


def every_remodel_case() -> list[RemodelCase]:
    cases = [RemodelCase(r, point, skip) for r in REMODELS.values() for point, skip in _points(r)]
    return [*cases, *(case for remodel in REMODELS.values() for case in _in_recovery(remodel))]


def is_short(case: RemodelCase) -> bool:
    """Every point of the richest apply, and those of the others at which something else may follow."""
    if case.then:
        return case.remodel.name == "everything"
    window = case.point.rpartition(".")[2]
    if case.remodel.name == "everything" or "reclaim" in window:
        return True
    return window in ("mid_phase_b", "post_phase_b_pre_manifest_commit") or (window, case.skip) in (
        ("mid_schema_staging", 2),
        ("mid_schema_renames", 2),
    )


def build(uri: str) -> None:
    """Its schema was set by an apply, so that there is a record which the next one replaces."""
    with Graph.init(uri, SCHEMA.replace("node City", 'node City @description("somewhere")')) as graph:
        graph.schema_apply(SCHEMA)
        graph.mutate(SEED)
        graph.mutate('query q() { delete Person where name = "cy" }')
        graph.ensure_indices()


@dataclass(frozen=True)
class GraphSeen:
    """All that a user can see: the schema, and the rows of every table with their facts."""

    source: str
    tables: dict[str, TableSeen]
    branches: dict[str, list[bytes]]

    @staticmethod
    def of(graph: Graph) -> GraphSeen:
        exports = {name: sorted(b"".join(graph.export(branch=name)).splitlines()) for name in graph.branch_list()}
        return GraphSeen(graph.schema().source, seen(graph), exports)


def check_at_rest(graph: Graph) -> None:
    """Nothing of an apply is left, and every table is where its readers see it."""
    objects = graph.context.objects
    main = graph.context.manifest.state()
    assert main.schema_commit is not None
    assert recorded_commits(objects) == [main.schema_commit.graph_commit_id]
    assert not needs_settling(objects, main)
    assert layout.SCHEMA_LOCK_BRANCH not in graph.context.manifest.branches()
    assert objects.list(layout.RECOVERY_DIR) == []
    assert heads(graph) == pins(graph)
