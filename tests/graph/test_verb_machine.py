"""Random lives of a graph through the verbs people use, on branches too; always as the dictionaries say.

Two handles take turns, so that whatever one of them remembers must not outlive what the other did. A death is an
exception that nothing catches at a failpoint; real kills are the business of the crash suites.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from verb_actions import PUBLISHED, Action, Branch, Branches, Create, Drop, Expected, Load, Mutate, lands
from verb_draws import AIMS, ANYWHERE, CONTROLS, MUTATIONS, PLAIN_WRITES, WRITES, aimed, loads
from verb_model import EDGES, NODES, SCHEMA, Content, Insert, dangling, empty, settled, unlike

import omnigraph as og
from graph_places import DISK, S3, DiskPlace, Home, Place, S3Place, sidecars
from omnigraph.base import failpoints
from omnigraph.storage.tables import head_version, open_table

OFTEN = {"manifest_compact_fragments": 7, "projections_max_lag": 3}
# Examples and steps of each; a step on a server costs ten times what it costs on a disk.
LIVES = {DISK: (14, 22), S3: (5, 14)}
DEEP_LIVES = {DISK: (120, 45), S3: (25, 25)}
SEED = (
    *(Insert("Person", name, (age, None)) for name, age in (("ana", 3), ("bo", 7), ("cy", None))),
    Insert("Team", "core", (None,)),
    Insert("Knows", None, ("ana", "bo", 1)),
    Insert("MemberOf", None, ("ana", "core")),
)
NEXT = 'query q() { insert Team { code: "next" } }'
RECOVERY_POINTS = ("pre_phase_a", "mid_phase_b", "post_phase_b_pre_manifest_commit", "post_audit", "post_phase_d")
WHO = st.sampled_from([0, 1])
GOING_ON = st.sampled_from(["open", "refresh", "write"])


class Died(BaseException):
    """A process that stops here: nothing after it runs, the system frees its locks."""


def die() -> None:
    raise Died


class VerbLife(RuleBasedStateMachine):
    def __init__(self, place: Place, folder: Path) -> None:
        super().__init__()
        self.place, self.folder = place, str(folder)

    @initialize()
    def begin(self) -> None:
        failpoints.disarm_all()
        self.home = Home(self.place.fresh(), replace(self.place.settings, **OFTEN))
        self.graphs = [self.home.init(SCHEMA), self.home.open()]
        main = Branch(empty())
        main.commits = [(c.graph_commit_id, main.content) for c in self.graphs[0].list_commits()]
        self.branches: Branches = {"main": main}
        # What each branch pinned when it was last read as a whole; pinned versions never change.
        self.looked_at: dict[str, object] = {}
        self.do(Mutate("main", SEED), 0)

    def teardown(self) -> None:
        failpoints.disarm_all()
        if hasattr(self, "home"):
            self.place.remove(self.home.uri)

    def read(self, graph: og.Graph, snapshot: og.Snapshot) -> Content:
        content: Content = {}
        for key, entry in snapshot.tables.items():
            kind, name = key.split(":")
            names = [*NODES[name][1:]] if kind == "node" else ["src", "dst", *EDGES[name][2:]]
            table = open_table(graph.context.ref(entry.location, entry.table_branch), entry.table_version, key)
            rows = table.read(["id", *names]).to_pylist()
            assert len(rows) == entry.row_count
            content[name] = {row["id"]: tuple(row[n] for n in names) for row in rows}
            assert len(content[name]) == len(rows), "no id occurs twice"
        return content

    def do(self, action: Action, who: int) -> None:
        """Run it, hold what it says against what was expected, and note what it made."""
        graph, expected = self.graphs[who], self.prepared(action)
        if expected.errors:
            with pytest.raises(expected.errors):
                action.run(graph, self.folder)
            return
        told, commits = action.run(graph, self.folder)
        assert {name: told.get(name) for name in expected.told} == expected.told
        self.took_effect(action, expected)
        self.note(action.branch, graph, commits)

    def prepared(self, action: Action) -> Expected:
        """What to expect. A load that makes its branch has made it, whatever becomes of the rows."""
        if isinstance(action, Load) and action.base is not None and action.branch not in self.branches:
            made = Create(action.base, action.branch)
            if refused := made.expected(self.branches).errors:
                return Expected(refused)
            self.took_effect(made, made.expected(self.branches))
        return action.expected(self.branches)

    def took_effect(self, action: Action, expected: Expected) -> None:
        if isinstance(action, Create):
            self.branches[action.branch] = self.branches[action.source].child(action.source)
        elif isinstance(action, Drop):
            del self.branches[action.branch]
            # What was reclaimed must not be missed by those that stay.
            self.looked_at.clear()
        else:
            assert expected.content is not None
            self.branches[action.branch].content = expected.content

    def note(self, name: str, graph: og.Graph, commits: list[str] | None = None) -> None:
        """Take over the ids of new edges and the commits of a branch; `commits` None: whatever recovery made."""
        if name not in self.branches:
            return
        branch = self.branches[name]
        found = self.read(graph, graph.snapshot(name))
        known = settled(branch.content, found)
        assert known is not None, unlike([branch.content], found)
        branch.content = known
        history = [c.graph_commit_id for c in reversed(graph.list_commits(name))]
        new = history[len(branch.commits) :]
        assert commits is None or new == commits
        branch.commits += [(commit, known) for commit in new]

    @rule(action=MUTATIONS, who=WHO, aim=AIMS)
    def mutate(self, action: Action, who: int, aim: int) -> None:
        self.do(self.aimed(action, aim), who)

    @rule(action=loads(), who=WHO, aim=AIMS)
    def load(self, action: Action, who: int, aim: int) -> None:
        self.do(self.aimed(action, aim), who)

    @rule(action=PLAIN_WRITES, who=WHO, aim=AIMS)
    def write(self, action: Action, who: int, aim: int) -> None:
        self.do(self.aimed(action, aim), who)

    @rule(action=CONTROLS, who=WHO, aim=AIMS)
    def control(self, action: Action, who: int, aim: int) -> None:
        self.do(self.aimed(action, aim), who)

    @rule(data=st.data(), action=WRITES, aim=AIMS, skip=st.integers(0, 2), going_on=GOING_ON)
    def die_while_writing(self, data: st.DataObject, action: Action, aim: int, skip: int, going_on: str) -> None:
        self.die_in(data, self.aimed(action, aim), skip, going_on)

    @rule(data=st.data(), action=CONTROLS, aim=AIMS, skip=st.integers(0, 2), going_on=GOING_ON)
    def die_while_controlling(self, data: st.DataObject, action: Action, aim: int, skip: int, going_on: str) -> None:
        self.die_in(data, self.aimed(action, aim), skip, going_on)

    def aimed(self, action: Action, aim: int) -> Action:
        return aimed(action, sorted(self.branches), aim)

    def die_in(self, data: st.DataObject, action: Action, skip: int, going_on: str) -> None:
        point = data.draw(st.sampled_from(action.points))
        failpoints.arm(point, die, skip if point.endswith("mid_phase_b") else 0)
        try:
            self.do(action, 0)
        except Died:
            failpoints.disarm_all()
            self.looked_at.clear()
            self.live_on(action, point, going_on, data)
        finally:
            failpoints.disarm_all()

    def live_on(self, action: Action, point: str, going_on: str, data: st.DataObject) -> None:
        """The handle is dead; the other one or a new one finds what it left."""
        expected = action.expected(self.branches)
        # A load may die when its branch is made, before anybody has looked at its rows.
        assert not expected.errors or point in Create.points
        if expected.errors:
            pass
        elif isinstance(action, Create | Drop):
            if lands(action, point):
                self.took_effect(action, expected)
        else:
            self.settle_write(action, expected, point, going_on, data)
        self.graphs[0] = self.home.open()
        self.note(action.branch, self.graphs[0])

    def settle_write(self, action: Action, expected: Expected, point: str, going_on: str, data: st.DataObject) -> None:
        branch, after = self.branches[action.branch], expected.content
        assert after is not None
        shown = after if lands(action, point) and self.is_published(action, point) else branch.content
        reader = self.home.open("r")
        seen = self.read(reader, reader.snapshot(action.branch))
        assert settled(shown, seen) is not None, unlike([shown], seen)
        allowed = {True: [after], False: [branch.content], None: [branch.content, after]}[lands(action, point)]
        if going_on == "open":
            self.open_and_die(data.draw(st.sampled_from(RECOVERY_POINTS)))
        else:
            # Whoever writes next settles the branch first, as does a refresh.
            self.graphs[1].refresh() if going_on == "refresh" else self.graphs[1].mutate(NEXT, branch=action.branch)
        graph = self.graphs[1]
        commits = [c.graph_commit_id for c in graph.list_commits(action.branch)]
        last = commits[0] if going_on == "write" else None
        known = self.recovered(graph.snapshot_of(commits[1]) if last else graph.snapshot(action.branch), allowed)
        branch.commits += [(c, known) for c in commits[::-1][len(branch.commits) :] if c != last]
        branch.content = known | {"Team": known["Team"] | {"next": (None,)}} if last else known

    def recovered(self, snapshot: og.Snapshot, allowed: list[Content]) -> Content:
        found = self.read(self.graphs[1], snapshot)
        known = [k for content in allowed if (k := settled(content, found)) is not None]
        assert known, unlike(allowed, found)
        return known[0]

    def is_published(self, action: Action, point: str) -> bool:
        """Whether the manifest showed the write before its process died; a load is, once its indexes are built."""
        writer, _, window = point.rpartition(".")
        return window in PUBLISHED or writer == "ensure_indices" != action.writer

    def open_and_die(self, point: str) -> None:
        """Whoever opens the graph may die at once while it settles what it finds."""
        failpoints.arm(f"recovery.{point}", die)
        try:
            self.home.open()
        except Died:
            pass
        finally:
            failpoints.disarm_all()
        self.home.open()

    @rule(who=WHO)
    def reopen(self, who: int) -> None:
        self.graphs[who].close()
        self.graphs[who] = self.home.open()

    @rule(data=st.data(), name=ANYWHERE, who=WHO)
    def travel_in_time(self, data: st.DataObject, name: str, who: int) -> None:
        if name not in self.branches:
            return
        commit, content = data.draw(st.sampled_from(self.branches[name].commits))
        graph = self.graphs[who]
        assert self.read(graph, graph.snapshot_of(commit)) == content

    @invariant()
    def every_branch_is_what_the_dictionaries_say(self) -> None:
        if not hasattr(self, "branches"):
            return
        for graph in self.graphs:
            assert graph.branch_list() == ["main", *sorted(n for n in self.branches if n != "main")]
        for name, branch in self.branches.items():
            graph = self.graphs[len(branch.commits) % 2]
            snapshot = graph.snapshot(name)
            self.check_history(graph, name, branch)
            if self.looked_at.get(name) == (snapshot.tables, branch.content):
                continue
            found = self.read(graph, snapshot)
            assert dangling(found) == []
            assert found == branch.content, unlike([branch.content], found)
            for entry in snapshot.tables.values():
                if entry.table_branch == (None if name == "main" else name):
                    ref = graph.context.ref(entry.location, entry.table_branch)
                    assert head_version(ref, entry.table_version) == entry.table_version
            self.looked_at[name] = (snapshot.tables, branch.content)
        assert sidecars(self.place, self.home.uri) == []

    def check_history(self, graph: og.Graph, name: str, branch: Branch) -> None:
        commits = graph.list_commits(name)
        assert [c.graph_commit_id for c in reversed(commits)] == [commit for commit, _ in branch.commits]
        for newer, older in itertools.pairwise(commits):
            assert newer.parent_commit_id == older.graph_commit_id
            assert newer.created_at > older.created_at


def run(place: Place, folder: Path, size: tuple[int, int], derandomize: bool) -> None:
    run_state_machine_as_test(
        lambda: VerbLife(place, folder),
        settings=settings(
            max_examples=size[0],
            stateful_step_count=size[1],
            deadline=None,
            suppress_health_check=list(HealthCheck),
            derandomize=derandomize,
            database=None,
            print_blob=True,
            # Making a failing life shorter takes minutes, which only the long run has.
            phases=[Phase.generate] if derandomize else [Phase.generate, Phase.shrink],
        ),
    )


def place_in(where: str, tmp_path: Path, request: pytest.FixtureRequest) -> Place:
    return S3Place(request.getfixturevalue("s3_server")) if where == S3 else DiskPlace(tmp_path / "graphs")


@pytest.mark.slow
@pytest.mark.parametrize("where", LIVES)
def test_every_random_life_through_the_verbs_is_as_the_dictionaries_say(
    where: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    run(place_in(where, tmp_path, request), tmp_path, LIVES[where], derandomize=True)


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("where", DEEP_LIVES)
def test_every_longer_life_through_the_verbs_is_as_the_dictionaries_say(
    where: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Other lives in each run; a failure prints how to have the same one again."""
    run(place_in(where, tmp_path, request), tmp_path, DEEP_LIVES[where], derandomize=False)
