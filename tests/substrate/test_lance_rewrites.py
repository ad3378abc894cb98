"""What compaction relies on: rewrites stated as transactions of our own, and versions set aside."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance.optimize import Compaction, CompactionTask, RewriteResult

OP, commit = lance.LanceOperation, lance.LanceDataset.commit


def rows(first: int, count: int) -> pa.Table:
    numbers = range(first, first + count)
    vectors = pa.array([[1.0, float(n % 5)] for n in numbers], pa.list_(pa.float32(), 2))
    texts = [f"word w{n}" for n in numbers]
    return pa.table({"id": [f"k{n}" for n in numbers], "n": list(numbers), "s": texts, "v": vectors})


def index(dataset: Any, fragment_ids: list[int]) -> Any:
    build = dataset.create_index_uncommitted
    text = build("s", "INVERTED", name="s_idx", replace=True, fragment_ids=fragment_ids, with_position=True)
    parts = [
        build("id", "BTREE", name="id_idx", replace=True, fragment_ids=fragment_ids),
        dataset.merge_existing_index_segments([text]),
        build(
            "v", "IVF_FLAT", name="v_idx", replace=True, metric="cosine", num_partitions=1, fragment_ids=fragment_ids
        ),
    ]
    return commit(dataset, OP.CreateIndex(parts, []), read_version=dataset.version)


@pytest.fixture
def dataset(tmp_path: Path) -> Any:
    """Four fragments, of which indexes cover the first three."""
    found: Any = lance.write_dataset(rows(0, 20), str(tmp_path / "t"), enable_stable_row_ids=True)
    for k in range(2):
        found = lance.write_dataset(rows(20 + 5 * k, 5), found, mode="append")
    found = index(found, [0, 1, 2])
    return lance.write_dataset(rows(50, 5), found, mode="append")


def executed(dataset: Any, numbers: list[int]) -> Any:
    options = json.loads(Compaction.plan(dataset, {"target_rows_per_fragment": 1000}).json())["options"]
    chosen = [f.metadata.to_json() for f in dataset.get_fragments() if f.fragment_id in numbers]
    task = {"task": {"fragments": chosen}, "read_version": dataset.version, "options": options}
    return CompactionTask.from_json(json.dumps(task)).execute(dataset)


def rewrite(dataset: Any, result: Any, number: int | None) -> Any:
    new = list(result.new_fragments)
    for fragment in new:
        fragment.id = number or 0
    operation = OP.Rewrite([OP.RewriteGroup(result.original_fragments, new)], [])
    return lance.Transaction(dataset.version, operation, transaction_properties={"mine": "yes"})


def covered(dataset: Any) -> dict[str, set[int]]:
    return {i.name: {int(n) for s in i.segments for n in s.fragment_ids} for i in dataset.describe_indices()}


def test_a_rewrite_of_our_own_lands_in_one_version_and_keeps_its_stamp(dataset: Any) -> None:
    before = dataset.to_table(columns=["id", "n", "_rowid", "_row_created_at_version"]).sort_by("_rowid")
    transaction = rewrite(dataset, executed(dataset, [0, 1, 2]), 9)
    done = commit(dataset, transaction, max_retries=0)
    assert done.version == dataset.version + 1
    read = done.read_transaction(done.version)
    assert (read.uuid, read.transaction_properties) == (transaction.uuid, {"mine": "yes"})
    after = done.to_table(columns=["id", "n", "_rowid", "_row_created_at_version"]).sort_by("_rowid")
    assert after.equals(before)


def test_b_trees_lose_the_fragments_and_text_and_vector_indexes_follow_them(dataset: Any) -> None:
    done = commit(dataset, rewrite(dataset, executed(dataset, [0, 1, 2]), 9), max_retries=0)
    assert covered(done) == {"id_idx": set(), "s_idx": {9}, "v_idx": {9}}
    assert done.to_table(filter="id = 'k21'").num_rows == 1


def test_without_a_number_the_indexes_that_follow_name_the_wrong_fragment(dataset: Any) -> None:
    done = commit(dataset, rewrite(dataset, executed(dataset, [0, 1, 2]), None), max_retries=0)
    (fresh,) = {f.fragment_id for f in done.get_fragments()} - {3}
    assert fresh != 0
    assert covered(done)["s_idx"] == {0}


def test_a_group_that_an_index_covers_in_part_is_refused(dataset: Any) -> None:
    with pytest.raises(OSError, match="split of indexed and non-indexed"):
        commit(dataset, rewrite(dataset, executed(dataset, [2, 3]), 9), max_retries=0)


def test_a_kept_vector_index_counts_rows_that_the_rewrite_took_away(tmp_path: Path) -> None:
    found: Any = lance.write_dataset(rows(0, 20), str(tmp_path / "t"), enable_stable_row_ids=True)
    found = index(lance.write_dataset(rows(20, 5), found, mode="append"), [0, 1])
    found.delete("n % 5 = 1")
    thinned: Any = lance.dataset(found.uri)
    query = {"column": "v", "q": [1.0, 1.0], "k": 8, "metric": "cosine"}
    assert thinned.to_table(columns=["id", "_distance"], nearest=query).num_rows == 8
    done = commit(thinned, rewrite(thinned, executed(thinned, [0, 1]), 9), max_retries=0)
    assert done.to_table(columns=["id", "_distance"], nearest=query).num_rows == 3


def test_a_detached_version_has_no_number_and_nobody_comes_across_it(dataset: Any) -> None:
    aside = commit(dataset, rewrite(dataset, executed(dataset, [0, 1, 2]), 9), max_retries=5, detached=True)
    assert aside.version >= 1 << 63
    (file,) = Path(dataset.uri, "_versions").glob("d*.manifest")
    assert file.name == f"d{aside.version}.manifest"
    again: Any = lance.dataset(dataset.uri)
    assert again.version == dataset.version
    assert {v for batch in again.tracked_files() for v in batch.column("version").to_pylist()} == {
        *range(1, dataset.version + 1)
    }


def test_what_a_task_wrote_travels_as_json(dataset: Any) -> None:
    result: Any = executed(dataset, [0, 1, 2])
    new = [f.files[0].path for f in result.new_fragments]
    assert [f.files[0].path for f in RewriteResult.from_json(result.json()).new_fragments] == new
