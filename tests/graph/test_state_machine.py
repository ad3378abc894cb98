"""Random lives of a graph: written, crashed, reopened, read at any version; always as the dictionaries say."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from dict_model import TABLES, Content, DictModel, Edit, Row
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import omnigraph as og
from graph_places import DISK, S3, DiskPlace, Home, Place, S3Place, sidecars
from omnigraph.base import failpoints
from omnigraph.commit.plan import LOAD, MUTATION, OPTIMIZE, Writer
from omnigraph.engine.write.changes import Change
from omnigraph.storage.stage import IndexKind, IndexSpec
from omnigraph.storage.tables import head_version, open_table

SCHEMA = "node Person { name: String age: I32? }\nnode City { name: String age: I32? }"
IDS = st.sampled_from([f"k{i}" for i in range(8)] + ["it's", 'a"b', "ключ"])
ROWS = st.dictionaries(IDS, st.tuples(st.none() | st.integers(0, 9), st.text(max_size=3)), max_size=5)
OFTEN = {"manifest_compact_fragments": 7, "projections_max_lag": 3}
# Examples and steps of each; a step on a server costs ten times what it costs on a disk.
LIVES = {DISK: (16, 25), S3: (6, 18)}
DEEP_LIVES = {DISK: (100, 40), S3: (20, 25)}


class Died(BaseException):
    """A process that stops here: nothing after it runs, the system frees its locks."""


def die() -> None:
    raise Died


@st.composite
def edits(draw: st.DrawFn) -> dict[str, Edit]:
    chosen: dict[str, Edit] = {}
    for table in draw(st.lists(st.sampled_from(TABLES), min_size=1, max_size=2, unique=True)):
        kind = draw(st.sampled_from(["append", "upsert", "delete", "delete_where", "overwrite", "compact"]))
        rows = draw(ROWS) if kind in ("append", "upsert", "overwrite") else {}
        ids = draw(st.lists(IDS, max_size=4, unique=True)) if kind in ("upsert", "delete") else []
        chosen[table] = Edit(kind, rows, tuple(i for i in ids if i not in rows))
    return chosen


def arrow(rows: Mapping[str, Row]) -> pa.Table:
    columns = {
        "id": pa.array(list(rows), pa.string()),
        "name": pa.array([r[1] for r in rows.values()], pa.string()),
        "age": pa.array([r[0] for r in rows.values()], pa.int32()),
    }
    return pa.table(columns)


def change(edit: Edit) -> Change:
    match edit.kind:
        case "append":
            return og.Append(arrow(edit.rows))
        case "upsert":
            return og.Upsert(arrow(edit.rows), edit.ids)
        case "delete":
            return og.Delete(edit.ids)
        case "delete_where":
            return og.DeleteWhere("age < 5")
        case "overwrite":
            return og.Overwrite(arrow(edit.rows))
        case "index":
            return og.BuildIndexes((IndexSpec("id", IndexKind.BTREE),))
    return og.Compact()


def writer_of(chosen: Mapping[str, Edit]) -> Writer:
    if all(e.kind == "compact" for e in chosen.values()):
        return OPTIMIZE
    return LOAD if any(e.kind == "overwrite" for e in chosen.values()) else MUTATION


class GraphLife(RuleBasedStateMachine):
    def __init__(self, place: Place) -> None:
        super().__init__()
        self.place = place

    @initialize()
    def begin(self) -> None:
        failpoints.disarm_all()
        self.home = Home(self.place.fresh(), replace(self.place.settings, **OFTEN))
        self.graph = self.home.init(SCHEMA)
        self.model = DictModel()
        snapshot = self.graph.snapshot()
        self.model.committed(snapshot.version, snapshot.graph_commit_id or "", self.model.content)

    def teardown(self) -> None:
        failpoints.disarm_all()
        if hasattr(self, "home"):
            self.place.remove(self.home.uri)

    def read(self, snapshot: og.Snapshot) -> Content:
        content: Content = {}
        for key, entry in snapshot.tables.items():
            table = open_table(self.graph.context.ref(entry.location, entry.table_branch), entry.table_version, key)
            rows = table.read(["id", "age", "name"]).to_pylist()
            assert len(rows) == entry.row_count
            content[key] = {r["id"]: (r["age"], r["name"]) for r in rows}
            assert len(content[key]) == len(rows), "no id occurs twice"
        return content

    def commit(self, chosen: Mapping[str, Edit], writer: Writer) -> None:
        expected = self.model.after(chosen)
        changes = {table: change(edit) for table, edit in chosen.items()}
        if expected is None:
            with pytest.raises(og.KeyConflict):
                self.graph.write(changes, writer=writer)
            return
        receipt = self.graph.write(changes, writer=writer)
        self.model.committed(receipt.graph_version, receipt.graph_commit_id, expected)

    @rule(chosen=edits())
    def write(self, chosen: dict[str, Edit]) -> None:
        self.commit(chosen, writer_of(chosen))

    @precondition(lambda self: any(self.model.content.values()))
    @rule(table=st.sampled_from(TABLES))
    def index(self, table: str) -> None:
        entry = self.graph.snapshot().tables[table]
        opened = open_table(self.graph.context.ref(entry.location, None), entry.table_version)
        if entry.row_count and not opened.dataset.describe_indices():
            self.commit({table: Edit("index")}, LOAD)

    @rule(chosen=edits(), window=st.sampled_from(failpoints.WINDOWS), skip=st.integers(0, 1))
    def die_while_writing(self, chosen: dict[str, Edit], window: str, skip: int) -> None:
        writer, after = writer_of(chosen), self.model.after(chosen)
        if after is None:
            return
        failpoints.arm(f"{writer.name}.{window}", die, skip if window == "mid_phase_b" else 0)
        try:
            receipt = self.graph.write({t: change(e) for t, e in chosen.items()}, writer=writer)
            self.model.committed(receipt.graph_version, receipt.graph_commit_id, after)
        except Died:
            self.reopen_after_death(after, window)
        finally:
            failpoints.disarm_all()

    def reopen_after_death(self, after: Content, window: str) -> None:
        unseen = self.home.open("r")
        visible = window in ("post_manifest_commit_pre_phase_d", "post_phase_d")
        assert self.read(unseen.snapshot()) == (after if visible else self.model.content)
        self.graph = self.home.open()
        found = self.read(self.graph.snapshot())
        assert found == after if visible else found in (self.model.content, after)
        for commit in reversed(self.graph.list_commits()[: -len(self.model.commit_ids)]):
            self.model.committed(commit.manifest_version, commit.graph_commit_id, found)

    @rule()
    def reopen(self) -> None:
        self.graph.close()
        self.graph = self.home.open()

    @rule()
    def refresh(self) -> None:
        self.graph.refresh()

    @rule(data=st.data())
    def travel_in_time(self, data: st.DataObject) -> None:
        version = data.draw(st.integers(1, self.graph.snapshot().version))
        assert self.read(self.graph.snapshot_at_version(version)) == self.model.at(version)
        table = data.draw(st.sampled_from(TABLES))
        key = data.draw(IDS)
        entity = self.graph.entity_at(table, key, version)
        stored = self.model.at(version)[table].get(key)
        assert (entity is None) == (stored is None)
        if entity is not None and stored is not None:
            assert (entity["id"], entity["age"], entity["name"]) == (key, *stored)

    @invariant()
    def the_graph_is_what_the_model_says(self) -> None:
        if not hasattr(self, "model"):
            return
        assert self.read(self.graph.snapshot()) == self.model.content
        commits = self.graph.list_commits()
        assert [c.graph_commit_id for c in reversed(commits)] == self.model.commit_ids
        for newer, older in itertools.pairwise(commits):
            assert newer.parent_commit_id == older.graph_commit_id
            assert newer.created_at > older.created_at
        for entry in self.graph.snapshot().tables.values():
            assert (
                head_version(self.graph.context.ref(entry.location, None), entry.table_version) == entry.table_version
            )
        assert sidecars(self.place, self.home.uri) == []


def run(where: str, tmp_path: Path, request: pytest.FixtureRequest, size: tuple[int, int], derandomize: bool) -> None:
    place = S3Place(request.getfixturevalue("s3_server")) if where == S3 else DiskPlace(tmp_path)
    run_state_machine_as_test(
        lambda: GraphLife(place),
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


@pytest.mark.slow
@pytest.mark.parametrize("where", LIVES)
def test_every_random_life_of_a_graph_is_as_the_dictionaries_say(
    where: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    run(where, tmp_path, request, LIVES[where], derandomize=True)


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("where", DEEP_LIVES)
def test_every_longer_life_of_a_graph_is_as_the_dictionaries_say(
    where: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Other lives in each run; a failure prints how to have the same one again."""
    run(where, tmp_path, request, DEEP_LIVES[where], derandomize=False)
