"""The net row changes between two states of a table are exact, and cost what was written between them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from changes_scene import SCHEMA, VALUES, P, key_of, people, stored
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import omnigraph as og
from omnigraph.engine.changes import net
from omnigraph.engine.changes.row_ids import only_in_one
from omnigraph.engine.changes.rows import row_changes
from omnigraph.engine.write import parted
from omnigraph.engine.write.spool import RowSpool
from omnigraph.sets.scratch import Scratch
from omnigraph.storage.deletions import deleted_offsets
from omnigraph.storage.places import open_root
from omnigraph.storage.tables import Table, TableRef, open_table

pytestmark = pytest.mark.slow


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return og.Graph.init(str(tmp_path / "graph"), SCHEMA)


@pytest.fixture
def scratch() -> Iterator[Scratch]:
    with Scratch(og.Settings()) as made:
        yield made


def table_at(graph: og.Graph, target: str, key: str = P) -> Table:
    entry = graph.snapshot_of(target).tables[key]
    return open_table(graph.context.ref(entry.location, entry.table_branch), entry.table_version, key)


def found(graph: og.Graph, scratch: Scratch, one: str, two: str, key: str = P) -> dict[str, tuple[Any, Any]]:
    fields = graph.catalog.arrow_schema(key)
    changes = row_changes(scratch, table_at(graph, one, key), table_at(graph, two, key), fields)
    told: dict[str, tuple[Any, Any]] = {}
    ids: list[str] = []
    for piece in changes.images():
        ids += piece.ids
        before, after = piece.before.to_pylist(), piece.after.to_pylist()
        for i, name in enumerate(piece.ids):
            told[name] = (before[i] if piece.had[i] else None, after[i] if piece.has[i] else None)
    assert ids == sorted(ids)
    assert len(ids) == changes.num_rows == len(told)
    return told


def expected(graph: og.Graph, one: str, two: str, key: str = P) -> dict[str, tuple[Any, Any]]:
    old, new = stored(graph, one, key), stored(graph, two, key)
    pairs = {name: (old.get(name), new.get(name)) for name in old.keys() | new.keys()}
    return {name: pair for name, pair in pairs.items() if key_of(pair[0]) != key_of(pair[1])}


def same(told: dict[str, tuple[Any, Any]], wanted: dict[str, tuple[Any, Any]]) -> bool:
    keyed = [{n: (key_of(p[0]), key_of(p[1])) for n, p in rows.items()} for rows in (told, wanted)]
    return keyed[0] == keyed[1]


def put(graph: og.Graph, *rows: dict[str, Any], branch: str | None = None) -> str:
    return graph.write({P: og.Upsert(people(graph, list(rows)))}, branch=branch).graph_commit_id


@pytest.mark.parametrize("name", sorted(VALUES))
def test_values_differ_exactly_when_a_reader_could_tell_them_apart(
    graph: og.Graph, scratch: Scratch, name: str
) -> None:
    values = VALUES[name]
    pairs = [(one, two) for one in values for two in values]
    put(graph, *({"id": f"{i:03}", name: one} for i, (one, _) in enumerate(pairs)))
    put(graph, *({"id": f"{i:03}", name: two} for i, (_, two) in enumerate(pairs)))
    told, wanted = found(graph, scratch, "main~1", "main"), expected(graph, "main~1", "main")
    assert len(wanted) == len(values) * (len(values) - 1)
    assert same(told, wanted)


def test_days_and_moments_beyond_any_calendar_are_told_apart(graph: og.Graph, scratch: Scratch) -> None:
    schema = graph.catalog.arrow_schema(P)
    for last in (2**62, 2**62 + 1):
        row: dict[str, Any] = {n: pa.nulls(1, schema.field(n).type) for n in schema.names}
        row |= {"id": pa.array(["a"]), "name": pa.array(["a"])}
        row["seen"] = pa.array([last]).view(schema.field("seen").type)
        row["born"] = pa.array([2**31 - (1 if last == 2**62 else 2)], pa.int32()).view(pa.date32())
        graph.write({P: og.Upsert(pa.table(row, schema=schema))})
    changes = row_changes(scratch, table_at(graph, "main~1"), table_at(graph, "main"), schema)
    (piece,) = changes.images()
    assert [piece.before.column("seen").view(pa.int64())[0].as_py()] == [2**62]
    assert [piece.after.column("seen").view(pa.int64())[0].as_py()] == [2**62 + 1]
    assert piece.after.column("born").view(pa.int32())[0].as_py() == 2**31 - 2


_ids = st.sampled_from([f"p{i}" for i in range(12)])
_rows = st.fixed_dictionaries({"id": _ids}, optional={n: st.sampled_from(v) for n, v in VALUES.items()})
_steps = st.one_of(
    st.tuples(st.just("put"), st.lists(_rows, min_size=1, max_size=5, unique_by=lambda row: row["id"])),
    st.tuples(st.just("delete"), st.lists(_ids, min_size=1, max_size=4, unique=True)),
    st.tuples(st.just("compact"), st.none()),
    st.tuples(st.just("overwrite"), st.lists(_rows, max_size=4, unique_by=lambda row: row["id"])),
)


def act(graph: og.Graph, branch: str, kind: str, what: Any) -> None:
    match kind:
        case "put":
            put(graph, *what, branch=branch)
        case "delete":
            here = [name for name in what if name in stored(graph, branch)]
            if here:
                graph.write({P: og.Delete(tuple(here))}, branch=branch)
        case "overwrite":
            graph.write({P: og.Overwrite(people(graph, what))}, branch=branch)
        case _:
            graph.write({P: og.Compact()}, branch=branch)


@pytest.mark.slow
@settings(max_examples=12, deadline=None, phases=[Phase.generate], database=None)
@given(steps=st.lists(st.tuples(st.sampled_from(["main", "b1", "b2"]), _steps), min_size=4, max_size=12))
def test_any_two_commits_of_any_branches_differ_by_exactly_the_rows_that_differ(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, tuple[str, Any]]]
) -> None:
    graph = og.Graph.init(str(tmp_path_factory.mktemp("any") / "graph"), SCHEMA)
    put(graph, *({"id": f"p{i}", "age": i} for i in range(8)))
    live = {"main"}
    for branch, (kind, what) in steps:
        if branch not in live:
            graph.branch_create_from("b1" if branch == "b2" and "b1" in live else "main", branch)
            live.add(branch)
        act(graph, branch, kind, what)
    targets = sorted({c.graph_commit_id for branch in live for c in graph.list_commits(branch)})
    with Scratch(og.Settings()) as scratch:
        for one in targets:
            for two in targets[:: 1 + len(targets) // 6]:
                assert same(found(graph, scratch, one, two), expected(graph, one, two)), (one, two)


def lots(graph: og.Graph, count: int) -> None:
    ids = [f"{i:07}" for i in range(count)]
    schema = graph.catalog.arrow_schema(P)
    columns = {f.name: pa.array(ids) if f.name in ("id", "name") else pa.nulls(count, f.type) for f in schema}
    graph.write({P: og.Append(pa.table(columns, schema=schema))})


def bytes_read(graph: og.Graph, scratch: Scratch, one: str, two: str) -> tuple[int, int]:
    """How many rows differ, and what was read of data files to know it."""
    before, after = table_at(graph, one), table_at(graph, two)
    for table in (before, after):
        table.dataset.io_stats_incremental()
    changes = row_changes(scratch, before, after, graph.catalog.arrow_schema(P))
    return changes.num_rows, sum(int(t.dataset.io_stats_incremental().read_bytes) for t in (before, after))


@pytest.mark.parametrize("compacted", [False, True])
def test_what_is_read_follows_what_changed_not_how_much_there_is(
    tmp_path: Path, scratch: Scratch, compacted: bool
) -> None:
    read = {}
    for count in (2_000, 40_000):
        graph = og.Graph.init(str(tmp_path / str(count)), SCHEMA)
        lots(graph, count)
        put(graph, *({"id": f"{i:07}", "age": 1} for i in range(0, 1000, 50)))
        if compacted:
            graph.write({P: og.Compact()})
            assert table_at(graph, "main").fragment_count() == 1
        start = "main~2" if compacted else "main~1"
        changed, read[count] = bytes_read(graph, scratch, start, "main")
        assert changed == 20
        whole = table_at(graph, "main").dataset
        whole.io_stats_incremental()
        whole.to_table()
        assert read[count] < int(whole.io_stats_incremental().read_bytes) or count == 2_000
    assert read[40_000] < 4 * read[2_000]


def test_the_same_state_is_not_read_at_all(graph: og.Graph, scratch: Scratch) -> None:
    put(graph, {"id": "a"})
    put(graph, {"id": "b"})
    assert bytes_read(graph, scratch, "main", "main") == (0, 0)


@pytest.mark.parametrize("count", [3, 70_000])
def test_the_file_of_deletions_says_the_same_as_the_table(graph: og.Graph, count: int) -> None:
    lots(graph, 100_000)
    graph.write({P: og.DeleteWhere(f"id < '{count:07}' OR id IN ('0080000', '0099999')")})
    table = table_at(graph, "main")
    (fragment,) = table.dataset.get_fragments()
    kind = fragment.metadata.deletion_file.file_type
    assert kind == ("array" if count == 3 else "bitmap")
    assert deleted_offsets(table, fragment).tolist() == [*range(count), 80_000, 99_999]


def test_a_fork_finds_the_deletions_it_inherited(graph: og.Graph, scratch: Scratch) -> None:
    put(graph, *({"id": f"p{i}"} for i in range(9)))
    graph.write({P: og.Delete(("p1",))})
    graph.branch_create("draft")
    put(graph, {"id": "p2", "age": 1}, branch="draft")
    graph.write({P: og.Delete(("p3",))})
    assert {n: op[1] is None for n, op in found(graph, scratch, "main", "draft").items()} == {"p2": False, "p3": False}
    table = table_at(graph, "draft")
    assert np.concatenate([deleted_offsets(table, f) for f in table.dataset.get_fragments()]).tolist() == [1, 2]


def test_branches_that_deleted_as_many_rows_as_each_other_still_differ(graph: og.Graph, scratch: Scratch) -> None:
    put(graph, *({"id": f"p{i}"} for i in range(9)))
    graph.branch_create("draft")
    graph.write({P: og.Delete(("p1",))})
    graph.write({P: og.Delete(("p2",))}, branch="draft")
    assert sorted(found(graph, scratch, "main", "draft")) == ["p1", "p2"]


def test_rows_beyond_the_memory_allowed_are_compared_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spill, spilled = tmp_path / "spill", []
    plain = RowSpool.spill
    monkeypatch.setattr(RowSpool, "spill", lambda spool: (spilled.append(spool), plain(spool)))
    settings = og.Settings(limits_memory_bytes=4 << 20, limits_spill_dir=str(spill))
    graph = og.Graph.init(str(tmp_path / "graph"), SCHEMA)
    lots(graph, 60_000)
    graph.write({P: og.Overwrite(graph.view().table(P).read())})
    put(graph, {"id": "0000007", "age": 1})
    with Scratch(settings) as scratch:
        changes = row_changes(
            scratch, table_at(graph, "main~2"), table_at(graph, "main"), graph.catalog.arrow_schema(P)
        )
        assert [piece.ids for piece in changes.images()] == [["0000007"]]
        assert spilled
    assert not list(spill.rglob("*.arrow"))


@pytest.mark.parametrize("marks_max", [8, 1 << 20])
def test_row_ids_of_one_set_only_are_found_in_memory_and_on_disk(scratch: Scratch, marks_max: int) -> None:
    here, there = {1, 2, 5, 900, 901}, {2, 3, 5, 901, 70_000}

    def read(numbers: set[int]) -> list[np.ndarray[Any, Any]]:
        ordered = np.array(sorted(numbers), np.uint64)
        return [ordered[:2], ordered[2:2], ordered[2:]]

    found = only_in_one(scratch, lambda: read(here), lambda: read(there), marks_max)
    assert [sorted(int(n) for part in parts for n in part) for parts in found] == [[1, 900], [3, 70_000]]


def test_tables_of_old_graphs_without_stable_row_ids_are_compared_by_id(tmp_path: Path, scratch: Scratch) -> None:
    ref = TableRef(open_root(str(tmp_path)), "nodes/old")
    rows = pa.table({"id": ["a", "b", "c"], "v": pa.array([1, 2, 3], pa.int32())})
    dataset = lance.write_dataset(rows, ref.uri, enable_stable_row_ids=False)
    dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(
        pa.table({"id": ["b", "c", "d"], "v": pa.array([2, 4, 5], pa.int32())})
    )
    dataset = lance.dataset(ref.uri)
    dataset.delete("id = 'a'")
    dataset.optimize.compact_files()
    before, after = open_table(ref, 1), open_table(ref, lance.dataset(ref.uri).version)
    assert not after.has_stable_row_ids
    ids = [name for piece in row_changes(scratch, before, after, rows.schema).images() for name in piece.ids]
    assert ids == ["a", "c", "d"]


def test_a_state_that_cleanup_takes_away_while_it_is_read_is_reclaimed(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(graph, {"id": "a"})
    for age in (1, 2):
        graph.write({P: og.Overwrite(people(graph, [{"id": "a", "age": age}]))})
    plain = net.open_pair

    def opened(*arguments: Any) -> Any:
        pair = plain(*arguments)
        og.Graph.open(graph.uri).cleanup(keep=1, confirm=True)
        return pair

    monkeypatch.setattr(net, "open_pair", opened)
    with pytest.raises(og.Reclaimed, match=r"historical version \d+ of node:Person was reclaimed"):
        graph.diff("main~1", "main")


def test_very_many_deletions_of_one_fragment_are_found_in_either_direction(graph: og.Graph, scratch: Scratch) -> None:
    lots(graph, 50_000)
    graph.write({P: og.DeleteWhere("id < '0030000'")})
    gone = found(graph, scratch, "main~1", "main")
    assert sorted(gone) == [f"{i:07}" for i in range(30_000)]
    assert all(before and after is None for before, after in gone.values())
    assert all(before is None and after for before, after in found(graph, scratch, "main", "main~1").values())


def test_properties_whose_names_differ_only_in_case_are_two(tmp_path: Path) -> None:
    graph = og.Graph.init(str(tmp_path / "case"), "node T { name: String @key age: I32? aGe: I32? before: I32? }")
    for value in (2, 3):
        rows = pa.table({"id": ["a"], "name": ["a"], "age": [1], "aGe": [value]})
        graph.write({"node:T": og.Upsert(rows)})
    (change,) = graph.diff("main~1", "main").changes
    assert change.before is not None
    assert change.after is not None
    assert (change.before.properties["aGe"], change.after.properties["aGe"]) == (2, 3)
    assert change.before.properties["age"] == change.after.properties["age"] == 1


@pytest.mark.parametrize("room", [8, 4_000, 20_000])
def test_rows_compared_in_parts_are_those_compared_at_once_in_the_same_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    graph = og.Graph.init(str(tmp_path / "graph"), SCHEMA)
    lots(graph, 20_000)
    graph.write({P: og.Overwrite(graph.view().table(P).read())})
    put(graph, *({"id": f"{n:07d}", "age": -n} for n in range(1, 20_000, 3)), {"id": "é", "age": 1}, {"id": "z😀"})
    graph.write({P: og.Delete(tuple(f"{n:07d}" for n in range(0, 20_000, 500)))})
    asked: list[int] = []
    real = Scratch.stream
    monkeypatch.setattr(Scratch, "stream", lambda self, *a: (asked.append(1), real(self, *a))[1])
    monkeypatch.setattr(parted, "_ROOM", room)
    with Scratch(og.Settings(limits_memory_bytes=128 << 20)) as scratch:
        changes = row_changes(
            scratch, table_at(graph, "main~3"), table_at(graph, "main"), graph.catalog.arrow_schema(P)
        )
        ids = [name for piece in changes.images() for name in piece.ids]
        assert ids == sorted(ids, key=str.encode)
        wanted = {f"{n:07d}" for n in range(1, 20_000, 3)} | {f"{n:07d}" for n in range(0, 20_000, 500)} | {"é", "z😀"}
        assert set(ids) == wanted
        assert len(ids) == len(wanted)
        since = [name for piece in changes.images(b"0015") for name in piece.ids]
        assert [name for name in ids if name >= "0015"] == [name for name in since if name >= "0015"]
    assert (sum(asked) > 2) == (room > 8)
