"""Ranges of an object hold its lines once each, wherever they are cut; lines end as Spark ends them."""

from __future__ import annotations

import gzip
from itertools import pairwise

import obstore
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from obstore.store import MemoryStore

from omnigraph.pipeline.worker.s3_lines import LineRange, LineRules, count_ranges, numbered_lines
from omnigraph.storage.s3_files import bucket_and_key

ALL = LineRules()


class Access:
    """Stands in for S3Access: the same objects without a server."""

    def __init__(self, **objects: bytes) -> None:
        self.store = MemoryStore()
        for name, data in objects.items():
            obstore.put(self.store, name, data)

    def open(self, bucket: str, prefix: str) -> MemoryStore:
        assert (bucket, prefix) == ("lake", "")
        return self.store


def lines(data: bytes, cuts: list[int], rules: LineRules = ALL) -> list[bytes]:
    access = Access(a=data)
    ends = sorted({0, len(data), *(cut % max(1, len(data)) for cut in cuts)})
    ranges = [LineRange("s3://lake/a", start, end) for start, end in pairwise(ends)]
    return [line for each in ranges for _, line in numbered_lines(each, access, rules)]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.sampled_from([b"a", b"bc", b"", b"\xc3\xa4", b"\n", b"\r", b"\r\n"]), max_size=24),
    st.lists(st.integers(1, 40), min_size=1, max_size=4),
)
def test_every_line_is_read_once_wherever_the_object_is_cut(pieces, cuts):
    data = b"".join(pieces)
    assert lines(data, cuts) == data.splitlines()


def test_chunks_cut_lines_and_their_ends_without_harm(monkeypatch):
    monkeypatch.setattr("omnigraph.pipeline.worker.s3_lines._CHUNK_BYTES", 3)
    data = b"ab\r\ncdefgh\r\rij\nk\r\n"
    assert lines(data, []) == data.splitlines() == lines(data, [3, 4, 5, 11])


def test_a_byte_order_mark_is_no_part_of_the_first_line():
    assert lines(b"\xef\xbb\xbfa\nb", [4]) == [b"a", b"b"]


def test_blank_lines_comments_and_headers_are_no_rows_but_the_header_is_counted():
    access = Access(a=b"# c\n\nname\nana\n \n# d\nbo\n")
    rules = LineRules(skips_blank=True, comment="#", header=True)
    assert list(numbered_lines(LineRange("s3://lake/a", 0, 99), access, rules)) == [(2, b"ana"), (3, b"bo")]


def test_the_rows_of_each_range_are_counted_with_the_header():
    access = Access(a=b"name\nana\nbo\ncy\n")
    rows = [("s3://lake/a", 0, 6, 1), ("s3://lake/a", 6, 15, 1)]
    columns = [pa.array(list(each)) for each in zip(*rows, strict=True)]
    batch = pa.record_batch(columns, names=["__file", "start", "end", "first_row"])
    rules = LineRules(skips_blank=True, header=True)
    counted = [row for found in count_ranges(iter([batch]), access, rules) for row in found.to_pylist()]
    assert [(row["start"], row["rows"]) for row in counted] == [(0, 2), (6, 2)]


def test_a_compressed_object_is_one_range():
    access = Access(**{"a.gz": gzip.compress(b"a\nb\n") + gzip.compress(b"c\n")})
    found = list(numbered_lines(LineRange("s3://lake/a.gz", 0, 1 << 62), access, ALL))
    assert found == [(1, b"a"), (2, b"b"), (3, b"c")]


@pytest.mark.parametrize("name", ["a b.csv", "x?y#z%20.csv", "deep/er/ä.csv"])
def test_the_name_of_an_object_is_taken_as_it_is(name):
    assert bucket_and_key(f"s3://lake/{name}") == ("lake", name)
