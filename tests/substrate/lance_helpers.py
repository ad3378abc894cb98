"""Small Lance tables, staged writes and race workers shared by the substrate tests.

Workers live here, not in the test modules, because processes import them by name.
"""

import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
from lance.commit import CommitConflictError
from lance.fragment import RowIdSequence, write_fragments
from lance.optimize import Compaction

from processes import FORKED

OP = lance.LanceOperation
PRIMARY_KEY = {"lance-schema:unenforced-primary-key": "true"}
STAMP = {"stamp": "4"}
MANIFEST_SCHEMA = pa.schema(
    [pa.field("id", pa.string(), False, metadata=PRIMARY_KEY), pa.field("n", pa.int64())], metadata=STAMP
)
PLAIN_SCHEMA = pa.schema([pa.field("id", pa.string(), False), pa.field("n", pa.int64())])


@dataclass(frozen=True)
class Outcome:
    """What one try to commit came to: the landed version, or the error that refused it."""

    version: int | None = None
    error: OSError | None = None

    @property
    def refused(self) -> bool:
        return self.error is not None

    @property
    def retryable(self) -> bool | None:
        return getattr(self.error, "retryable", None)

    @property
    def conflict(self) -> bool:
        return isinstance(self.error, CommitConflictError)


def rows(*ids: str, n: int = 0, schema: pa.Schema = MANIFEST_SCHEMA) -> pa.Table:
    return pa.table({"id": list(ids), "n": pa.array([n] * len(ids), pa.int64())}, schema=schema)


def create(path: Path, *, fragments: int = 3, schema: pa.Schema = MANIFEST_SCHEMA) -> lance.LanceDataset:
    """A table with one fragment {a_i, b_i} per version, so version == number of fragments."""
    uri = str(path)
    lance.write_dataset(rows("a0", "b0", schema=schema), uri, enable_stable_row_ids=True)
    for i in range(1, fragments):
        lance.write_dataset(rows(f"a{i}", f"b{i}", schema=schema), uri, mode="append")
    return lance.dataset(uri)


def reopen(ds: lance.LanceDataset) -> lance.LanceDataset:
    return lance.dataset(ds.uri)


def branch(ds: lance.LanceDataset, name: str) -> lance.LanceDataset:
    return lance.dataset(f"{ds.uri}/tree/{name}")


def ids(ds: lance.LanceDataset) -> list[str]:
    return sorted(reopen(ds).to_table(columns=["id"])["id"].to_pylist())


def by_id(ds: lance.LanceDataset, *columns: str) -> dict[str, Any]:
    """One column per id, or a tuple when several are asked for; a duplicate id is an error."""
    table = reopen(ds).to_table(columns=["id", *columns])
    values = [tuple(row[c] for c in columns) for row in table.to_pylist()]
    found = dict(zip(table["id"].to_pylist(), values, strict=True))
    assert len(found) == table.num_rows, "duplicate ids"
    return {k: v[0] if len(columns) == 1 else v for k, v in found.items()}


def fragment_ids(ds: lance.LanceDataset) -> list[int]:
    return [f.fragment_id for f in reopen(ds).get_fragments()]


def commit(ds: lance.LanceDataset, tx: lance.Transaction) -> lance.LanceDataset:
    return lance.LanceDataset.commit(ds, tx, max_retries=0, detached=False)


def try_commit(ds: lance.LanceDataset, tx: lance.Transaction) -> Outcome:
    return attempt(lambda: commit(ds, tx))


def attempt(act: Callable[[], Any]) -> Outcome:
    try:
        landed = act()
    except OSError as error:
        return Outcome(error=error)
    return Outcome(version=getattr(landed, "version", None))


def transaction(ds: lance.LanceDataset, operation: Any, **properties: str) -> lance.Transaction:
    return lance.Transaction(ds.version, operation, transaction_properties=properties)


def stage_append(ds: lance.LanceDataset, *new: str, schema: pa.Schema = MANIFEST_SCHEMA) -> lance.Transaction:
    return write_fragments(rows(*new, schema=schema), ds, mode="append", return_transaction=True)


def stage_overwrite(ds: lance.LanceDataset, *new: str, schema: pa.Schema = MANIFEST_SCHEMA) -> lance.Transaction:
    return write_fragments(rows(*new, schema=schema), ds, mode="overwrite", return_transaction=True)


def stage_upsert(ds: lance.LanceDataset, *keys: str, n: int = 9, schema: pa.Schema = MANIFEST_SCHEMA):
    builder = ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    return builder.execute_uncommitted(rows(*keys, n=n, schema=schema))[0]


def stage_insert(ds: lance.LanceDataset, *keys: str, schema: pa.Schema = MANIFEST_SCHEMA) -> lance.Transaction:
    return ds.merge_insert("id").when_not_matched_insert_all().execute_uncommitted(rows(*keys, schema=schema))[0]


def stage_delete(ds: lance.LanceDataset, predicate: str) -> lance.Transaction:
    """A delete stated fragment by fragment: deletion files are written, no version is."""
    changed, emptied = [], []
    for fragment in ds.get_fragments():
        kept = fragment.delete(predicate)
        if kept is None:
            emptied.append(fragment.fragment_id)
        elif kept != fragment.metadata:
            changed.append(kept)
    return transaction(ds, OP.Delete(changed, emptied, predicate))


def stage_index(ds: lance.LanceDataset, column: str = "n", name: str = "n_idx") -> lance.Transaction:
    covered = [f.fragment_id for f in ds.get_fragments()]
    segment = ds.create_index_uncommitted(column, "BTREE", name=name, fragment_ids=covered)
    return transaction(ds, OP.CreateIndex([segment], []))


def stage_text_index(ds: lance.LanceDataset, column: str, name: str) -> Any:
    """A finished full-text segment: a raw one is unreadable until it went through a merge."""
    covered = [f.fragment_id for f in ds.get_fragments()]
    raw = ds.create_index_uncommitted(column, "INVERTED", name=name, fragment_ids=covered)
    return ds.merge_existing_index_segments([raw])


def stage_row_rewrite(
    ds: lance.LanceDataset,
    upserts: dict[str, int],
    deletes: Iterable[str] = (),
    *,
    rows_per_file_max: int = 1024,
    schema: pa.Schema = MANIFEST_SCHEMA,
) -> lance.Transaction:
    """Stored rows leave by offset and come back first in the new files, under the row ids they had."""
    gone = [*upserts, *deletes]
    quoted = ", ".join(f"'{key}'" for key in gone)
    found = ds.to_table(columns=["id", "_rowid", "_rowaddr"], filter=f"id IN ({quoted})").to_pylist()
    row_ids = {row["id"]: row["_rowid"] for row in found}
    ordered = [k for k in upserts if k in row_ids] + [k for k in upserts if k not in row_ids]
    emptied, thinned = thin_fragments(ds, [row["_rowaddr"] for row in found])
    fresh: list[Any] = []
    if upserts:
        new_rows = pa.table({"id": ordered, "n": [upserts[k] for k in ordered]}, schema=schema)
        fresh = list(write_fragments(new_rows, ds, mode="append", max_rows_per_file=rows_per_file_max))
    carry_row_ids(fresh, [row_ids[k] for k in ordered if k in row_ids])
    return transaction(ds, row_rewrite(ds, emptied, thinned, fresh))


def row_rewrite(ds: lance.LanceDataset, emptied: list[int], thinned: list[Any], fresh: list[Any]) -> Any:
    """Names every field as changed: a text or vector index of a field not named would claim to cover the new rows."""
    return OP.Update(
        removed_fragment_ids=emptied,
        updated_fragments=thinned,
        new_fragments=fresh,
        fields_for_preserving_frag_bitmap=field_ids(ds.lance_schema.fields()),
        update_mode="rewrite_rows",
    )


def field_ids(fields: Iterable[Any]) -> list[int]:
    """Ids of the fields and of everything nested in them."""
    return [i for field in fields for i in (field.id(), *field_ids(field.children()))]


def thin_fragments(ds: lance.LanceDataset, addresses: Iterable[int]) -> tuple[list[int], list[Any]]:
    """Fragments that lose every row, and the others with their new deletion files."""
    offsets: dict[int, list[int]] = {}
    for address in addresses:
        offsets.setdefault(address >> 32, []).append(address & 0xFFFFFFFF)
    left = {fragment: ds.get_fragment(fragment).delete_rows(at) for fragment, at in sorted(offsets.items())}
    return [f for f, kept in left.items() if kept is None], [kept for kept in left.values() if kept is not None]


def carry_row_ids(fragments: Iterable[Any], row_ids: list[int]) -> None:
    """Binds the ids to the leading rows; rows without one are new."""
    for fragment in fragments:
        mine, row_ids = row_ids[: fragment.physical_rows], row_ids[fragment.physical_rows :]
        if mine:
            fragment.row_id_meta = RowIdSequence(mine).to_inline_metadata()


def found_by(ds: lance.LanceDataset, where: str, *, indexed: bool) -> list[str]:
    """The ids a filter finds, with the scalar index or by scanning."""
    found = reopen(ds).to_table(columns=["id"], filter=where, use_scalar_index=indexed)
    return sorted(found["id"].to_pylist())


def index_names(ds: lance.LanceDataset) -> list[str]:
    return sorted(index.name for index in reopen(ds).describe_indices())


def stage_table_metadata(ds: lance.LanceDataset, key: str = "k") -> lance.Transaction:
    return transaction(ds, OP.UpdateConfig(table_metadata_updates=OP.UpdateMap({key: "v"})))


def stage_stamp(ds: lance.LanceDataset, stamp: str) -> lance.Transaction:
    return transaction(ds, OP.UpdateConfig(schema_metadata_updates=OP.UpdateMap({"stamp": stamp})))


def stage_restore(ds: lance.LanceDataset) -> lance.Transaction:
    return transaction(ds, OP.Restore(ds.version))


def stage_strict_append(
    ds: lance.LanceDataset, *new: str, rows_per_file_max: int = 1024, **properties: str
) -> lance.Transaction:
    """New rows as a Merge of the fragment list: refused when the fragment list moved meanwhile."""
    fresh = write_fragments(rows(*new), ds, mode="append", max_rows_per_file=rows_per_file_max)
    present = [f.metadata for f in ds.get_fragments()]
    return transaction(ds, OP.Merge(present + list(fresh), ds.lance_schema), **properties)


def strict_append(ds: lance.LanceDataset, *new: str) -> lance.LanceDataset:
    """Lands the rows from a fresh handle."""
    head = reopen(ds)
    return commit(head, stage_strict_append(head, *new))


def insert_once(ds: lance.LanceDataset, *new: str) -> Any:
    """The primary-key publish: refuses a key that another writer inserted meanwhile."""
    builder = ds.merge_insert("id").when_matched_fail().when_not_matched_insert_all().conflict_retries(0)
    return builder.execute(rows(*new))


def plan_compaction(ds: lance.LanceDataset) -> list[Any]:
    """Rewritten fragments, not yet committed."""
    return [task.execute(ds) for task in Compaction.plan(ds, {"target_rows_per_fragment": 1000}).tasks]


def compact(ds: lance.LanceDataset) -> None:
    head = reopen(ds)
    rewrites = plan_compaction(head)
    if rewrites:
        Compaction.commit(head, rewrites)


def recreate_branch(ds: lance.LanceDataset, name: str) -> None:
    """Deletes a branch with every leftover file and forks it anew from the head of main."""
    reopen(ds).branches.delete(name)
    shutil.rmtree(Path(ds.uri) / "tree" / name, ignore_errors=True)
    reopen(ds).create_branch(name)


def version_file(ds: lance.LanceDataset, version: int) -> Path:
    return Path(ds.uri) / "_versions" / f"{2**64 - 1 - version:020d}.manifest"


def write_strictly(uri: str, writer: int, count: int, start: Any, results: Any) -> None:
    """Worker: `count` strict appends, each from a fresh handle and tried once."""
    start.wait(240)
    for i in range(count):
        head = lance.dataset(uri)
        row = f"w{writer}-{i}"
        outcome = try_commit(head, stage_strict_append(head, row))
        results.put((row, head.version, outcome.version, outcome.conflict))


def compact_until(uri: str, start: Any, stop: Any, results: Any) -> None:
    """Worker: compacts in a loop; a lost race is tried again."""
    start.wait(240)
    landed = refused = 0
    while not stop.is_set():
        if attempt(lambda: compact(lance.dataset(uri))).refused:
            refused += 1
        else:
            landed += 1
    results.put((landed, refused))


def race(uri: str, *, writers: int, count: int, compacting: bool) -> tuple[list[tuple[Any, ...]], tuple[int, int]]:
    """Every try as (row, read version, landed version or None, is a conflict), and (compactions landed, refused)."""
    start, stop = FORKED.Barrier(writers + compacting), FORKED.Event()
    results, compactions = FORKED.Queue(), FORKED.Queue()
    workers = [FORKED.Process(target=write_strictly, args=(uri, w, count, start, results)) for w in range(writers)]
    janitor = FORKED.Process(target=compact_until, args=(uri, start, stop, compactions))
    running: Iterable[Any] = [*workers, janitor] if compacting else workers
    for process in running:
        process.start()
    tries = [results.get(timeout=120) for _ in range(writers * count)]
    stop.set()
    totals = compactions.get(timeout=60) if compacting else (0, 0)
    for process in running:
        process.join(30)
        assert process.exitcode == 0
    return tries, totals
