"""Sources on a real S3-compatible server: the same rows as local files, read by executors without a jar."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph as og
from omnigraph.base.errors import BadRequest, NotFound
from omnigraph.base.ids import new_ulid
from omnigraph.pipeline.inputs import FILE_COLUMN, ROW_COLUMN
from omnigraph.pipeline.job.definition import Definition, Source, Target
from omnigraph.pipeline.job.problems import Spot
from omnigraph.pipeline.job.run import run_job
from omnigraph.pipeline.job.s3_sources import find_objects, refused_option
from omnigraph.pipeline.job.sources import Sources
from s3_server import BUCKET, S3Server

pytestmark = [pytest.mark.spark, pytest.mark.slow]
SCHEMA = """node Person { name: String @key }
node Team { code: String @key }
edge MemberOf: Person -> Team
"""
HERE = Spot(1, "sources.s")
Upload = Callable[..., str]

CSV = '''id,name,when,n
1,ana,2024-02-29,1.5

2,"b, o",2024-02-30,x
3,"say ""hi""",,
# a remark
4,short
5,too,2024-01-01,1,extra
id,name,when,n
 6 , spaced ,2024-01-01T10:00:00, 7
,,,
7,ünïcode,2024-01-01,-
'''
JSON = """{"id": 1, "name": "ana", "deep": {"a": [1, 2]}}

{"id": 2.5, "extra": "x"}
[{"id": 3}, {"id": 4, "name": "array"}]
{"id": 5, "name": "bro
null
{"name": {"not": "a text"}}
"""


@pytest.fixture
def upload(s3_server: S3Server) -> Upload:
    """Puts files below a fresh prefix of the bucket, whose address it gives."""

    def put(files: dict[str, bytes]) -> str:
        prefix = new_ulid().lower()
        store = s3_server.access().open(BUCKET, prefix)
        for name, data in files.items():
            store.put(name, data, use_multipart=False)
        return f"s3://{BUCKET}/{prefix}"

    return put


def read(spark: Any, server: S3Server, format_: str, path: str, located: bool = False, **options: str) -> Any:
    sources = Sources(spark, Definition("p.yaml", Target(HERE)), server.access())
    given = Source("s", format_, (path,), options, HERE)
    return sources.located(given) if located else sources.frame(given)


def rows(frame: Any) -> list[str]:
    return sorted(str(row) for row in frame.collect())


@pytest.fixture
def own(spark: Any) -> Any:
    return spark.newSession()


@pytest.fixture
def small_splits(spark: Any) -> Any:
    session = spark.newSession()
    session.conf.set("spark.sql.files.maxPartitionBytes", "37")
    session.conf.set("spark.sql.files.openCostInBytes", "0")
    return session


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"header": "true"},
        {"header": "true", "inferSchema": "true", "comment": "#"},
        {"header": "true", "inferSchema": "true", "nullValue": "-", "ignoreLeadingWhiteSpace": "true", "quote": "'"},
        {"sep": ";", "comment": "#", "multiLine": "false"},
    ],
    ids=str,
)
def test_csv_on_s3_and_on_disk_give_the_same_columns_and_rows(folder, small_splits, s3_server, upload, options):
    files = {"a.csv": CSV.encode(), "b.csv": b"id,name,when,n\n9,zoe,,\n", "_hidden.csv": b"x", "empty.csv": b""}
    Path("in").mkdir()
    for name, data in files.items():
        Path("in", name).write_bytes(data)
    local = read(small_splits, s3_server, "csv", "in", **options)
    remote = read(small_splits, s3_server, "csv", f"{upload(files)}/", **options)
    assert remote.schema == local.schema
    assert rows(remote) == rows(local)


@pytest.mark.parametrize("options", [{}, {"primitivesAsString": "true"}, {"samplingRatio": "1.0"}], ids=str)
def test_json_on_s3_and_on_disk_give_the_same_columns_and_rows(folder, small_splits, s3_server, upload, options):
    Path("a.json").write_text(JSON)
    local = read(small_splits, s3_server, "json", "a.json", **options)
    remote = read(small_splits, s3_server, "json", f"{upload({'a.json': JSON.encode()})}/a.json", **options)
    assert remote.schema == local.schema
    assert rows(remote) == rows(local)


def test_rows_on_s3_have_the_numbers_they_have_on_disk(folder, small_splits, s3_server, upload):
    text = "name\n" + "".join(f"p{i:03}\n" + "\n" * (i % 3 == 0) for i in range(50))
    Path("a.csv").write_text(text)
    where = upload({"a.csv": text.encode()})
    local = read(small_splits, s3_server, "csv", "a.csv", located=True, header="true")
    remote = read(small_splits, s3_server, "csv", f"{where}/a.csv", located=True, header="true")
    found = sorted(tuple(row) for row in remote.select(ROW_COLUMN, "name").collect())
    assert found == sorted(tuple(row) for row in local.select(ROW_COLUMN, "name").collect())
    assert found == [(i + 2, f"p{i:03}") for i in range(50)]
    assert [row[0] for row in remote.select(FILE_COLUMN).distinct().collect()] == [f"{where}/a.csv"]


def test_lines_of_text_come_as_they_are(own, s3_server, upload):
    where = upload({"a.txt": b"one\r\n\r\ntwo", "b.txt.gz": gzip.compress(b"three\n")})
    found = read(own, s3_server, "text", where, located=True).select("value", ROW_COLUMN).collect()
    assert sorted(tuple(row) for row in found) == [("", 2), ("one", 1), ("three", 1), ("two", 3)]


TYPED = {
    "i8": pa.array([1, None, -3], pa.int8()),
    "u32": pa.array([4_000_000_000, 1, None], pa.uint32()),
    "u64": pa.array([2**64 - 1, 0, None], pa.uint64()),
    "f": pa.array([1.5, None, float("nan")], pa.float32()),
    "t": pa.array(["x", None, "ü"], pa.large_string()),
    "b": pa.array([b"\x00", b"", None], pa.binary()),
    "d": pa.array([0, 19782, None], pa.date32()),
    "at": pa.array([0, 1_700_000_000_123_456, None], pa.timestamp("us", tz="UTC")),
    "naive": pa.array([0, 1_700_000_000_123_456, None], pa.timestamp("us")),
    "n": pa.array(["1.10", None, "-2.25"]).cast(pa.decimal128(9, 2)),
    "l": pa.array([[1, 2], None, []], pa.list_(pa.int64())),
    "s": pa.array([{"a": 1}, None, {"a": None}], pa.struct([("a", pa.int32())])),
    "dict": pa.array(["p", "q", "p"]).dictionary_encode(),
}


def test_parquet_on_s3_gives_the_columns_rows_and_numbers_that_spark_reads_from_disk(folder, own, s3_server, upload):
    table = pa.table(TYPED)
    pq.write_table(pa.concat_tables([table] * 5).unify_dictionaries(), "a.parquet", row_group_size=4)
    remote_path = f"{upload({'a.parquet': Path('a.parquet').read_bytes()})}/*.parquet"
    local = read(own, s3_server, "parquet", "a.parquet", located=True)
    remote = read(own, s3_server, "parquet", remote_path, located=True)
    kept = [name for name in local.columns if name != FILE_COLUMN]
    types = {f.name: f.dataType for f in remote.schema}
    assert {f.name: f.dataType for f in local.select(kept).schema} == {name: types[name] for name in kept}
    assert rows(remote.select(kept)) == rows(local.select(kept))


def test_orc_on_s3_gives_the_columns_rows_and_numbers_that_spark_reads_from_disk(folder, own, s3_server, upload):
    made = own.sql(
        "select id, cast(id as string) t, timestamp'2024-02-29 10:00:00' + make_interval(0,0,0,0,0,0,id) at,"
        " date'2024-01-01' d, array(id) l, cast(id as decimal(9,2)) n, id % 2 = 0 odd from range(50)"
    )
    made.coalesce(1).write.orc(str(folder / "made"))
    files = {path.name: path.read_bytes() for path in Path("made").glob("*.orc")}
    local = read(own, s3_server, "orc", "made", located=True)
    remote = read(own, s3_server, "orc", upload(files), located=True)
    kept = [name for name in local.columns if name != FILE_COLUMN]
    assert rows(remote.select(kept)) == rows(local.select(kept))


@pytest.mark.parametrize(
    ("format_", "option", "told"),
    [
        ("csv", ("multiLine", "true"), "option 'multiLine' is not supported for csv on s3"),
        ("csv", ("encoding", "latin1"), "option 'encoding' is not supported for csv on s3"),
        ("csv", ("mode", "dropMalformed"), "option 'mode: dropMalformed' is not supported for csv on s3"),
        ("json", ("lineSep", "x"), "option 'lineSep' is not supported for json on s3"),
        ("text", ("wholetext", "true"), "option 'wholetext' is not supported for text on s3"),
        ("parquet", ("mergeSchema", "true"), "option 'mergeSchema' is not supported for parquet on s3"),
    ],
)
def test_an_option_that_cannot_be_honoured_is_refused_by_name(own, s3_server, format_, option, told):
    with pytest.raises(BadRequest, match=told):
        read(own, s3_server, format_, "s3://lake/x", **dict([option]))


def test_options_that_say_what_happens_anyway_may_be_given():
    said = {"multiLine": "false", "encoding": "UTF-8", "recursiveFileLookup": "false"}
    assert refused_option(Source("s", "csv", (), said, HERE)) is None


def test_paths_name_objects_folders_and_globs(s3_server, upload):
    where = upload({"a/1.csv": b"x", "a/2.csv": b"x", "a/deep/3.csv": b"x", "b/1.csv": b"x", "ab/1.csv": b"x"})

    def names(*paths: str) -> list[str]:
        found = find_objects([f"{where}/{path}" for path in paths], s3_server.access())
        return [each.uri.removeprefix(f"{where}/") for each in found]

    assert names("a/1.csv") == ["a/1.csv"]
    assert names("a") == names("a/") == names("a/*.csv") == ["a/1.csv", "a/2.csv"]
    assert names("{a,b}/1.csv", "a/[1-2].csv") == ["a/1.csv", "a/2.csv", "b/1.csv"]
    assert names("a?/") == ["ab/1.csv"]
    with pytest.raises(NotFound, match="names no object"):
        names("nowhere/*.csv")


def test_folders_by_value_are_refused_rather_than_read_without_their_column(s3_server, upload):
    where = upload({"t/year=2024/1.csv": b"x"})
    with pytest.raises(BadRequest, match="has folders by value"):
        find_objects([f"{where}/t"], s3_server.access())


def test_a_pipeline_on_s3_from_source_to_graph_is_one_commit(folder, job, spark, s3_server, upload):
    lines = "".join(f'{{"type":"Team","data":{{"code":"t{i}"}}}}\n' for i in range(300))
    where = upload({"people.csv": b"name,team\nana,t1\nbo,t299\n", "teams/1.jsonl": lines.encode()})
    graph = og.Graph.init(f"{where}/library", SCHEMA, settings=s3_server.settings())
    file = job(
        f"""
        sources:
          people: {{format: csv, path: {where}/people.csv, options: {{header: true}}}}
          teams: {{format: ndjson, path: {where}/teams/*.jsonl}}
        nodes: [{{type: Person, from: people, map: {{name: name}}}}]
        edges: [{{type: MemberOf, from: people, src: name, dst: team}}]
        """,
        head=f"version: 1\ntarget: {{graph: {where}/library, mode: append}}\n",
    )
    done = run_job(file, graph, spark=spark)
    assert {(c.type, c.rows) for c in done.counts} == {("Person", 2), ("Team", 300), ("MemberOf", 2)}
    assert graph.snapshot().tables["node:Team"].row_count == 300


def test_a_bad_line_of_ndjson_on_s3_is_told_with_its_object_and_line(folder, job, spark, s3_server, upload, graph):
    where = upload({"a.jsonl": b'{"type":"Team","data":{"code":"x"}}\n\n{"type":"Team","data":{"code":7}}\n'})
    reached = og.Graph.open("library", settings=s3_server.settings())
    with pytest.raises(og.InvalidData) as raised:
        run_job(job(f"sources: {{a: {{format: ndjson, path: {where}/a.jsonl}}}}\n"), reached, spark=spark)
    (found,) = raised.value.violations
    assert (found["file"], found["line"], found["reason"]) == (f"{where}/a.jsonl", 3, "wrong_type")
