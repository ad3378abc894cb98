"""Makes a bad file, tries to load it in a process of its own, prints what was said and how much memory it took."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Callable, Iterator

from load_child import high_water_kib

from omnigraph.base.errors import OmniError
from omnigraph.graph import Graph

SCHEMA = """
node Person { name: String @key  age: I32?  score: F64?  tags: [String]?  v: Vector(3)? }
"""
MIB = 1 << 20
HEAD, TAIL = b'{"type":"Person","data":{"name":"x","age":', b"}}\n"


def long_line() -> Iterator[bytes]:
    yield b'{"type":"Person","data":{"name":"'
    for _ in range(100):
        yield b"x" * MIB
    yield b'"}}\n{"type":"Person","data":{"name":"after"}}\n'


def big_array(item: bytes) -> Iterator[bytes]:
    """As long as a line may be."""
    yield HEAD + b"["
    for _ in range(30):
        yield (item + b",") * (MIB // (len(item) + 1))
    yield b"0]" + TAIL


def digits() -> Iterator[bytes]:
    yield HEAD
    for _ in range(30):
        yield b"9" * MIB
    yield TAIL


def nested() -> Iterator[bytes]:
    yield HEAD
    for bracket in (b"[", b"]"):
        for _ in range(15):
            yield bracket * MIB
    yield TAIL


KINDS: dict[str, Callable[[], Iterator[bytes]]] = {
    "a line of 100 MB": long_line,
    "an array of integers": lambda: big_array(b"1"),
    "an array of floats": lambda: big_array(b"0.25"),
    "an array of objects": lambda: big_array(b"{}"),
    "a number of 30 million digits": digits,
    "30 million brackets": nested,
}


def write(kind: str, path: str) -> None:
    with gzip.open(path, "wb", 1) if path.endswith(".gz") else open(path, "wb") as file:
        for piece in KINDS[kind]():
            file.write(piece)


def main(kind: str, path: str, uri: str) -> None:
    write(kind, path)
    graph = Graph.init(uri, SCHEMA)
    before = high_water_kib()
    try:
        graph.load(path, mode="append")
        said = "nothing"
    except OmniError as error:
        said = str(error)
    print(json.dumps({"said": said, "taken_mib": (high_water_kib() - before) // 1024}))


if __name__ == "__main__":
    main(*sys.argv[1:])
