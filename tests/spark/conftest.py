"""Tables are made with Lance itself, so nothing above is needed."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

from omnigraph.pipeline.worker.fragments import FragmentTarget


@pytest.fixture
def new_table(tmp_path: Path):
    """Makes an empty table of a schema and gives the target that executors write for."""

    def make(table_key: str, schema: pa.Schema) -> FragmentTarget:
        uri = str(tmp_path / table_key.replace(":", "_"))
        dataset = lance.write_dataset(schema.empty_table(), uri, enable_stable_row_ids=True)
        return FragmentTarget(table_key, uri, dataset.version, schema)

    return make
