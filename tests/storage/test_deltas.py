"""What differs between two states of a table: applied to the one, it gives the other."""

from __future__ import annotations

import random
from itertools import permutations

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance import LanceOperation

from omnigraph.engine.read.hot.nodes import NodeImage
from omnigraph.storage.deltas import ROW_ID, changes_between
from omnigraph.storage.places import open_root
from omnigraph.storage.tables import Table, TableRef, open_table

pytestmark = pytest.mark.slow

PLENTY = 10_000


def rows(ids: list[int], value: int) -> pa.Table:
    return pa.table({"id": [f"r{i:03d}" for i in ids], "v": pa.array([value] * len(ids), pa.int64())})


def merged(dataset: lance.LanceDataset, given: pa.Table) -> None:
    dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(given)


def one_change(chance: random.Random, dataset: lance.LanceDataset, value: int) -> None:
    match chance.randrange(6):
        case 0 | 1:
            merged(dataset, rows(chance.sample(range(60), 5), value))
        case 2:
            dataset.delete(f"id in {tuple(f'r{i:03d}' for i in chance.sample(range(60), 4))}")
        case 3:
            lance.write_dataset(rows([100 * value + k for k in range(3)], value), dataset, mode="append")
        case 4:
            dataset.optimize.compact_files()
        case _:
            pin = chance.choice([found["version"] for found in dataset.versions()])
            lance.LanceDataset.commit(dataset, LanceOperation.Restore(pin), read_version=dataset.version)


def history(place: str, seed: int) -> list[Table]:
    """Every version of a table that changed in all the ways there are, and of a branch of it."""
    chance = random.Random(seed)
    ref = TableRef(open_root(place), "t", None)
    lance.write_dataset(rows(list(range(30)), 0), ref.uri, enable_stable_row_ids=True)
    states: list[Table] = []
    for step in range(1, 9):
        one_change(chance, lance.dataset(ref.uri), step)
    states += [open_table(ref, found["version"]) for found in lance.dataset(ref.uri).versions()]
    fork = TableRef(ref.root, "t", "b")
    made = lance.dataset(ref.uri).create_branch("b", chance.randint(3, states[-1].version))
    for step in range(3):
        one_change(chance, lance.dataset(fork.uri), 50 + step)
    states += [open_table(fork, version) for version in range(made.version, lance.dataset(fork.uri).version + 1)]
    return states


def test_equally_many_deletions_on_two_branches_are_told_apart(tmp_path):
    ref = TableRef(open_root(str(tmp_path)), "t", None)
    lance.write_dataset(rows(list(range(10)), 0), ref.uri, enable_stable_row_ids=True)
    lance.dataset(ref.uri).create_branch("b", 1)
    fork = TableRef(ref.root, "t", "b")
    lance.dataset(ref.uri).delete("id = 'r001'")
    lance.dataset(fork.uri).delete("id = 'r002'")
    old, new = open_table(ref, 2), open_table(fork, lance.dataset(fork.uri).version)
    found = changes_between(old, new, ["id"], PLENTY)
    assert found is not None
    assert (found.gone.tolist(), found.came["id"].to_pylist()) == ([2], ["r001"])


def content(table: Table) -> dict[int, tuple[str, int]]:
    found = table.dataset.to_table(columns=["id", "v"], with_row_id=True).to_pydict()
    return dict(zip(found[ROW_ID], zip(found["id"], found["v"], strict=True), strict=True))


@pytest.mark.parametrize("seed", range(6))
def test_what_came_and_went_turns_one_state_into_the_other(tmp_path, seed):
    states = history(str(tmp_path), seed)
    for old, new in permutations(states, 2):
        found = changes_between(old, new, ["id", "v"], PLENTY)
        assert found is not None
        kept = {row: held for row, held in content(old).items() if row not in set(found.gone.tolist())}
        came = found.came.to_pydict()
        for row, id, value in zip(came[ROW_ID], came["id"], came["v"], strict=True):
            assert row not in kept, (old.version, new.version)
            kept[row] = (id, value)
        assert kept == content(new), (old.ref.branch, old.version, new.ref.branch, new.version)


@pytest.mark.parametrize("seed", range(6))
def test_an_image_that_follows_a_table_says_what_a_fresh_one_says(tmp_path, seed):
    states = history(str(tmp_path), seed)
    random.Random(seed).shuffle(states)
    image = NodeImage.of(states[0], None, 1 << 20)
    for state in states:
        found = image.advanced(state, PLENTY)
        assert found is not None
        image = found
        ids, values = (image.values(name, image.numbers).to_pylist() for name in ("id", "v"))
        seen = dict(zip(ids, values, strict=True))
        assert seen == dict(content(state).values())
        assert len(image.numbers) == len(seen)
        assert np.all(np.diff(np.sort(image.numbers)) > 0)
