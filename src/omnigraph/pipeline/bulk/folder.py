"""Where the files of one piece of work lie while executors and the driver are at it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from omnigraph.base.errors import InternalError
from omnigraph.commit.staging import StagingBeat
from omnigraph.pipeline.masters import is_local
from omnigraph.pipeline.progress import is_connect
from omnigraph.sets.scratch import WorkFolder
from omnigraph.settings import Settings
from omnigraph.storage.places import Root
from omnigraph.storage.row_files import RowFolder


@contextmanager
def work_folder(root: Root, settings: Settings, spark: SparkSession, beat: StagingBeat | None) -> Iterator[RowFolder]:
    """On this machine's disk if all who work on it run here, else beside the graph, which needs a sign of life."""
    if not runs_here(spark):
        if beat is None:
            raise InternalError("files were to lie beside the graph without a sign of life")
        yield RowFolder(f"{root.uri}/{beat.folder.rstrip('/')}", root.storage_options)
        return
    place = WorkFolder(settings.limits_spill_dir or tempfile.gettempdir())
    try:
        yield RowFolder(place.name)
    finally:
        place.cleanup()


def runs_here(spark: SparkSession) -> bool:
    # A Connect server may call itself local and yet be another machine.
    return not is_connect(spark) and is_local(str(spark.conf.get("spark.master", "") or ""))
