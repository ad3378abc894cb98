"""Only a version whose own bytes are not whole is torn; a version that merely cannot be opened is never passed over."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.storage.apply import read_slot
from omnigraph.storage.places import open_root
from omnigraph.storage.tables import TableRef, is_torn, open_newest, torn_versions
from omnigraph.storage.torn import is_whole

NEWEST = 3


@pytest.fixture
def ref(tmp_path: Path) -> TableRef:
    ref = TableRef(open_root(str(tmp_path), syncs=False), "nodes/one")
    for number in range(NEWEST):
        lance.write_dataset(pa.table({"id": [f"{number}"]}), ref.uri, mode="append" if number else "create")
    return ref


def file_of(ref: TableRef, version: int = NEWEST) -> Path:
    return Path(ref.root.uri) / ref.version_file(version)


def test_every_version_that_lance_wrote_is_whole(ref: TableRef) -> None:
    assert [is_torn(ref, v) for v in (1, 2, 3)] == [False] * 3
    table = lance.dataset(ref.uri)
    table.create_scalar_index("id", "BTREE")
    table.delete("id = '1'")
    table.optimize.compact_files()
    newest = lance.dataset(ref.uri).version
    assert newest > NEWEST
    assert not any(is_torn(ref, v) for v in range(1, newest + 1))


def test_a_version_file_that_is_cut_anywhere_is_torn(ref: TableRef) -> None:
    data = file_of(ref).read_bytes()
    assert is_whole(data, NEWEST)
    assert [n for n in range(len(data)) if is_whole(data[:n], NEWEST)] == []


def test_a_version_file_of_another_version_is_torn(ref: TableRef) -> None:
    assert not is_whole(file_of(ref).read_bytes(), NEWEST + 1)


TEARS = {
    "empty": lambda data: b"",
    "cut": lambda data: data[: len(data) // 2],
    "zeros": lambda data: bytes(len(data)),
    "zeros-but-the-end": lambda data: bytes(len(data) - 16) + data[-16:],
    "zeros-in-the-middle": lambda data: data[:40] + bytes(len(data) - 80) + data[-40:],
    "noise": lambda data: bytes(b ^ 0x5A for b in data),
}


@pytest.mark.parametrize("tear", TEARS)
def test_a_torn_newest_version_is_passed_over_and_named(ref: TableRef, tear: str) -> None:
    file_of(ref).write_bytes(TEARS[tear](file_of(ref).read_bytes()))
    table = open_newest(ref)
    assert (table.version, table.below_torn) == (NEWEST - 1, True)
    assert torn_versions(ref) == [NEWEST]
    slot = read_slot(ref, NEWEST)
    assert slot is not None
    assert not slot.readable


@contextmanager
def unopenable(patch: pytest.MonkeyPatch, *versions: int | None) -> Iterator[None]:
    """Lance's own open fails for these versions, None being the newest, as when a store does not answer."""
    real = lance.dataset

    def opened(uri: str, version: int | None = None, **more: Any) -> Any:
        if version in versions:
            raise ValueError("LanceError(IO): Generic S3 error: Error after 8 retries: 503 Service Unavailable")
        return real(uri, version=version, **more)

    with patch.context() as patched:
        patched.setattr(lance, "dataset", opened)
        yield


def test_a_whole_version_that_cannot_be_opened_is_an_error_not_an_older_version(
    ref: TableRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    with unopenable(monkeypatch, None, NEWEST), pytest.raises(og.Unavailable, match="503"):
        open_newest(ref)
    with unopenable(monkeypatch, None):
        table = open_newest(ref)
    assert (table.version, table.below_torn) == (NEWEST, False)


def test_a_whole_version_that_cannot_be_read_is_no_unreadable_slot(
    ref: TableRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    with unopenable(monkeypatch, NEWEST), pytest.raises(og.Unavailable):
        read_slot(ref, NEWEST)
    slot = read_slot(ref, NEWEST)
    assert slot is not None
    assert slot.readable


def test_an_acknowledged_commit_survives_an_opening_that_could_not_read_the_newest_manifest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with og.Graph.init(str(tmp_path / "g"), "node Person { name: String? }") as graph:
        receipt = graph.write({"node:Person": og.Append(pa.table({"id": ["ana"]}))})
    newest = graph.snapshot().version
    with unopenable(monkeypatch, None, newest), pytest.raises(og.Unavailable):
        og.Graph.open(graph.uri)
    again = og.Graph.open(graph.uri)
    assert again.operation(receipt.operation_id).status == "committed"
    assert (again.snapshot().version, again.snapshot().tables["node:Person"].row_count) == (newest, 1)


_WITHOUT_HANDLES = """
import os, resource, sys
import omnigraph as og
og.Graph.open(sys.argv[1], "r").snapshot()
held = []
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[2]), resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
try:
    while True:
        held.append(os.open(os.devnull, os.O_RDONLY))
except OSError:
    pass
try:
    og.Graph.open(sys.argv[1], settings=og.Settings())
    print("opened")
except og.OmniError as error:
    print(type(error).__name__)
"""


@pytest.mark.slow
def test_a_process_without_file_handles_removes_no_version(tmp_path: Path) -> None:
    graph = og.Graph.init(str(tmp_path / "g"), "node Person { name: String? }")
    receipt = graph.write({"node:Person": og.Append(pa.table({"id": ["ana"]}))})
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 64
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_HANDLES, graph.uri, "64"], capture_output=True, text=True, timeout=120
    )
    assert (done.stdout.strip(), done.returncode) == ("Unavailable", 0), done.stderr
    assert og.Graph.open(graph.uri).operation(receipt.operation_id).status == "committed"
