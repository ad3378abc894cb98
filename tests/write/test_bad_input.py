"""Input nobody should send is refused with its place and a reason, in bounded memory, and nothing is written."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from bad_input_child import SCHEMA

from omnigraph.base.errors import InvalidData, OmniError
from omnigraph.graph import Graph

GOOD = b'{"type":"Person","data":{"name":"good"}}\n'
CHILD = Path(__file__).with_name("bad_input_child.py")


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return Graph.init(str(tmp_path / "g"), SCHEMA)


def told(graph: Graph, path: Path) -> list[tuple[int, str | None, str, str]]:
    """Line, property, reason and message of each violation; the graph is as it was."""
    head = graph.head_commit_id_for_branch()
    with pytest.raises(InvalidData) as refused:
        graph.load(path, mode="append")
    assert graph.head_commit_id_for_branch() == head
    assert {v["file"] for v in refused.value.violations} == {str(path)}
    return [(v["line"], v["property"], v["reason"], v["message"]) for v in refused.value.violations]


@pytest.mark.parametrize(
    ("encoding", "says"),
    [
        ("utf-16", "not UTF-8 text: byte 0xff at column 1; the file looks like UTF-16"),
        ("latin-1", "not UTF-8 text: byte 0xfc at column 34"),
        ("cp1252", "not UTF-8 text: byte 0xfc at column 34"),
    ],
)
def test_a_file_of_another_encoding_is_refused_by_its_first_wrong_byte(
    graph: Graph, tmp_path: Path, encoding: str, says: str
) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes('{"type":"Person","data":{"name":"ünï"}}\n'.encode(encoding))
    assert told(graph, path)[0] == (1, None, "invalid_json", says)


@pytest.mark.parametrize(
    ("line", "reason", "says"),
    [
        (b'{"type":"Person","data":{"name":"a\xc3"}}', "invalid_json", "not UTF-8 text: byte 0xc3 at column 35"),
        (b'{"type":"Person","data":{"name":"a\x00"}}', "invalid_json", "invalid JSON at column"),
        (b"\x00\x00\x00\x00", "invalid_json", "invalid JSON at column 1"),
        (b'{"type":"Person","data":{"name":"\\ud800"}}', "invalid_json", "invalid JSON at column"),
        (b'{"type":"Person","data":{"name":NaN}}', "invalid_json", "invalid JSON at column"),
        (b'{"type":"Person","data":{"name":"a","score":Infinity}}', "invalid_json", "invalid JSON at column"),
        (b'{"type":"Person","data":{"name":"a","age":012}}', "invalid_json", "invalid JSON at column"),
        (b"{'type':'Person'}", "invalid_json", "invalid JSON at column 2"),
        (b"name,age", "invalid_json", "invalid JSON at column 1"),
        (b'{"type":"Person","data":{"name":' + b"[" * 100_000, "invalid_json", "depth limit exceeded"),
        (
            b'{"type":"Person","data":{"name":"a","age":' + b'{"a":' * 900 + b"1" + b"}" * 902,
            "wrong_type",
            "got object",
        ),
        (b'{"type":"Person","data":{"name":"a","age":1e400}}', "wrong_type", "expects an integer, got float"),
        (b'{"type":"Person","data":{"name":"a","score":1e400}}', "out_of_range", "exceeds F64 range"),
        (b'{"type":"Person","data":{"name":"a","score":-1E+9999}}', "out_of_range", "exceeds F64 range"),
        (b'{"type":"Person","data":{"name":"a","v":[1,2,1e400]}}', "bad_vector", "element 3 exceeds F32 range"),
        (b'{"type":"Person","data":{"name":"a","age":' + b"9" * 100_000 + b"}}", "out_of_range", "too many digits"),
        (b'{"type":"Person","data":{"name":"a","score":-' + b"9" * 100_000 + b"}}", "out_of_range", "too many digits"),
        (b'{"type":"Person","data":{"name":"a","tags":[' + b"0," * 50_000 + b"0]}}", "wrong_type", "element 1 of list"),
        (b'{"type":"Person","data":{"name":"a","v":[' + b"0," * 50_000 + b"0]}}", "bad_vector", "got 50001"),
    ],
    ids=lambda value: ascii(value[:50]) if isinstance(value, bytes) else None,
)
def test_a_hostile_line_among_good_ones_is_told_alone(
    graph: Graph, tmp_path: Path, line: bytes, reason: str, says: str
) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(GOOD + line + b"\n" + GOOD.replace(b"good", b"more"))
    ((number, _, code, message),) = told(graph, path)
    assert (number, code) == (2, reason)
    assert says in message
    assert len(message) < 300
    done = graph.load(path, mode="append", on_error="quarantine", index=False)
    assert (done.rejected, done.total_entities) == (1, 2)


@pytest.mark.parametrize("kept", [0, 3, 20, 200, -4, -8])
@pytest.mark.parametrize("packing", ["gzip", "zstd"])
def test_a_packed_file_cut_anywhere_is_refused_and_nothing_is_written(
    graph: Graph, tmp_path: Path, packing: str, kept: int
) -> None:
    lines = b"".join(b'{"type":"Person","data":{"name":"p%d"}}\n' % n for n in range(5000))
    packed = pa.compress(lines, codec="gzip" if packing == "gzip" else "zstd", asbytes=True)
    path = tmp_path / f"in.jsonl.{'gz' if packing == 'gzip' else 'zst'}"
    path.write_bytes(packed[:kept])
    head = graph.head_commit_id_for_branch()
    with pytest.raises(OmniError) as refused:
        graph.load(path, mode="append")
    assert str(path) in str(refused.value)
    assert refused.value.hint
    assert graph.head_commit_id_for_branch() == head


@pytest.mark.slow
def test_a_broken_packed_file_leaves_no_noise_beside_its_error(tmp_path: Path) -> None:
    Graph.init(str(tmp_path / "g"), SCHEMA)
    path = tmp_path / "in.jsonl.gz"
    path.write_bytes(gzip.compress(GOOD * 5000)[:-20])
    words = [
        "-m",
        "omnigraph.cli.main",
        "load",
        str(tmp_path / "g"),
        "--data",
        str(path),
        "--mode",
        "append",
        "--quiet",
    ]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    first, hint = done.stderr.splitlines()
    assert "ends too early" in first
    assert hint.startswith("hint: ")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "name", "says", "mib_max"),
    [
        # The limit of a line is 32 MiB; what may be held is that line and the copies its reading needs.
        ("a line of 100 MB", "in.jsonl", "line has 104857636 bytes, more than the 33554432 allowed", 90),
        ("a line of 100 MB", "in.jsonl.gz", "line has 104857636 bytes, more than the 33554432 allowed", 90),
        ("a number of 30 million digits", "in.jsonl", "too many digits exceeds I32 range", 250),
        ("30 million brackets", "in.jsonl", "depth limit exceeded", 250),
        ("an array of integers", "in.jsonl", "expects an integer, got array", 700),
        ("an array of objects", "in.jsonl", "expects an integer, got array", 1300),
    ],
)
def test_the_memory_of_a_bad_line_is_bounded(tmp_path: Path, kind: str, name: str, says: str, mib_max: int) -> None:
    words = [sys.executable, str(CHILD), kind, str(tmp_path / name), str(tmp_path / "g")]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    print(f"{kind}: {found['taken_mib']} MiB")
    assert says in found["said"]
    assert found["taken_mib"] < mib_max
