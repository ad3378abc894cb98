"""Loads a file in a process of its own and prints how much memory that took: `mode file graph`."""

from __future__ import annotations

import json
import sys

from omnigraph.graph import Graph

SCHEMA = """
node Person {
  name: String @key
  email: String? @unique
  age: I32?
}
edge Follows: Person -> Person
"""


def write_lines(path: str, size_bytes: int) -> int:
    """People and edges between them until the file is that large; how many lines there are."""
    line = '{{"type":"Person","data":{{"name":"person-{0:09d}","email":"mail-{0:09d}@example.org","age":{1}}}}}\n'
    edge = '{{"edge":"Follows","from":"person-{0:09d}","to":"person-{1:09d}","data":{{"id":"f{0}"}}}}\n'
    size = n = lines = 0
    with open(path, "w", encoding="ascii") as file:
        while size < size_bytes:
            size += file.write(line.format(n, n % 100))
            lines += 1
            if n % 2:
                size += file.write(edge.format(n, n // 2))
                lines += 1
            n += 1
    return lines


def high_water_kib() -> int:
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))


def main(mode: str, path: str, uri: str) -> None:
    graph = Graph.open(uri)
    before = high_water_kib()
    done = graph.load(path, mode=mode)  # type: ignore[arg-type]
    told = {"before_kib": before, "high_water_kib": high_water_kib(), "total": done.total_entities}
    print(json.dumps({**told, "warnings": done.warnings}))


if __name__ == "__main__":
    main(*sys.argv[1:])
