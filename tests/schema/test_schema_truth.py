"""Which schema is in force is told by the commits of main; files that tell something else are noticed or mended."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from apply_scene import FILES, SCHEMA, leftovers, made, rows

import omnigraph as og
from omnigraph.base import failpoints
from omnigraph.base.errors import Conflict
from omnigraph.manifest import layout

FIRST = "node A { name: String @key  note: String? }\n"
WITH_X = "node A { name: String @key  note: String?  x: I32? }\n"
WITHOUT_NOTE = "node A { name: String @key  x: I32? }\n"
MORE = SCHEMA.replace("note: String?", "note: String?  joined: Date?")
DIFFERS = "newest schema commit of main recorded"
_WAIT_S_MAX = 60


class Dead(BaseException):
    """Ends an apply in this process as death would."""


def _die() -> None:
    raise Dead


@pytest.fixture(autouse=True)
def _disarmed() -> Iterator[None]:
    yield
    failpoints.disarm_all()


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return made(tmp_path / "g")


def _copied(graph: og.Graph) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in (Path(graph.uri, key) for key in FILES)}


def _put_back(copied: dict[Path, bytes]) -> None:
    for path, data in copied.items():
        path.write_bytes(data)


def _refused(graph: og.Graph) -> None:
    """Nobody reads or writes by a schema that is not the one in force, and verify says so."""
    for mode in ("r", "rw"):
        with pytest.raises(Conflict, match=DIFFERS) as refused:
            og.Graph.open(graph.uri, mode)
        assert "Restore the three schema files" in refused.value.hint
    (found,) = [f for f in og.verify(graph.uri).findings if f.finding.value == "schema_contract"]
    assert DIFFERS in found.message


class _Turns:
    """Two applies beside a reader: the first is held in its renames, the second dies with its files staged."""

    def __init__(self, uri: str) -> None:
        self._first, self._second = og.Graph.open(uri), og.Graph.open(uri)
        self._renaming, self._rename, self._staged, self._give_up = (threading.Event() for _ in range(4))
        self._threads = [threading.Thread(target=self._apply, args=(g, s), daemon=True) for g, s in self._applies()]
        failpoints.arm("schema_apply.mid_schema_renames", lambda: self._hold(self._renaming, self._rename))
        self._threads[0].start()
        assert self._renaming.wait(_WAIT_S_MAX)

    def _applies(self) -> list[tuple[og.Graph, str]]:
        return [(self._first, WITH_X), (self._second, WITHOUT_NOTE)]

    @staticmethod
    def _apply(graph: og.Graph, source: str) -> None:
        try:
            graph.schema_apply(source)
        except og.OmniError:
            return

    @staticmethod
    def _hold(reached: threading.Event, until: threading.Event) -> None:
        reached.set()
        until.wait(_WAIT_S_MAX)

    def end_first_and_stage_second(self) -> None:
        self._rename.set()
        self._threads[0].join()
        failpoints.arm("schema_apply.post_phase_a_pre_phase_b", self._stay_unpublished)
        self._threads[1].start()
        assert self._staged.wait(_WAIT_S_MAX)

    def _stay_unpublished(self) -> None:
        self._hold(self._staged, self._give_up)
        failpoints.fail()

    def end(self) -> None:
        self._give_up.set()
        self._threads[1].join()


def test_a_reader_never_takes_a_schema_that_was_not_published(tmp_path: Path, monkeypatch: Any) -> None:
    uri = og.Graph.init(str(tmp_path / "g"), FIRST).uri
    og.Graph.open(uri).mutate('query q() { insert A { name: "a", note: "precious" } }')
    reader = og.Graph.open(uri)
    objects, turns = reader.context.objects, _Turns(uri)
    real, met = objects.get, []

    def get(key: str) -> Any:
        found = real(key)
        if "state" in key and not met:
            met.append(key)
            turns.end_first_and_stage_second()
        return found

    monkeypatch.setattr(objects, "get", get)
    assert reader.schema().source == WITH_X
    monkeypatch.setattr(objects, "get", real)
    turns.end()
    assert met
    assert reader.schema().source == WITH_X
    assert rows(reader, "node:A") == [{"id": "a", "name": "a", "note": "precious", "x": None}]
    assert leftovers(og.Graph.open(uri)) == []


@pytest.mark.parametrize("number", range(3))
def test_an_apply_whose_files_were_lost_after_the_publish_is_not_forgotten(graph: og.Graph, number: int) -> None:
    """The sidecar and what is left of the files stay until they can be put in place."""
    failpoints.arm("schema_apply.post_manifest_commit_pre_phase_d", _die)
    with pytest.raises(Dead):
        graph.schema_apply(MORE)
    record = sorted(Path(graph.uri, layout.SCHEMA_DIR).iterdir())
    kept = record[number].read_bytes()
    record[number].write_bytes(b"")
    _refused(graph)
    assert sorted(Path(graph.uri, layout.SCHEMA_DIR).iterdir()) == record
    assert len(graph.context.objects.list(layout.RECOVERY_DIR)) == 1
    record[number].write_bytes(kept)
    again = og.Graph.open(graph.uri)
    assert again.schema().source == MORE
    assert leftovers(again) == []


def test_schema_files_of_before_an_apply_are_not_taken_for_the_schema_in_force(graph: og.Graph) -> None:
    """Without the record of the apply, as in a backup that has neither, nobody may guess."""
    old = _copied(graph)
    graph.schema_apply(MORE)
    new = _copied(graph)
    graph.mutate('query q() { update Person set { joined: date("2020-01-02") } where name = "ana" }')
    for path in Path(graph.uri, layout.SCHEMA_DIR).iterdir():
        path.unlink()
    assert og.Graph.open(graph.uri, "r").schema().source == MORE
    _put_back(old)
    _refused(graph)
    _put_back(new)
    again = og.Graph.open(graph.uri)
    assert [row["joined"] for row in rows(again, "node:Person")] == ["2020-01-02", None]
    assert again.schema_apply(SCHEMA).applied
    assert leftovers(again) == []


def test_schema_files_of_before_an_apply_are_replaced_by_its_record(graph: og.Graph) -> None:
    old = _copied(graph)
    graph.schema_apply(MORE)
    new = _copied(graph)
    _put_back(old)
    assert og.Graph.open(graph.uri, "r").schema().source == MORE
    assert og.verify(graph.uri).findings == ()
    assert og.Graph.open(graph.uri).schema().source == MORE
    assert _copied(graph) == new


@pytest.mark.parametrize("key", FILES[:2])
def test_one_file_of_an_earlier_schema_is_replaced_too(graph: og.Graph, key: str) -> None:
    """A writer that slept may put it back: to the store it is as it was when that writer looked."""
    graph.schema_apply(MORE)
    earlier = Path(graph.uri, key).read_bytes()
    graph.schema_apply(SCHEMA)
    latest = _copied(graph)
    Path(graph.uri, key).write_bytes(earlier)
    assert og.Graph.open(graph.uri, "r").schema().source == SCHEMA
    again = og.Graph.open(graph.uri)
    assert again.schema().source == SCHEMA
    assert _copied(graph) == latest


def test_an_edit_by_hand_is_told_from_a_file_of_an_earlier_schema(graph: og.Graph) -> None:
    graph.schema_apply(MORE)
    source = Path(graph.uri, layout.SCHEMA_SOURCE)
    source.write_text(f"// people and places\n{MORE}")
    again = og.Graph.open(graph.uri)
    assert again.schema().source == f"// people and places\n{MORE}", "it means the same"
    source.write_text(MORE.replace("joined: Date?", "joined: I32?"))
    for mode in ("r", "rw"):
        with pytest.raises(Conflict, match="no longer matches"):
            og.Graph.open(graph.uri, mode)


def test_only_the_record_of_the_schema_in_force_is_kept(graph: og.Graph) -> None:
    for source in (MORE, SCHEMA, MORE):
        assert graph.schema_apply(source).applied
        names = {path.name.partition(".")[0] for path in Path(graph.uri, layout.SCHEMA_DIR).iterdir()}
        assert names == {graph.list_commits()[0].graph_commit_id}
