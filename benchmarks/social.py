"""A social graph for read benchmarks, and what the raw substrate and a peer need to answer the same questions.

No two edges are parallel and none loops, so a walk means the same to everybody: answers can be compared.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

SCHEMA = """
node Person { name: String @key  age: I32?  city: String?  bio: String? @index  vec: Vector(64)? @index }
edge Knows: Person -> Person { since: I32? }
"""
DIMENSION = 64
CITIES = 997
_WORDS = ("river", "stone", "garden", "winter", "letter", "bridge", "copper", "silent", "market", "harbour", "meadow")
_BATCH_EDGES = 1_000_000
Ints = npt.NDArray[np.int64]


def name_of(person: int) -> str:
    return f"p{person:08d}"


@dataclass(frozen=True)
class Social:
    """`persons` people who know ten others each on average; some are known by very many."""

    persons: int
    degree: int = 10

    @cached_property
    def edges(self) -> tuple[Ints, Ints]:
        """Sources and targets, sorted by source."""
        chance = np.random.default_rng(11)
        count = self.persons * self.degree
        sources = chance.integers(0, self.persons, count)
        targets = (chance.random(count) ** 2 * self.persons).astype(np.int64)
        pairs = np.unique(sources * self.persons + targets)
        sources, targets = pairs // self.persons, pairs % self.persons
        apart = sources != targets
        return sources[apart], targets[apart]

    @cached_property
    def names(self) -> pa.Array:
        return pa.array([name_of(person) for person in range(self.persons)])

    @cached_property
    def nodes(self) -> pa.Table:
        chance = np.random.default_rng(12)
        words = chance.integers(0, len(_WORDS), (self.persons, 3))
        rare = chance.integers(0, max(self.persons // 20, 1), self.persons)
        bios = [f"{_WORDS[a]} {_WORDS[b]} {_WORDS[c]} word{r}" for (a, b, c), r in zip(words, rare, strict=True)]
        with_vector = np.arange(self.persons) % 10 == 0
        numbers = chance.standard_normal((self.persons, DIMENSION), dtype=np.float32)
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(numbers.ravel()), DIMENSION)
        return pa.table(
            {
                "name": self.names,
                "age": pa.array(chance.integers(1, 99, self.persons), pa.int32()),
                "city": [f"city-{person % CITIES}" for person in range(self.persons)],
                "bio": bios,
                "vec": pa.compute.if_else(pa.array(with_vector), vectors, pa.scalar(None, vectors.type)),
            }
        )

    def edge_batches(self) -> Iterator[pa.RecordBatch]:
        sources, targets = self.edges
        for first in range(0, len(sources), _BATCH_EDGES):
            src, dst = sources[first : first + _BATCH_EDGES], targets[first : first + _BATCH_EDGES]
            since = pa.array(2000 + (src + dst) % 25, pa.int32())
            yield pa.record_batch([self.names.take(pa.array(src)), self.names.take(pa.array(dst)), since], _EDGES)

    def edge_reader(self) -> pa.RecordBatchReader:
        schema = pa.schema([("from", pa.string()), ("to", pa.string()), ("since", pa.int32())])
        return pa.RecordBatchReader.from_batches(schema, self.edge_batches())


_EDGES = ["from", "to", "since"]


class Csr:
    """The least a walk needs: two arrays, numbers for people."""

    def __init__(self, social: Social) -> None:
        sources, self.targets = social.edges
        self.offsets = np.searchsorted(sources, np.arange(social.persons + 1))
        self.names = social.names
        self.persons = social.persons

    def follow(self, frontier: Ints) -> Ints:
        begins, ends = self.offsets[frontier], self.offsets[frontier + 1]
        counts = ends - begins
        jumps = np.repeat(begins - np.concatenate(([0], np.cumsum(counts)[:-1])), counts)
        return self.targets[np.arange(counts.sum()) + jumps]

    def names_of_known(self, person: int) -> list[str]:
        found: list[str] = self.names.take(pa.array(self.follow(np.array([person])))).to_pylist()
        return found

    def walks(self, person: int, hops: int) -> int:
        frontier = np.array([person])
        for _ in range(hops):
            frontier = self.follow(frontier)
        return len(frontier)

    def reached(self, person: int, hops: int) -> int:
        seen = np.zeros(self.persons, bool)
        seen[person] = True
        frontier, count = np.array([person]), 0
        for _ in range(hops):
            met = np.unique(self.follow(frontier))
            frontier = met[~seen[met]]
            seen[frontier] = True
            count += len(frontier)
        return count

    def most_known(self) -> list[int]:
        counts = np.bincount(self.targets, minlength=self.persons)
        best = np.lexsort((np.arange(self.persons), -counts))[:10]
        return [int(counts[person]) for person in best]


class Duck:
    """The same tables in memory, joined by DuckDB on one thread."""

    def __init__(self, social: Social) -> None:
        self.connection = duckdb.connect(config={"threads": 1})
        sources, targets = social.edges
        self.connection.register("person_rows", social.nodes.select(["city"]).append_column("number", _range(social)))
        self.connection.register("knows_rows", pa.table({"src": sources, "dst": targets}))
        for name in ("person", "knows"):
            self.connection.execute(f"create table {name} as select * from {name}_rows")

    def ask(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        return self.connection.execute(sql, list(values)).fetchall()


def _range(social: Social) -> pa.Array:
    return pa.array(np.arange(social.persons))


class Ladybug:
    """An embedded graph database of one file, without branches."""

    def __init__(self, place: Path, social: Social) -> None:
        self.place = place / "ladybug.db"
        pq.write_table(social.nodes.select(["name", "age", "city"]), place / "person.parquet")
        with pq.ParquetWriter(place / "knows.parquet", social.edge_reader().schema) as writer:
            for batch in social.edge_batches():
                writer.write_batch(batch)
        self.connection = self.opened()
        self.ask("CREATE NODE TABLE Person(name STRING, age INT32, city STRING, PRIMARY KEY(name))")
        self.ask("CREATE REL TABLE Knows(FROM Person TO Person, since INT32)")
        self.ask(f"COPY Person FROM '{place / 'person.parquet'}'")
        self.ask(f"COPY Knows FROM '{place / 'knows.parquet'}'")

    @staticmethod
    def is_installed() -> bool:
        return importlib.util.find_spec("ladybug") is not None

    def opened(self) -> Any:
        import ladybug

        return ladybug.Connection(ladybug.Database(str(self.place)), num_threads=1)

    def ask(self, statement: str, values: dict[str, Any] | None = None) -> Sequence[Sequence[Any]]:
        return answer(self.connection, statement, values)


def answer(connection: Any, statement: str, values: dict[str, Any] | None = None) -> list[list[Any]]:
    found = connection.execute(statement, values or {})
    rows = []
    while found.has_next():
        rows.append(found.get_next())
    return rows
