"""Rows set aside keep their order, stay within memory, and leave nothing on disk."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.base.errors import LimitExceeded
from omnigraph.engine.write.spool import RowSpool
from omnigraph.sets.scratch import Relation, Scratch
from omnigraph.settings import Settings

pytestmark = pytest.mark.slow

SCHEMA = pa.schema([pa.field("id", pa.string()), pa.field("__position", pa.int64())])


def batch(first: int, count: int) -> pa.RecordBatch:
    numbers = range(first, first + count)
    return pa.record_batch([pa.array([f"row-{n}" for n in numbers]), pa.array(numbers, pa.int64())], schema=SCHEMA)


def settings(folder: Path, memory_bytes: int) -> Settings:
    return Settings.resolve(limits_spill_dir=str(folder), limits_memory_bytes=memory_bytes)


def files_below(folder: Path) -> list[str]:
    return [name for _, _, names in os.walk(folder) for name in names if name.endswith(".arrow")]


def test_batches_come_back_in_order_as_often_as_asked_from_memory_and_from_disk(tmp_path: Path) -> None:
    for memory_bytes in (1 << 20, 8_000):
        with Scratch(settings(tmp_path, memory_bytes)) as scratch:
            spool = RowSpool(SCHEMA, scratch).extend(batch(100 * n, 100) for n in range(20))
            assert spool.is_spilled is (memory_bytes == 8_000)
            for _ in range(2):
                assert spool.table().column("__position").to_pylist() == list(range(2000))
            assert spool.table(["id"]).column_names == ["id"]


def test_the_largest_spool_goes_to_disk_first(tmp_path: Path) -> None:
    with Scratch(settings(tmp_path, 8 * 4_000)) as scratch:
        large, small = RowSpool(SCHEMA, scratch), RowSpool(SCHEMA, scratch)
        large.append(batch(0, 150))
        small.append(batch(0, 20))
        small.append(batch(20, 20))
        large.append(batch(150, 150))
        assert (large.is_spilled, small.is_spilled) == (True, False)
        assert sum(spool.memory_bytes for spool in scratch.spools) <= scratch.spool_bytes


def test_a_spool_that_is_being_read_can_still_be_moved_to_disk(tmp_path: Path) -> None:
    with Scratch(settings(tmp_path, 8 * 4_000)) as scratch:
        first = RowSpool(SCHEMA, scratch).extend([batch(0, 60), batch(60, 60)])
        reading = first.batches()
        assert next(reading).num_rows == 60
        RowSpool(SCHEMA, scratch).extend([batch(0, 115)])
        assert first.is_spilled
        assert next(reading).column("__position")[0].as_py() == 60
        assert first.table().num_rows == 120


def test_nothing_is_left_on_disk_when_the_work_fails(tmp_path: Path) -> None:
    def fails() -> None:
        with Scratch(settings(tmp_path, 8)) as scratch:
            RowSpool(SCHEMA, scratch).extend(batch(100 * n, 100) for n in range(3))
            assert files_below(tmp_path)
            raise RuntimeError("something went wrong")

    with pytest.raises(RuntimeError):
        fails()
    assert files_below(tmp_path) == []


def test_what_a_killed_process_left_is_removed_by_the_next_and_what_lives_is_kept(tmp_path: Path) -> None:
    code = (
        "import os, sys, pyarrow as pa\n"
        "from omnigraph.sets.scratch import Scratch\n"
        "from omnigraph.engine.write.spool import RowSpool\n"
        "from omnigraph.settings import Settings\n"
        "scratch = Scratch(Settings.resolve(limits_spill_dir=sys.argv[1], limits_memory_bytes=8))\n"
        "rows = pa.record_batch({'id': ['a']})\n"
        "RowSpool(rows.schema, scratch).append(rows)\n"
        "os._exit(9)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    (left,) = (p.name for p in tmp_path.iterdir())
    with Scratch(settings(tmp_path, 8)) as living:
        RowSpool(SCHEMA, living).append(batch(0, 1))
        with Scratch(settings(tmp_path, 8)) as other:
            RowSpool(SCHEMA, other).append(batch(0, 1))
        assert left not in {p.name for p in tmp_path.iterdir()}
        assert len(files_below(tmp_path)) == 1


def test_rows_can_be_taken_out_by_position(tmp_path: Path) -> None:
    with Scratch(settings(tmp_path, 8)) as scratch:
        spool = RowSpool(SCHEMA, scratch).extend([batch(0, 50), batch(50, 50)])
        dropped = RowSpool(SCHEMA, scratch)
        kept = spool.without(np.array([99, 0, 50, 1000]), dropped)
        assert kept.num_rows == 97
        assert sorted(dropped.table().column("__position").to_pylist()) == [0, 50, 99]


def test_a_relation_is_read_anew_by_each_scan(tmp_path: Path) -> None:
    with Scratch(settings(tmp_path, 1 << 20)) as scratch:
        rows = Relation(SCHEMA, lambda: iter([batch(0, 10), batch(10, 10)]), 20)
        sql = "SELECT count(*) AS n FROM input a JOIN input b ON a.id = b.id"
        assert scratch.rows(sql, {"input": rows}).column("n").to_pylist() == [20]


def test_sql_can_neither_read_files_nor_change_its_own_limits(tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("a,b\n1,2\n")
    with Scratch(settings(tmp_path, 1 << 20)) as scratch:
        for sql in (f"SELECT * FROM read_csv('{secret}')", f"COPY (SELECT 1) TO '{tmp_path}/out.csv'"):
            with pytest.raises(Exception, match="a check could not be run"):
                scratch.rows(sql, {})
        with pytest.raises(Exception, match="a check could not be run"):
            scratch.rows("SET memory_limit='10GB'", {})
    assert not (tmp_path / "out.csv").exists()


def test_too_little_memory_is_a_limit_the_user_can_raise(tmp_path: Path) -> None:
    wide = pa.table({"id": [f"{n:0200d}" for n in range(2000)]})
    with Scratch(settings(tmp_path, 1)) as scratch, pytest.raises(LimitExceeded) as error:
        scratch.rows("SELECT list(id) AS l FROM (SELECT a.id FROM input a, input b)", {"input": Relation.of(wide)})
    assert error.value.limit == "limits.memory_bytes"
    assert "OMNIGRAPH_MEMORY_BYTES" in error.value.hint
