"""One Spark session for the whole run; tables are made with Lance itself, so nothing above is needed."""

from __future__ import annotations

import os
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from omnigraph.pipeline.session import SparkSettings, session
from omnigraph.pipeline.worker.fragments import FragmentTarget


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    # Two attempts for a task, so that a retry can be seen. No stop at the end: tests of other directories share
    # the session, and it ends with the process.
    return session(SparkSettings(master="local[2,2]", search_path=os.environ["PATH"], shuffle_partitions=2))


@pytest.fixture
def new_table(tmp_path: Path):
    """Makes an empty table of a schema and gives the target that executors write for."""

    def make(table_key: str, schema: pa.Schema) -> FragmentTarget:
        uri = str(tmp_path / table_key.replace(":", "_"))
        dataset = lance.write_dataset(schema.empty_table(), uri, enable_stable_row_ids=True)
        return FragmentTarget(table_key, uri, dataset.version, schema)

    return make
