"""Compaction on Spark: executors rewrite fragments, the driver builds indexes and commits once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from omnigraph.pipeline.failures import spark_failures
from omnigraph.pipeline.progress import TellTasks, watched
from omnigraph.pipeline.session import spark_session
from omnigraph.pipeline.worker.optimize import rewrite_group
from omnigraph.pipeline.worker.tasks import ANSWER_COLUMNS, answer_groups, unpacked
from omnigraph.settings import Settings
from omnigraph.storage.compaction import RewriteTask


def rewrite_on_spark(
    tasks: Sequence[RewriteTask], settings: Settings, tell_tasks: TellTasks | None = None
) -> list[str]:
    """One answer for each task, in their order."""
    spark = spark_session(settings)
    groups = list(enumerate(tasks))
    with watched(spark, tell_tasks), spark_failures("compacting tables"):
        numbers = spark.range(0, len(groups), 1, len(groups))
        rows = numbers.mapInArrow(partial(answer_groups, groups=groups, do=rewrite_group), ANSWER_COLUMNS).collect()
    found: dict[int, str] = dict(unpacked(row[0]) for row in rows)
    return [found[number] for number in range(len(groups))]
