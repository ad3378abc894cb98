"""Files that recovery, head checks and locks handle by name, without asking Lance.

1. Version v is the file `_versions/{2**64-1-v:020d}.manifest`, on main and on branches.
2. A torn newest manifest blocks the head and every write; the version below opens, and removing the file heals.
3. A compaction moves a table two versions, an idle one none.
4. A lock outlives its holder in a forked child, not in a spawned one.
"""

import fcntl
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import lance
import pytest
from lance.optimize import Compaction
from lance_helpers import (
    OP,
    attempt,
    branch,
    by_id,
    commit,
    create,
    ids,
    insert_once,
    plan_compaction,
    reopen,
    stage_append,
    stage_index,
    stage_upsert,
    transaction,
    version_file,
)

Act = Callable[[lance.LanceDataset], object]
PRESENT = ["a0", "a1", "a2", "b0", "b1", "b2"]


@pytest.fixture
def table(tmp_path: Path) -> lance.LanceDataset:
    return create(tmp_path / "table.lance")


def version_files(ds: lance.LanceDataset) -> set[str]:
    return {path.name for path in (Path(ds.uri) / "_versions").glob("*.manifest")}


def test_version_file_is_named_by_the_distance_to_the_largest_version(table):
    assert version_files(table) == {f"{2**64 - 1 - v:020d}.manifest" for v in (1, 2, 3)}
    assert not version_file(table, 4).exists()
    commit(table, stage_append(table, "new"))
    assert version_file(table, 4).exists()


def test_branch_has_version_files_from_its_fork_point_on(table):
    table.create_branch("b")
    forked = branch(table, "b")
    commit(forked, stage_append(forked, "new"))
    assert version_files(forked) == {version_file(forked, v).name for v in (3, 4)}
    assert version_files(table) == {version_file(table, v).name for v in (1, 2, 3)}


def test_staging_adds_no_version_file(table):
    for stage in (lambda: stage_append(table, "x"), lambda: stage_upsert(table, "a0"), lambda: stage_index(table)):
        stage()
    plan_compaction(table)
    assert version_files(table) == {version_file(table, v).name for v in (1, 2, 3)}


@pytest.fixture
def torn(table) -> lance.LanceDataset:
    """The handle of version 3; version 4 was acknowledged and its manifest is empty."""
    commit(table, stage_append(table, "lost"))
    version_file(table, 4).write_bytes(b"")
    return table


@pytest.mark.parametrize("version", [None, 4])
def test_torn_newest_manifest_does_not_open(torn, version: int | None):
    with pytest.raises(ValueError, match="Invalid range"):
        lance.dataset(torn.uri, version=version)


def test_version_below_a_torn_manifest_opens_and_reads(torn):
    pinned = lance.dataset(torn.uri, version=3)
    assert sorted(pinned.to_table()["id"].to_pylist()) == PRESENT
    assert pinned.read_transaction(3) is not None
    assert pinned.latest_version == 4


@pytest.mark.parametrize(
    "act",
    [
        pytest.param(lambda ds: ds.restore(), id="restore"),
        pytest.param(lambda ds: commit(ds, transaction(ds, OP.Restore(3))), id="staged-restore"),
        pytest.param(lambda ds: ds.checkout_latest(), id="checkout-latest"),
        pytest.param(lambda ds: commit(ds, stage_append(ds, "new")), id="append"),
        pytest.param(lambda ds: insert_once(ds, "new"), id="publish"),
        pytest.param(lambda ds: ds.versions(), id="list-versions"),
    ],
)
def test_torn_newest_manifest_stops(torn, act: Act):
    assert attempt(lambda: act(lance.dataset(torn.uri, version=3))).refused
    assert version_file(torn, 4).stat().st_size == 0
    assert not version_file(torn, 5).exists()


def test_removing_the_torn_file_heals_the_table_without_its_last_commit(torn):
    version_file(torn, 4).unlink()
    assert ids(torn) == PRESENT
    landed = commit(reopen(torn), stage_append(reopen(torn), "new"))
    assert landed.version == 4
    assert by_id(torn, "_row_created_at_version")["new"] == 4
    assert len(set(by_id(torn, "_rowid").values())) == 7


def test_torn_manifest_below_the_head_does_not_stop_the_head(table):
    commit(table, stage_append(table, "new"))
    version_file(table, 2).write_bytes(b"")
    assert ids(table) == [*PRESENT, "new"]
    landed = commit(reopen(table), stage_append(reopen(table), "newer"))
    assert landed.version == 5


def test_compaction_moves_the_table_two_versions_and_staging_it_none(table):
    rewrites = plan_compaction(table)
    assert reopen(table).version == 3
    Compaction.commit(table, rewrites)
    assert reopen(table).version == 5
    assert ids(table) == PRESENT


@pytest.mark.parametrize("upkeep", ["compact_files", "optimize_indices"])
def test_upkeep_of_an_idle_table_makes_no_version(table, upkeep: str):
    commit(table, stage_index(table))
    reopen(table).optimize.compact_files()
    reopen(table).optimize.optimize_indices()
    settled = reopen(table).version
    getattr(reopen(table).optimize, upkeep)()
    assert reopen(table).version == settled


def test_new_table_does_not_clean_itself_up(table):
    assert table.config() == {}


HOLDER = """
    import fcntl, os, signal, subprocess, sys
    lock = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    wait = "import sys; print('ready', flush=True); sys.stdin.read()"
    if sys.argv[2] == "fork":
        if os.fork() == 0:
            exec(wait)
            os._exit(0)
    else:
        subprocess.Popen([sys.executable, "-c", wait], close_fds=False)
    signal.pause()
"""


def lock_is_free(path: Path) -> bool:
    descriptor = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


@pytest.mark.parametrize(("child", "free_after_kill"), [("fork", False), ("spawn", True)])
def test_lock_of_a_killed_holder_is_kept_by_a_child_it_did(tmp_path, child: str, free_after_kill: bool):
    path = tmp_path / "branch.lock"
    command = [sys.executable, "-c", textwrap.dedent(HOLDER), str(path), child]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "ready\n"
    assert not lock_is_free(path)
    holder.send_signal(signal.SIGKILL)
    holder.wait(30)
    assert lock_is_free(path) is free_after_kill

    holder.stdin.close()
    assert holder.stdout.read() == "", "the child ended and closed its end"
    assert lock_is_free(path)
