"""Vectors for a file of records, asked for by executors side by side.

Holds at every return:
  1. The output, the summary and the errors are those of one process: the driver reads, decides, and writes in order.
  2. One vector is written for a text, however often a task was tried.
  3. All lanes together keep the one rate limit of the settings; there are never more lanes than were counted on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import pyarrow as pa
from pyspark.sql import SparkSession

from omnigraph.embeddings.embedder import Embedder, refuse_unfit
from omnigraph.embeddings.providers import BATCH_TEXTS
from omnigraph.embeddings.vectors import Vector
from omnigraph.pipeline.bulk.desk import cores_of
from omnigraph.pipeline.failures import spark_failures
from omnigraph.pipeline.progress import TellTasks, is_connect, watched
from omnigraph.pipeline.session import spark_session
from omnigraph.pipeline.worker.embed import Lane, Made, Round, embed_lanes, unpacked_vectors
from omnigraph.pipeline.worker.tasks import ANSWER_COLUMNS, unpacked
from omnigraph.settings import Settings

# Enough requests in a row that starting a round is little beside them, and few enough that a failure loses little.
_BATCHES_PER_LANE = 4
_LANES_MIN = 2
# What the driver takes in at the end of a round.
_VECTOR_BYTES_MAX = 64 << 20


def on_spark(
    session: SparkSession | None = None, tell_tasks: TellTasks | None = None
) -> Callable[[Settings, str | None], SparkEmbedder]:
    """For `embed_file(…, embeds=on_spark())`: executors make the requests.

    Without a session the active one is used, or one is started as the settings say when the first text needs it.
    """

    def embeds(settings: Settings, model: str | None) -> SparkEmbedder:
        return SparkEmbedder(settings, model, session, tell_tasks)

    return embeds


class SparkEmbedder:
    """Deals the batches of a round to lanes, one for each core; the vectors come back in the order of the texts."""

    def __init__(
        self, settings: Settings, model: str | None, session: SparkSession | None, tell_tasks: TellTasks | None
    ) -> None:
        self._settings = settings
        self._embedder = Embedder(settings, model)
        self._session = session
        self._tell_tasks = tell_tasks
        self._lanes = _LANES_MIN
        self._lanes_done = 0
        self._dimension = 1

    @property
    def provider(self) -> str:
        return self._embedder.provider

    @property
    def base_url(self) -> str:
        return self._embedder.base_url

    @property
    def model(self) -> str:
        return self._embedder.model

    @property
    def texts_at_once(self) -> int:
        batches_max = max(self._lanes, _VECTOR_BYTES_MAX // (4 * self._dimension * BATCH_TEXTS))
        return BATCH_TEXTS * min(self._lanes * _BATCHES_PER_LANE, batches_max)

    def document_batches(self, texts: Sequence[str], dimension: int) -> Iterator[list[Vector]]:
        refuse_unfit(texts, dimension)
        # A key that is missing is told before anybody waits for Spark.
        errand = self._embedder.errand()
        spark = self._spark()
        batches = [tuple(texts[start : start + BATCH_TEXTS]) for start in range(0, len(texts), BATCH_TEXTS)]
        count = min(self._lanes, len(batches))
        lanes = [Lane(lane, tuple(enumerate(batches))[lane::count]) for lane in range(count)]
        self._dimension = dimension
        made = self._made(spark, lanes, Round(errand, dimension, count, is_first=self._lanes_done == 0))
        self._lanes_done += count
        vectors = {number: packed for one in made for number, packed in one.vectors.items()}
        failed = dict(one.failed for one in made if one.failed is not None)
        for number in range(len(batches)):
            if number in failed:
                raise failed[number]
            yield unpacked_vectors(vectors[number], dimension)

    def close(self) -> None:
        self._embedder.close()

    def _spark(self) -> SparkSession:
        if self._session is None:
            self._session = spark_session(self._settings)
        # Executors of a cluster come and go; a server is asked once, for it takes a job to find out.
        if self._lanes_done == 0 or not is_connect(self._session):
            self._lanes = cores_of(self._session)
        return self._session

    def _made(self, spark: SparkSession, lanes: Sequence[Lane], asked: Round) -> list[Made]:
        # One row of one batch for each lane, so that each is a task. The texts are rows, not part of the function: a
        # large function would be laid on disk, and the key with it.
        table = pa.Table.from_batches([lane.packed() for lane in lanes])
        with watched(spark, self._told()), spark_failures("embedding"):
            rows = spark.createDataFrame(table)
            found = rows.mapInArrow(partial(embed_lanes, asked=asked), ANSWER_COLUMNS).collect()
        return [unpacked(row[0]) for row in found]

    def _told(self) -> TellTasks | None:
        tell, before = self._tell_tasks, self._lanes_done
        return None if tell is None else lambda done, total: tell(before + done, before + total)
