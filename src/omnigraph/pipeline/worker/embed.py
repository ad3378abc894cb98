"""Texts embedded by executors, several requests one after the other in each of several lanes.

Holds for every lane: it answers the vectors it made and, where it had to stop, why. The key is part of the function
that Spark hands to its workers, which is small and shown nowhere, and never of rows, settings or answers.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pyarrow as pa

from omnigraph.base.errors import OmniError
from omnigraph.embeddings.embedder import Errand
from omnigraph.embeddings.providers import Purpose
from omnigraph.embeddings.vectors import Vector
from omnigraph.pipeline.worker.tasks import answered

LANE_COLUMN = "lane"


@dataclass(frozen=True)
class Round:
    """What every lane of one round shares. The lanes of the first round need not wait for others before them."""

    errand: Errand
    dimension: int
    lanes: int
    is_first: bool


@dataclass(frozen=True)
class Lane:
    """Texts for one task: batches by their number in the round."""

    number: int
    batches: tuple[tuple[int, tuple[str, ...]], ...]

    def packed(self) -> pa.RecordBatch:
        schema = pa.schema([(LANE_COLUMN, pa.binary())])
        return pa.RecordBatch.from_arrays([pa.array([pickle.dumps(self)], pa.binary())], schema=schema)


@dataclass
class Made:
    """The vectors of each batch, packed, and the number of the one that failed."""

    vectors: dict[int, bytes] = field(default_factory=dict)
    failed: tuple[int, OmniError] | None = None


def embed_lanes(batches: Iterator[pa.RecordBatch], asked: Round) -> Iterator[pa.RecordBatch]:
    """One answer for each lane among the rows. For `DataFrame.mapInArrow`."""
    for batch in batches:
        for lane in batch.column(0).to_pylist():
            yield answered(partial(_embed_lane, pickle.loads(lane), asked))


def _embed_lane(lane: Lane, asked: Round) -> Made:
    made = Made()
    pace = asked.errand.pace.shared(lane.number, asked.lanes, asked.is_first)
    with closing(replace(asked.errand, pace=pace).client()) as client:
        for number, texts in lane.batches:
            try:
                vectors = client.embed(texts, asked.dimension, Purpose.DOCUMENT)
            except OmniError as error:
                error.__cause__ = None
                made.failed = (number, error)
                break
            made.vectors[number] = np.concatenate(vectors).astype("<f4").tobytes()
    return made


def unpacked_vectors(packed: bytes, dimension: int) -> list[Vector]:
    return list(np.frombuffer(packed, "<f4").astype(np.float32).reshape(-1, dimension))
