"""Inputs of every kind become the same numbered lines, in bounded memory, or a typed error says what is wrong."""

from __future__ import annotations

import gzip
import io
import os
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from records_scene import CATALOG

from omnigraph.base.errors import BadRequest, NotFound, OmniError
from omnigraph.records.decode import Decoder
from omnigraph.records.sources import LineBatch, Source, find_sources, read_batches, stored_bytes
from omnigraph.records.violations import Findings, Stage


def zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as out:
        out.write(data)
    return bytes(sink.getvalue().to_pybytes())


PACKED = {".gz": gzip.compress, ".zst": zstd}


class Drip(io.RawIOBase):
    """A stream that hands over a few bytes at a time, like a slow pipe."""

    def __init__(self, data: bytes, step: int) -> None:
        self._data = data
        self._step = step

    def read(self, size: int = -1) -> bytes:
        given_out, self._data = self._data[: self._step], self._data[self._step :]
        return given_out


def streamed(data: bytes, step: int = 1 << 20, **options: Any) -> list[LineBatch]:
    source = Source(0, "stream", stream=cast(BinaryIO, Drip(data, step)))
    return list(read_batches([source], **options))


def numbered(batches: list[LineBatch]) -> list[tuple[int, bytes]]:
    return [(int(n), line) for batch in batches for n, line in zip(batch.line_numbers, batch.lines, strict=True)]


def lines_of(path: Path, **options: Any) -> list[tuple[int, bytes]]:
    return numbered(list(read_batches(find_sources([path]), **options)))


def test_lines_keep_their_numbers_across_blank_lines_crlf_and_a_bom(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(b'\xef\xbb\xbf{"a":1}\r\n\n  \t\r\n{"b":2}\n\r\n{"c":3}')
    assert lines_of(file) == [(1, b'{"a":1}'), (4, b'{"b":2}'), (6, b'{"c":3}')]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.binary(max_size=12).filter(lambda b: b"\n" not in b), st.sampled_from([b"\n", b"\r\n"]))),
    st.integers(1, 40),
    st.integers(1, 12),
    st.integers(1, 5),
    st.booleans(),
    st.booleans(),
)
def test_lines_do_not_depend_on_how_the_bytes_arrive(
    pieces: list[tuple[bytes, bytes]], step: int, limit: int, rows: int, bom: bool, ends: bool
) -> None:
    data = b"".join(line + ending for line, ending in pieces)
    data = data if ends else data.removesuffix(b"\n")
    assume(bom or not data.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd")))
    batches = streamed(b"\xef\xbb\xbf" * bom + data, step, max_line_bytes=limit, batch_rows=rows)
    expected = (data if bom else data.removeprefix(b"\xef\xbb\xbf")).split(b"\n")
    bare = [line[:-1] if line.endswith(b"\r") else line for line in expected]
    assert numbered(batches) == [
        (n, line) for n, line in enumerate(bare, 1) if line.strip(b" \t\r") and len(line) <= limit
    ]
    oversized = [one for batch in batches for one in batch.oversized]
    assert [(one.line_number, one.size_bytes, one.prefix) for one in oversized] == [
        (n, len(line), line[:200]) for n, line in enumerate(bare, 1) if len(line) > limit
    ]
    assert all(len(batch.lines) <= rows for batch in batches)


@pytest.mark.parametrize("ending", PACKED)
@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson", "a.json", "odd.txt"])
def test_packed_files_read_like_plain_ones(tmp_path: Path, name: str, ending: str) -> None:
    content = b"".join(b'{"n":%d}\n' % n for n in range(50_000))
    plain, packed = tmp_path / name, tmp_path / (name + ending)
    plain.write_bytes(content)
    packed.write_bytes(PACKED[ending](content))
    assert lines_of(packed) == lines_of(plain)
    assert lines_of(packed)[-1] == (50_000, b'{"n":49999}')


@pytest.mark.parametrize("ending", PACKED)
def test_a_packed_file_may_have_several_members(tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"a.jsonl{ending}"
    file.write_bytes(PACKED[ending](b"{}\n[") + PACKED[ending](b"]\n{}"))
    assert lines_of(file) == [(1, b"{}"), (2, b"[]"), (3, b"{}")]


def refusal(path: Path | str) -> OmniError:
    with pytest.raises(OmniError) as caught:
        list(read_batches(find_sources([path])))
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize("ending", PACKED)
def test_a_truncated_file_is_named_with_the_last_line_that_could_be_read(tmp_path: Path, ending: str) -> None:
    content = b"".join(b'{"n":"%s"}\n' % os.urandom(20).hex().encode() for _ in range(40_000))
    whole = PACKED[ending](content)
    file = tmp_path / f"a.jsonl{ending}"
    read = []
    for kept in (0.5, 0.9):
        file.write_bytes(whole[: int(len(whole) * kept)])
        text = refusal(file).describe()
        start = (
            f"input '{file}' ends too early: its {'gzip' if ending == '.gz' else 'zstd'} data could be read up to line "
        )
        assert text.startswith(start)
        read.append(int(text.removeprefix(start)))
    # Lines of equal size: what was read lies close before the cut.
    assert 15_000 < read[0] <= 20_000 < 31_000 < read[1] <= 36_000
    file.write_bytes(whole[:-1])
    assert "ends too early" in refusal(file).describe()


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(os.urandom(200_000).hex().encode()))
    packed[len(packed) // 2] ^= 0xFF
    file = tmp_path / "a.jsonl.gz"
    file.write_bytes(packed)
    assert f"input '{file}' is damaged: its gzip data could be read up to line 0" in refusal(file).describe()
    file.write_bytes(gzip.compress(b"{}\n") + b"rubbish")
    assert "is damaged" in refusal(file).describe()


def test_a_file_whose_name_and_content_disagree_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(gzip.compress(b"{}\n"))
    assert refusal(file).describe() == f"input '{file}' is gzip-compressed"
    file.write_bytes(zstd(b"{}\n"))
    assert refusal(file).hint == "Let its name end in .zst, or unpack it."
    file = tmp_path / "b.jsonl.gz"
    for content in (b"{}\n", b"", zstd(b"{}")):
        file.write_bytes(content)
        assert isinstance(refusal(file), BadRequest)


def test_what_cannot_be_opened_is_refused_with_a_hint(tmp_path: Path) -> None:
    missing = refusal(tmp_path / "none.jsonl")
    assert isinstance(missing, NotFound)
    assert missing.describe() == f"input '{tmp_path / 'none.jsonl'}' not found"
    assert "is not a local path" in refusal("s3://bucket/a.jsonl").describe()
    assert isinstance(refusal(tmp_path / "a.jsonl" / "b.jsonl"), NotFound)
    with pytest.raises(BadRequest, match="standard input is given twice"):
        find_sources(["-", "-"])


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_file_that_may_not_be_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.touch(0o000)
    assert "permission denied" in refusal(file).describe()


def test_a_file_that_vanishes_after_it_was_found_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(b"{}")
    sources = find_sources([file])
    file.unlink()
    with pytest.raises(NotFound):
        list(read_batches(sources))
    file.mkdir()
    with pytest.raises(BadRequest, match="is a directory"):
        list(read_batches(sources))


def test_a_directory_stands_for_its_input_files_sorted_by_name(tmp_path: Path) -> None:
    taken = ["a.jsonl", "b.ndjson.gz", "c.json", "d.json.zst", "z.ndjson"]
    left = [".hidden.jsonl", "_SUCCESS.json", "notes.txt", "a.jsonl.rejects.jsonl", "x.jsonl.bak", "a.csv"]
    for name in (*taken, *left):
        (tmp_path / name).write_bytes(PACKED.get(Path(name).suffix, bytes)(b"{}"))
    (tmp_path / "folder.jsonl").mkdir()
    (tmp_path / "deeper").mkdir()
    (tmp_path / "deeper" / "e.jsonl").write_bytes(b"{}")
    found = find_sources([tmp_path / "notes.txt", tmp_path])
    assert [Path(source.name).name for source in found] == ["notes.txt", *taken]
    assert [source.number for source in found] == list(range(6))
    assert [batch.file_number for batch in read_batches(found)] == list(range(6))


def test_a_directory_without_inputs_says_which_names_it_would_take(tmp_path: Path) -> None:
    (tmp_path / "people.csv").touch()
    error = refusal(tmp_path)
    assert error.describe() == f"directory '{tmp_path}' holds no input file"
    assert error.hint == "Files are taken by name: .jsonl, .ndjson, .json, each also with .gz or .zst."


def test_several_files_form_one_order(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a.jsonl"):
        (tmp_path / name).write_bytes(b"{}\n{}\n")
    positions = [
        int(position)
        for batch in read_batches(find_sources([tmp_path / "b.jsonl", tmp_path / "a.jsonl"]))
        for position in batch.positions
    ]
    assert positions == [1, 2, (1 << 40) + 1, (1 << 40) + 2]


def test_standard_input_is_one_of_the_inputs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"[1]\n")

    class Stdin:
        buffer = io.BytesIO(b"{}\n\n[]")

    monkeypatch.setattr("sys.stdin", Stdin)
    sources = find_sources([tmp_path / "a.jsonl", "-"])
    assert sources[1].name == "<stdin>"
    assert numbered(list(read_batches(sources))) == [(1, b"[1]"), (1, b"{}"), (3, b"[]")]
    assert not Stdin.buffer.closed
    assert stored_bytes(sources) is None
    assert stored_bytes(sources[:1]) == 4


class Endless(io.RawIOBase):
    """One line of many bytes that exist nowhere."""

    def __init__(self, size: int) -> None:
        self._left = size
        self._ending = iter([b'\n{"type":"Note","data":{"text":"x"}}\n', b""])

    def read(self, size: int = -1) -> bytes:
        if not self._left:
            return next(self._ending)
        size = min(size, self._left)
        self._left -= size
        return b"x" * size


def test_a_line_that_is_too_long_is_never_held_whole() -> None:
    size = 300 << 20
    tracemalloc.start()
    batches = list(read_batches([Source(0, "stream", stream=cast(BinaryIO, Endless(size)))], max_line_bytes=4 << 20))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 24 << 20
    findings = Findings()
    rows = [Decoder(CATALOG, max_line_bytes=4 << 20).decode(batch, findings) for batch in batches]
    assert rows[-1]["node:Note"].column("__position").to_pylist() == [2]
    assert [(v.position, v.reason, v.message) for v in findings.listed(Stage.PARSE)] == [
        (1, "line_too_long", f"line has {size} bytes, more than the {4 << 20} allowed")
    ]


def test_batches_are_bounded_in_rows_and_in_bytes() -> None:
    many = streamed(b"{}\n" * 20_000, batch_rows=8192)
    assert [len(batch.lines) for batch in many] == [8192, 8192, 3616]
    wide = streamed((b'"' + b"x" * (1 << 20) + b'"\n') * 40, batch_rows=8192)
    assert sum(len(batch.lines) for batch in wide) == 40
    assert max(sum(map(len, batch.lines)) for batch in wide) < 12 << 20


def positions(batches: Iterator[LineBatch]) -> list[int]:
    return [int(position) for batch in batches for position in batch.positions]


@pytest.mark.parametrize("content", [b"", b"\n", b"\r\n\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n", b"   "])
def test_an_input_without_lines_gives_no_rows(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(content)
    assert positions(read_batches(find_sources([file]))) == []


def test_a_bom_counts_only_at_the_beginning(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(b"{}\n\xef\xbb\xbf{}\n")
    assert lines_of(file)[1] == (2, b"\xef\xbb\xbf{}")
