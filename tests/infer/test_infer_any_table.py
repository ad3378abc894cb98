"""Whatever a table holds, its draft compiles, its pipeline file is understood, and a key is a key."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from omnigraph.base.errors import BadRequest
from omnigraph.catalog.build import compile_source
from omnigraph.catalog.catalog import Catalog
from omnigraph.pipeline.infer.infer import Inferred, infer
from omnigraph.pipeline.job.definition import read_definition

pytestmark = pytest.mark.slow

NAMES = st.one_of(
    st.sampled_from(["id", "ID", "key", "code", "team_id", "src", "from", "node", "enum", "a b", "a_b", "2020", "_c0"]),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00\r\n"), min_size=1, max_size=8),
)
CELLS = st.one_of(
    st.just(""),
    st.integers(-5, 5).map(str),
    st.integers(-(2**65), 2**65).map(str),
    st.floats(allow_nan=True).map(repr),
    st.sampled_from(
        ["true", "False", "2024-01-01", "2024-02-30", "2024-01-01T00:00:00Z", "007", " 5", "1e5", '"', "\\"]
    ),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=6),
)


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], list[list[str]]]:
    names = draw(st.lists(NAMES, min_size=1, max_size=5, unique_by=str.lower))
    rows = draw(st.lists(st.lists(CELLS, min_size=len(names), max_size=len(names)), min_size=1, max_size=12))
    return names, rows


def written(names: list[str], rows: list[list[str]]) -> str:
    text = io.StringIO(newline="")
    csv.writer(text, quoting=csv.QUOTE_ALL).writerows([names, *rows])
    return text.getvalue()


def checked(done: Inferred) -> Catalog:
    """Every type and property that the pipeline maps is one of the schema, and every required one is mapped."""
    catalog = compile_source(Path(done.schema_file).read_text(encoding="utf-8"))
    definition = read_definition(done.pipeline_file)
    sources = {source.name for source in definition.sources}
    for mapping in definition.mappings:
        found = catalog.find_node(mapping.type) if mapping.kind == "node" else catalog.find_edge(mapping.type)
        assert found is not None
        assert mapping.origin.text in sources
        mapped = {name for name, _ in mapping.columns}
        assert mapped <= {known.name for known in found.properties}
        assert {known.name for known in found.properties if not known.type.nullable} <= mapped
        if mapping.kind == "edge":
            assert len(mapping.src) == len(mapping.dst) == 1
    return catalog


def column_of(expression: str, names: list[str]) -> str:
    """The longest, for a name may hold another one in backticks."""
    quoted = {name: "`" + name.replace("`", "``") + "`" for name in names}
    return max((n for n in names if n == expression or quoted[n] in expression), key=len)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(first=tables(), second=tables())
def test_the_draft_of_any_two_tables_is_a_schema_and_a_pipeline(first, second):
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / "people.csv", Path(folder) / "teams.csv"]
        for path, made in zip(paths, (first, second), strict=True):
            path.write_text(written(*made), encoding="utf-8", newline="")
        try:
            done = infer([str(path) for path in paths], out=folder)
        except BadRequest as error:
            assert "first row" in error.describe() or "no header" in error.describe() or "is empty" in error.describe()
            return
        catalog = checked(done)
        for (names, rows), source in zip((first, second), done.draft.sources, strict=True):
            node = next((n for n in done.draft.nodes if n.source == source.name), None)
            key = next((p for p in node.properties if p.is_key), None) if node else None
            if key is not None:
                place = names.index(column_of(key.expression, names))
                cells = [row[place] for row in rows]
                assert len(set(cells)) == len(cells)
                assert "" not in cells
        assert len(catalog.nodes) + len(done.draft.edges) >= 2


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
    | st.just("2024-01-01"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
    max_leaves=4,
)
RECORDS = st.lists(st.dictionaries(st.sampled_from(["id", "x", "y z", "名", "to"]), VALUES), min_size=1, max_size=8)


@settings(max_examples=100, deadline=None)
@given(records=RECORDS)
def test_the_draft_of_any_records_is_a_schema_and_a_pipeline(records):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "things.jsonl"
        path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
        checked(infer([str(path)], out=folder))


@pytest.mark.parametrize("rows", [1, 3])
def test_a_parquet_table_of_every_type_is_a_schema_and_a_pipeline(folder, rows):
    import pyarrow.parquet as pq

    types = [
        pa.int8(),
        pa.uint64(),
        pa.float32(),
        pa.bool_(),
        pa.date32(),
        pa.timestamp("us"),
        pa.binary(),
        pa.string(),
    ]
    types += [pa.list_(pa.int32()), pa.struct([("a", pa.int32())]), pa.decimal128(38, 3), pa.null(), pa.duration("us")]
    names = [f"c{k}" for k in range(len(types))]
    arrays = [pa.array([None] * rows, type_) for type_ in types]
    pq.write_table(pa.table(arrays, names=names), "t.parquet")
    done = infer(["t.parquet"], out="draft")
    checked(done)
    assert "left out: 'c12', no property type holds duration[us]" in done.schema
