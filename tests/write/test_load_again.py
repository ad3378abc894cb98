"""A load that lost the race keeps what it staged and compares itself only with what changed since."""

from __future__ import annotations

from pathlib import Path

import pytest
from write_scene import stored

import omnigraph as og
from omnigraph.engine.write import again, bench, load
from omnigraph.engine.write.load import LoadResult

SCHEMA = """
node Person { name: String @key  email: String? @unique  age: I32? }
node Team { code: String @key }
edge In: Person -> Team @card(0..1)
"""


class Scene:
    """A load of people, with a moment between its staging and its commit in which others write."""

    def __init__(self, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.graph = og.Graph.init(str(place / "graph"), SCHEMA)
        self.other = og.Graph.open(self.graph.uri)
        self.place = place
        self.staged: list[int] = []
        self.whole_checks = 0
        self.meanwhile: list[str] = []
        plan, stage, validate = load.plan_changeset, bench.stage_change, load.validate

        def counted_stage(table, schema, change, stamp, scratch):
            self.staged.append(change.row_count)
            return stage(table, schema, change, stamp, scratch)

        def counted_validate(check):
            self.whole_checks += 1
            return validate(check)

        def plan_then_others_write(*given):
            made = plan(*given)
            if self.meanwhile:
                self.other.mutate(self.meanwhile.pop(0))
            return made

        monkeypatch.setattr(bench, "stage_change", counted_stage)
        monkeypatch.setattr(load, "validate", counted_validate)
        monkeypatch.setattr(load, "plan_changeset", plan_then_others_write)

    def load(self, *lines: str, mode: str = "append", meanwhile: str) -> LoadResult:
        file = self.place / "in.jsonl"
        file.write_text("".join(f"{line}\n" for line in lines))
        self.meanwhile.append(meanwhile)
        self.staged.clear()
        self.whole_checks = 0
        return self.graph.load(file, mode=mode, index=False)

    def ids(self, key: str) -> list[str]:
        return [row[0] for row in stored(self.graph, key)]

    def people(self, column: str) -> dict[str, object]:
        return dict(stored(self.graph, "node:Person", "id", column))


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    found = Scene(tmp_path, monkeypatch)
    found.graph.mutate('query q() { insert Team { code: "t" } insert Person { name: "old", email: "o" } }')
    return found


ANA = '{"type":"Person","data":{"name":"ana","email":"a"}}'
EVA = '{"type":"Person","data":{"name":"eva","email":"e"}}'


def insert(name: str, email: str = "null") -> str:
    given = "" if email == "null" else f', email: "{email}"'
    return f'query q() {{ insert Person {{ name: "{name}"{given} }} }}'


def test_rows_staged_before_a_lost_race_are_committed_after_it(scene: Scene) -> None:
    done = scene.load(ANA, EVA, meanwhile=insert("zoe"))
    assert done.total_entities == 2
    assert scene.ids("node:Person") == ["ana", "eva", "old", "zoe"]
    assert scene.staged == [2, 1], "the load's two rows once, although it lost, and the row of the other"
    assert scene.whole_checks == 1


def test_an_id_taken_meanwhile_is_a_conflict(scene: Scene) -> None:
    with pytest.raises(og.KeyConflict, match="'ana'"):
        scene.load(ANA, EVA, meanwhile=insert("ana"))
    assert scene.ids("node:Person") == ["ana", "old"]
    assert scene.whole_checks == 1


def test_a_unique_value_taken_meanwhile_is_a_violation(scene: Scene) -> None:
    with pytest.raises(og.InvalidData, match="value 'a' held by 'zoe' and 'ana'"):
        scene.load(ANA, EVA, meanwhile=insert("zoe", "a"))
    assert scene.ids("node:Person") == ["old", "zoe"]
    assert scene.whole_checks == 1


def test_a_source_filled_up_meanwhile_is_a_violation(scene: Scene) -> None:
    edge = '{"edge":"In","from":"old","to":"t"}'
    with pytest.raises(og.InvalidData, match="source 'old' has 2 edges"):
        scene.load(edge, meanwhile='query q() { insert In { from: "old", to: "t" } }')
    assert len(scene.ids("edge:In")) == 1


def test_a_node_removed_meanwhile_leaves_no_dangling_edge(scene: Scene) -> None:
    edge = '{"edge":"In","from":"old","to":"t"}'
    with pytest.raises(og.InvalidData, match="src 'old' not found"):
        scene.load(edge, meanwhile='query q() { delete Person where name = "old" }')
    assert scene.ids("edge:In") == []
    assert scene.whole_checks == 2, "what was removed is found only by looking at everything"


def test_a_merge_stages_again_what_others_replaced(scene: Scene) -> None:
    line = '{"type":"Person","data":{"name":"old","email":"o2"}}'
    scene.load(line, mode="merge", meanwhile='query q() { update Person set { age: 9 } where name = "old" }')
    assert scene.people("email")["old"] == "o2"
    assert scene.people("age")["old"] is None, "the record of the load is the whole row"


def test_a_merge_may_reuse_a_value_that_its_own_row_frees(scene: Scene) -> None:
    freed = '{"type":"Person","data":{"name":"old","email":"x"}}'
    taken = '{"type":"Person","data":{"name":"ana","email":"o"}}'
    scene.load(freed, taken, mode="merge", meanwhile='query q() { update Person set { age: 9 } where name = "old" }')
    assert scene.people("email") == {"old": "x", "ana": "o"}


def test_very_many_changes_lead_to_a_whole_check(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(again, "CHANGED_ROWS_MAX", 0)
    scene.load(ANA, meanwhile=insert("zoe"))
    assert scene.whole_checks == 2
    assert scene.ids("node:Person") == ["ana", "old", "zoe"]
