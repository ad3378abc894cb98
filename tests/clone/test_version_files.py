"""The record of a fork's version, written for another place: Lance reads it as it read the first."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from omnigraph.storage.failures import Unreadable
from omnigraph.storage.places import open_root
from omnigraph.storage.relocated import moved_version, place_inside, units_at, version_bytes
from omnigraph.storage.tables import TableRef, open_table
from omnigraph.storage.version_files import index_ids, rebased

LOCATION = "nodes/0123456789abcdef"


@pytest.fixture
def ref(tmp_path: Path) -> TableRef:
    """A fork of a fork, with an index it has from main, a deletion in its base and rows of its own."""
    uri = f"{tmp_path}/first/{LOCATION}"
    lance.write_dataset(pa.table({"id": ["a", "b", "c"]}), uri, enable_stable_row_ids=True)
    main = lance.dataset(uri)
    main.create_scalar_index("id", "BTREE", name="id_idx")
    lance.dataset(uri).create_branch("one")
    lance.dataset(f"{uri}/tree/one").delete("id = 'a'")
    lance.dataset(f"{uri}/tree/one").create_branch("two/x", ("one", lance.dataset(f"{uri}/tree/one").version))
    lance.write_dataset(pa.table({"id": ["d"]}), f"{uri}/tree/two/x", mode="append")
    return TableRef(open_root(f"{tmp_path}/first"), LOCATION, "two/x")


def head(ref: TableRef) -> int:
    return int(lance.dataset(ref.uri).version)


def test_a_version_written_for_another_place_has_the_same_rows_there(ref: TableRef, tmp_path: Path):
    version, target = head(ref), open_root(f"{tmp_path}/second")
    data = moved_version(ref, version, target)
    shutil.copytree(ref.root.uri, target.uri)
    shutil.rmtree(ref.root.uri)
    shutil.rmtree(f"{target.uri}/{ref.path}/_versions")
    shutil.rmtree(f"{target.uri}/{ref.path}/_transactions")
    moved = TableRef(target, LOCATION, ref.branch)
    target.objects.put(moved.version_file(version), data)
    table = open_table(moved, None)
    assert table.version == version
    assert sorted(table.read().column("id").to_pylist()) == ["b", "c", "d"]
    assert table.count_rows("id = 'b'") == 1
    assert {base.path for base in table.dataset.base_paths().values()} == {
        f"{target.uri}/{LOCATION}",
        f"{target.uri}/{LOCATION}/tree/one",
    }
    assert ref.root.uri.encode() not in data
    table.dataset.delete("id = 'd'")
    assert open_table(moved, None).count_rows() == 2


def test_the_first_version_of_a_fork_names_no_other_place_either(ref: TableRef, tmp_path: Path):
    first = min(v["version"] for v in lance.dataset(ref.uri).versions())
    assert ref.root.uri.encode() in version_bytes(ref, first)
    assert ref.root.uri.encode() not in moved_version(ref, first, open_root(f"{tmp_path}/second"))


def test_a_version_without_bases_stays_what_it_is(ref: TableRef):
    version = head(ref.main)
    data = version_bytes(ref.main, version)
    again = rebased(data, version, lambda base: pytest.fail(f"main has a base: {base}"))
    assert index_ids(again, version) == index_ids(data, version) != set()


def test_the_indexes_a_fork_has_from_its_base_are_found(ref: TableRef):
    folders = set(os.listdir(f"{ref.root.uri}/{LOCATION}/_indices"))
    assert index_ids(version_bytes(ref, head(ref)), head(ref)) == folders
    assert {f"_indices/{name}" for name in folders} <= units_at(ref, [head(ref)])


def test_files_are_found_the_same_one_by_one_and_all_at_once(ref: TableRef, monkeypatch: pytest.MonkeyPatch):
    for where in (ref, ref.main):
        versions = [int(v["version"]) for v in lance.dataset(where.uri).versions()]
        one_by_one = units_at(where, versions)
        with monkeypatch.context() as patched:
            patched.setattr("omnigraph.storage.relocated._FEW", 0)
            at_once = units_at(where, versions)
        assert {u for u in at_once if not u.startswith("_transactions/")} == one_by_one


@pytest.mark.parametrize("cut", [0, 1, 16, 40])
def test_a_torn_file_is_refused(ref: TableRef, cut: int):
    data = version_bytes(ref, head(ref))
    with pytest.raises(Unreadable):
        rebased(data[: len(data) - 1 - cut], head(ref), str)


@pytest.mark.parametrize(
    ("base", "place"),
    [
        (f"/data/g/{LOCATION}", LOCATION),
        (f"/data/g/{LOCATION}/", LOCATION),
        (f"s3://bucket/g/{LOCATION}/tree/team/one", f"{LOCATION}/tree/team/one"),
        (f"/{LOCATION}/tree/x/{LOCATION}/tree/y", f"{LOCATION}/tree/y"),
    ],
)
def test_a_base_is_found_below_any_root(base: str, place: str):
    assert place_inside(base, LOCATION) == place


@pytest.mark.parametrize("base", ["/data/g", "/data/g/nodes/other", f"/data/{LOCATION}/tree/", ""])
def test_a_base_that_is_no_place_of_the_table_is_refused(base: str):
    with pytest.raises(Unreadable):
        place_inside(base, LOCATION)
