"""One random life of a graph with branches, held against the model after every step.

A seed makes the same life again: `Life(seed, folder, Tally()).run(steps)`. Two handles take turns, so that what one of
them remembers must not outlive what the other did. A death is an exception that no writer catches, at a failpoint; its
handle is thrown away, the graph is opened anew, and must be as before the step or as after it.
"""

from __future__ import annotations

import itertools
import json
import logging
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from state_actions import Action, Expected, Mutate, Write
from state_checks import assert_same, changed, check_refusal, heads, image_row, in_order, in_turn, place, settled
from state_draws import Draws
from state_model import COLUMNS, SCHEMA, Commit, Content, Line, Model, Row, empty, net
from state_verbs import POINTS, RECOVERY_POINTS, Create, Drop, Merge, Tag, Untag

import omnigraph as og
from omnigraph.base import failpoints
from omnigraph.storage.tables import head_version, open_table

SETTINGS = og.Settings(storage_durability="os", manifest_compact_fragments=12, projections_max_lag=6)
DEATH_EVERY, PROBE_EVERY, GOING_ON = 12, 3, 0.06
# How many actions are given a point to die at, and how many are drawn to find one that has something to do.
TRIES, DRAWS_MAX = 8, 20
# Points after which the world must show the step, and points before which nothing of it may ever be seen.
_SHOWN = ("post_manifest_commit_pre_phase_d", "post_phase_d", "post_manifest", "post_put", "post_delete")
_UNSEEN = ("pre_phase_a", "files_written", "post_create", "pre_manifest", "pre_put", "pre_delete")


class Died(BaseException):
    """A process that stops here: nothing after it runs, the system frees its locks."""


def die() -> None:
    raise Died


@dataclass
class Tally:
    """What happened over all lives."""

    steps: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    deaths: Counter[str] = field(default_factory=Counter)

    @property
    def never_met(self) -> set[str]:
        return {*RECOVERY_POINTS, *(point for _, point in POINTS)} - self.deaths.keys()

    def __str__(self) -> str:
        steps = ", ".join(f"{name} {n}" for name, n in self.steps.most_common())
        outcomes = ", ".join(f"{name} {n}" for name, n in self.outcomes.most_common())
        deaths = ", ".join(f"{name} {n}" for name, n in sorted(self.deaths.items()))
        return f"{self.steps.total()} steps ({steps}); {outcomes}; {self.deaths.total()} deaths ({deaths})"


class Leftovers(logging.Handler):
    """The names of deleted branches of which a fork had to stay, as their deletion says."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        assert isinstance(record.args, tuple)
        self.names.add(str(record.args[0]))


class Life:
    def __init__(self, seed: int, folder: Path, tally: Tally) -> None:
        self.seed, self.folder, self.tally = seed, folder, tally
        self.chance = random.Random(seed)
        self.uri = str(folder / f"life-{seed}")
        self.graphs = [og.Graph.init(self.uri, SCHEMA, settings=SETTINGS), self.opened()]
        self.model = Model(is_shown=self.is_shown)
        (genesis,) = self.graphs[0].list_commits()
        self.model.add(Commit(genesis.graph_commit_id, None, None, empty(), "main", genesis.manifest_version))
        self.draws = Draws(self.chance, self.model)
        # Where to die next: each life begins at another place, so that together they come to every one.
        self.points, self.recovery_points = in_turn(POINTS, seed * 9), in_turn(RECOVERY_POINTS, seed * 4)
        # The rows of table versions that were read; what a death or a deletion may have touched is read again.
        self.rows: dict[tuple[str, str | None, int], dict[str, Row]] = {}
        self.leftovers = Leftovers()
        probes = (self.probe_diff, self.probe_history, self.probe_past, self.probe_block, self.probe_log)
        self.probes = in_turn((*probes, self.probe_export), seed)
        self.turned = "main"
        self.due: tuple[type[Action], str] | None = None
        self.tries = 0
        self.trace: list[str] = []

    def opened(self, mode: str = "rw") -> og.Graph:
        return og.Graph.open(self.uri, mode, settings=SETTINGS)

    def run(self, steps: int) -> None:
        branches = logging.getLogger("omnigraph.branches")
        branches.addHandler(self.leftovers)
        try:
            for number in range(steps):
                self.step(number)
                self.check(number)
        except Exception as error:
            told = "\n".join(f"  {line}" for line in self.trace)
            raise AssertionError(
                f"seed {self.seed} at step {number}: {type(error).__name__}: {error}\nits steps:\n{told}"
            ) from error
        finally:
            branches.removeHandler(self.leftovers)
            failpoints.disarm_all()

    def step(self, number: int) -> None:
        who = self.chance.randrange(2)
        if number % DEATH_EVERY == 0 and self.due is None:
            self.due, self.tries = next(self.points), TRIES
        if self.chance.random() < GOING_ON:
            self.go_on(number, who)
            return
        action, point = self.chosen()
        self.tally.steps[type(action).__name__] += 1
        self.trace.append(f"{number} handle {who}: {action}{f' dies at {point}' if point else ''}")
        if not point:
            self.do(action, who)
            return
        # What the action did not come across is tried again by a later one.
        if self.has_died_in(action, who, point):
            self.due = None

    def chosen(self) -> tuple[Action, str]:
        """What to do, and where to die in it; without anything to die in, what leads there."""
        if self.due is None:
            return self.draws.action(), ""
        kind, point = self.due
        self.tries -= 1
        if not self.tries:
            self.due = None
        action = self.effective(kind)
        if action is not None:
            return action, point
        before: dict[type[Action], type[Action]] = {Drop: Create, Untag: Tag, Create: Drop, Tag: Untag, Merge: Write}
        return self.draws.of_kind(before.get(kind, Mutate)), ""

    def effective(self, kind: type[Action]) -> Action | None:
        """An action that has something to do, if one is found soon."""
        for _ in range(DRAWS_MAX):
            action = self.draws.of_kind(kind)
            expected = action.expected(self.model)
            controls = issubclass(kind, Create | Drop | Tag | Untag)
            if isinstance(action, kind) and not expected.errors and (expected.content is None) == controls:
                return action
        return None

    def go_on(self, number: int, who: int) -> None:
        """What changes nothing that a reader could see."""
        name = self.chance.choice(("reopen", "reopen", "refresh", "cleanup"))
        self.tally.steps[name] += 1
        self.trace.append(f"{number} handle {who}: {name}")
        match name:
            case "reopen":
                self.graphs[who].close()
                self.graphs[who] = self.opened()
            case "refresh":
                self.graphs[who].refresh()
            case "cleanup":
                self.clean_up(who)

    def clean_up(self, who: int) -> None:
        """Leftovers go, and no version that any commit shows."""
        self.graphs[who].cleanup(keep=1_000_000, confirm=True)
        self.leftovers.names.clear()
        self.rows.clear()

    def do(self, action: Action, who: int) -> None:
        graph, expected = self.graphs[who], action.expected(self.model)
        try:
            told = action.run(graph, self.model, self.folder)
        except og.OmniError as error:
            if "stale fork" in str(error) and any(f"'{name}'" in str(error) for name in self.leftovers.names):
                # A deletion of that name was cut short; the refusal says what to do about it.
                self.tally.outcomes["stale fork"] += 1
                self.clean_up(who)
                self.do(action, who)
                return
            self.tally.outcomes[type(error).__name__] += 1
            check_refusal(expected, error)
            return
        assert not expected.errors, f"went well, expected {expected.errors}: {expected.refused}"
        assert {name: told[name] for name in expected.told} == expected.told
        self.tally.outcomes[str(told.get("outcome", "done"))] += 1
        self.take_over(action, expected, graph)

    def has_died_in(self, action: Action, who: int, point: str) -> bool:
        """Arm the point and act; what was not on the way of the action stays armed for nobody."""
        expected = action.expected(self.model)
        skip = 0
        if point.endswith("mid_phase_b") and expected.content is not None:
            moved = {n.table_key for n in net(self.model.content(action.branch), expected.content)}
            skip = self.chance.randrange(max(1, len(moved)))
        failpoints.arm(point, die, skip)
        try:
            self.do(action, who)
            return False
        except Died:
            self.tally.deaths[point] += 1
        finally:
            failpoints.disarm_all()
        self.rows.clear()
        if point == "branch_delete.post_manifest":
            self.leftovers.names.add(action.branch)
        self.graphs[who] = self.recovered(point)
        landed = self.take_over(action, expected, self.graphs[who], died=True)
        self.trace.append(f"  {'after' if landed else 'before'} the step")
        window = point.rpartition(".")[2]
        assert landed or window not in _SHOWN, f"{point} came after the step was published"
        assert not landed or window not in _UNSEEN, f"{point} came before the step began"
        return True

    def recovered(self, point: str) -> og.Graph:
        """A new handle. Whoever opens the graph first may die of it, too; what readers saw before stays."""
        reader = self.opened("r")
        shown = heads(reader)
        if reader.recoveries().pending:
            # Only a write that died in the middle has tables to restore.
            middle = point.endswith("mid_phase_b")
            with self.dying_at("recovery.mid_phase_b" if middle else next(self.recovery_points)):
                self.opened()
        graph = self.opened()
        if point.endswith(_SHOWN):
            assert heads(graph) == shown, "what readers saw has changed"
        return graph

    @contextmanager
    def dying_at(self, point: str) -> Iterator[None]:
        failpoints.arm(point, die)
        try:
            yield
        except Died:
            self.tally.deaths[point] += 1
            self.trace.append(f"  the next to open it dies at {point}")
        finally:
            failpoints.disarm_all()

    def take_over(self, action: Action, expected: Expected, graph: og.Graph, died: bool = False) -> bool:
        """Let the model follow; whether the step took effect, which only a death leaves open."""
        match action:
            case Create():
                landed = not died or action.branch in graph.branch_list()
                if landed:
                    self.model.branches[action.branch] = Line(self.model.branches[action.source].head, action.source)
            case Drop():
                landed = not died or action.branch not in graph.branch_list()
                if landed:
                    self.rows.clear()
                    del self.model.branches[action.branch]
            case Tag():
                landed = not died or action.name in {tag.name for tag in graph.tag_list()}
                if landed:
                    self.model.tags[action.name] = action.spot.commit(self.model)
            case Untag():
                landed = not died or action.name not in {tag.name for tag in graph.tag_list()}
                if landed:
                    del self.model.tags[action.name]
            case _:
                landed = self.take_commits(action.branch, expected, graph, died)
        if isinstance(action, Merge) and not died and expected.told.get("deleted"):
            del self.model.branches[action.source]
        return landed

    def take_commits(self, branch: str, expected: Expected, graph: og.Graph, died: bool) -> bool:
        known = set(self.model.chain(branch))
        new = [c for c in reversed(graph.list_commits(branch)) if c.graph_commit_id not in known]
        if not died:
            allowed = (0, 1) if expected.perhaps else (0,) if expected.content is None else (1,)
            assert len(new) in allowed, f"{len(new)} new commits"
        landed = False
        before = self.model.content(branch)
        self.turned = branch
        for commit in new:
            head = self.model.branches[branch].head
            assert commit.parent_commit_id == head
            content, second = before, None
            if not commit.is_roll_back:
                assert not landed, "the step was committed twice"
                landed, second = True, expected.second
                assert expected.content is not None
                newest = commit is new[-1]
                shown = graph.snapshot(branch) if newest else graph.snapshot_of(commit.graph_commit_id)
                content = settled(expected.content, self.read(graph, shown))
            assert commit.merged_parent_commit_id == second
            assert not commit.is_roll_back or died
            self.model.add(Commit(commit.graph_commit_id, head, second, content, branch, commit.manifest_version))
        return landed

    def read(self, graph: og.Graph, snapshot: og.Snapshot, again: bool = False) -> Content:
        """What a snapshot pins; `again`: also what was read before, for pinned versions never change."""
        content: Content = {}
        for key, entry in snapshot.tables.items():
            at = (entry.location, entry.table_branch, entry.table_version)
            if again or at not in self.rows:
                table = open_table(graph.context.ref(entry.location, entry.table_branch), entry.table_version, key)
                rows = table.read(["id", *COLUMNS[key]]).to_pylist()
                assert len(rows) == entry.row_count
                self.rows[at] = {row["id"]: tuple(row[n] for n in COLUMNS[key]) for row in rows}
                assert len(self.rows[at]) == len(rows), "an id occurs twice"
            content[key] = self.rows[at]
        return content

    def is_shown(self, branch: str) -> bool:
        graph = self.graphs[0]
        others = [graph.snapshot(name) for name in self.model.branches if name != branch]
        tagged = [graph.snapshot_of(commit) for commit in self.model.tags.values()]
        return any(e.table_branch == branch for s in (*others, *tagged) for e in s.tables.values())

    def check(self, number: int) -> None:
        graph = self.graphs[number % 2]
        model = self.model
        assert graph.branch_list() == ["main", *sorted(n for n in model.branches if n != "main")]
        for name in model.branches:
            snapshot = graph.snapshot(name)
            assert snapshot.graph_commit_id == model.branches[name].head
            assert_same(model.content(name), self.read(graph, snapshot))
            if name == self.turned:
                self.check_pins(graph, name, snapshot)
        if number % PROBE_EVERY == 0:
            next(self.probes)(graph)

    def check_pins(self, graph: og.Graph, name: str, snapshot: og.Snapshot) -> None:
        """Every table of the branch's own lies at its pin; nothing waits to be settled."""
        for entry in snapshot.tables.values():
            if entry.table_branch == (None if name == "main" else name):
                ref = graph.context.ref(entry.location, entry.table_branch)
                assert head_version(ref, entry.table_version) == entry.table_version
        assert not list(Path(self.uri).glob("__recovery/*.json"))

    def any_commit(self) -> str:
        return self.chance.choice(sorted(self.model.visible()))

    def probe_export(self, graph: og.Graph) -> None:
        for name in self.model.branches:
            found = empty()
            for line in map(json.loads, b"".join(graph.export(branch=name)).splitlines()):
                key = f"node:{line['type']}" if "type" in line else f"edge:{line['edge']}"
                cells = {"src": line.get("from"), "dst": line.get("to"), **line["data"]}
                found[key][line["data"]["id"]] = tuple(cells[c] for c in COLUMNS[key])
            assert_same(self.model.content(name), found)

    def probe_diff(self, graph: og.Graph) -> None:
        one, two = self.any_commit(), self.any_commit()
        wanted = net(self.model.commits[one].content, self.model.commits[two].content)
        assert [changed(c) for c in graph.diff(one, two).changes] == in_order(wanted)

    def probe_block(self, graph: og.Graph) -> None:
        commit = self.model.commits[self.any_commit()]
        if commit.parent is not None:
            wanted = net(self.model.commits[commit.parent].content, commit.content)
            found = [changed(c) for c in graph.commit_changes(commit.id_).changes]
            assert sorted(found, key=place) == in_order(wanted)

    def probe_history(self, graph: og.Graph) -> None:
        name = self.draws.live()
        key, id_ = self.draws.stored(self.model.content(name))
        wanted = self.model.past(name, key, id_)
        try:
            found = graph.history(key, id_, branch=name)
        except og.NotFound:
            found = []
        assert [(p.cause.graph_commit_id, p.op) for p in found if p.cause] == [(c, n.op) for c, n in wanted]
        assert [(image_row(key, p.before), image_row(key, p.after)) for p in found] == [
            (n.before, n.after) for _, n in wanted
        ]

    def probe_past(self, graph: og.Graph) -> None:
        commit = self.any_commit()
        assert_same(self.model.commits[commit].content, self.read(graph, graph.snapshot_of(commit), again=True))

    def probe_log(self, graph: og.Graph) -> None:
        for name in self.model.branches:
            commits = graph.list_commits(name)
            chain = [self.model.commits[c] for c in self.model.chain(name)]
            told = [(c.graph_commit_id, c.parent_commit_id, c.merged_parent_commit_id) for c in commits]
            assert told == [(c.id_, c.parent, c.merged) for c in chain]
            assert all(newer.created_at > older.created_at for newer, older in itertools.pairwise(commits))
        assert {tag.name: tag.graph_commit_id for tag in graph.tag_list()} == self.model.tags
        for tag, commit in self.model.tags.items():
            assert_same(self.model.commits[commit].content, self.read(graph, graph.snapshot_of(tag), again=True))
