"""Real files: what is read, what is refused and with which words, and what is never overwritten."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnigraph.base.errors import BadRequest, NotFound, OmniError
from omnigraph.catalog.build import compile_source
from omnigraph.pipeline.infer.infer import infer
from omnigraph.pipeline.job.definition import read_definition


def refused(*files: str, **options: object) -> OmniError:
    with pytest.raises((BadRequest, NotFound)) as caught:
        infer(files, out="draft", **options)
    assert not Path("draft").exists()
    assert caught.value.hint
    return caught.value


BAD = {
    "empty.csv": (b"", "is empty"),
    "blank.csv": (b"\n\n", "is empty"),
    "head.csv": (b"a,b\n", "has no rows"),
    "values.csv": (b"1,2\n3,4\n", "holds values, not names"),
    "nameless.csv": (b",,\n1,2,3\n", "has no header"),
    "twice.csv": (b"a,b,a\n1,2,3\n", "two columns named 'a'"),
    "case.csv": (b"a,A\n1,2\n", "differ only in case"),
    "ragged.csv": (b"a,b\n1,2\n3\n", "has 1 cells in row 3, but 2 columns"),
    "wide.csv": (b"a,b\n1,2,3\n", "has 3 cells in row 2"),
    "latin.csv": ("name\nJosé\n".encode("latin-1"), "is not UTF-8"),
    "late.csv": (b"a,b\n" + b"x,1\n" * 600_000 + b"\xff,2\n", "is not UTF-8"),
    "wide16.csv": ("a,b\n1,2\n".encode("utf-16"), "is not UTF-8"),
    "broken.parquet": (b"PAR1nope", "no whole Parquet file"),
    "array.json": (b"[\n{}\n]\n", "is not JSON"),
    "line.jsonl": (b'{"a":1}\n{"a":\n', "line.jsonl:2: is not JSON"),
    "list.jsonl": (b"[1]\n", "is no JSON object"),
    "repeated.jsonl": (b'{"a":1,"a":2}\n', "member 'a' is given twice"),
    "cases.jsonl": (b'{"a":1}\n{"A":1}\n', "differ only in case"),
    "nothing.jsonl": (b"\n", "is empty"),
    "notes.txt": (b"hello", "of no known format"),
    "lines[1].csv": (b'a\n"x\ny"\n', "for a pattern"),
    "_hidden.csv": (b"a\n1\n", "takes '_hidden.csv' for hidden"),
    "cut.csv.gz": (gzip.compress(b"a,b\n" + b"1,2\n" * 9_999)[:-20], "cannot be read"),
    "packed.csv.zst": (b"(", "does not read"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_file_that_cannot_be_used_is_refused_in_plain_words(folder, name):
    data, words = BAD[name]
    Path(name).write_bytes(data)
    assert words in refused(name).describe()


def test_a_missing_file_is_named(folder):
    assert refused("nowhere.csv").describe() == "no such file or folder: 'nowhere.csv'"


def test_a_file_given_twice_is_refused(folder):
    Path("a.csv").write_text("x\n1\n")
    assert "given twice" in refused("a.csv", "./a.csv").describe()


def test_nothing_that_exists_is_overwritten(folder):
    Path("a.csv").write_text("x\n1\n")
    Path("pipeline.yaml").write_text("mine")
    with pytest.raises(BadRequest, match=r"pipeline\.yaml' exists and is never overwritten"):
        infer(["a.csv"])
    assert Path("pipeline.yaml").read_text() == "mine"
    assert not Path("schema.pg").exists()


def test_a_folder_is_one_table_whose_path_is_a_glob(folder):
    Path("people").mkdir()
    Path("people/1.csv").write_text("id,age\n1,5\n")
    Path("people/2.csv").write_text("id,age\n2,3000000000\n")
    Path("people/3.csv.gz").write_bytes(gzip.compress(b"id,age\n3,\n"))
    Path("people/_SUCCESS").write_text("")
    Path("people/README.txt").write_text("not a table")
    done = infer(["people/"], out="draft")
    assert done.draft.sources[0].paths == ("../people/*.csv", "../people/*.csv.gz")
    assert [(p.name, p.type) for p in done.draft.nodes[0].properties] == [("people_id", "I32"), ("age", "I64?")]


@pytest.mark.parametrize(
    ("second", "words"),
    [("id,years\n2,3\n", "differ in 'years'"), ("age,id\n2,3\n", "have another order")],
)
def test_files_of_a_folder_with_other_columns_are_refused(folder, second, words):
    Path("people").mkdir()
    Path("people/1.csv").write_text("id,age\n1,5\n")
    Path("people/2.csv").write_text(second)
    assert words in refused("people").describe()


def test_a_folder_of_several_formats_is_refused(folder):
    Path("data").mkdir()
    Path("data/a.csv").write_text("id\n1\n")
    Path("data/b.jsonl").write_text('{"id":1}\n')
    assert "several formats: csv, json" in refused("data").describe()


def test_times_that_spark_cannot_read_are_told_by_column(folder):
    pq.write_table(pa.table({"at": pa.array([1], pa.timestamp("ns"))}), "t.parquet")
    assert "column 'at' of 't.parquet' holds times in nanoseconds" in refused("t.parquet").describe()


def test_other_separators_and_open_line_ends_are_written_as_options(inferred):
    done = inferred(a_csv='x;y\n"1\n2";3\n', b_csv="x\ty\n1\t2\n")
    assert dict(done.draft.sources[0].options) == {"header": "true", "escape": '"', "sep": ";", "multiLine": "true"}
    assert dict(done.draft.sources[1].options)["sep"] == "\t"


def test_a_key_must_be_unique_beyond_the_first_batch(folder):
    rows = 700_000
    numbers = "\n".join(f"{k:08x},{k % (rows - 1)}" for k in range(rows))
    Path("big.csv").write_text("word,id\n" + numbers + "\n")
    node = infer(["big.csv"], out="draft").draft.nodes[0]
    assert [p.name for p in node.properties if p.is_key] == ["word"]


def test_a_sample_reads_no_further_and_says_so(inferred):
    done = inferred(sample=2, a_csv="x\n1\n2\nthree\n")
    assert done.rows == 2
    assert done.draft.nodes[0].properties[0].type == "I32"
    assert "Only the first 2 rows" in done.schema


def test_a_value_that_is_no_key_of_the_other_file_makes_no_edge(inferred):
    people = "".join(f"{k},{'core' if k % 2 else 'web'}\n" for k in range(500))
    files = {"teams_csv": "code\ncore\nweb\n"}
    assert len(inferred(people_csv=f"id,team\n{people}", **files).draft.edges) == 1
    edges = inferred(people_csv=f"id,team\n{people}500,gone\n", out="other", **files).draft.edges
    assert edges == ()


def test_a_value_that_no_sample_shows_still_makes_no_edge(inferred):
    teams = "code\n" + "".join(f"t{k}\n" for k in range(300))
    people = "id,team\n" + "".join(f"{k},t{k % 300}\n" for k in range(900))
    assert len(inferred(people_csv=people, teams_csv=teams).draft.edges) == 1
    assert not inferred(people_csv=f"{people}900,gone\n", teams_csv=teams, out="other").draft.edges


def test_records_of_our_own_form_need_no_mapping(inferred):
    done = inferred(
        all_jsonl='{"type":"Person","data":{"name":"ana","age":31}}\n{"type":"Person","data":{"name":"bo"}}\n'
        '{"type":"Team","data":{"size":2,"code":"core"}}\n'
        '{"edge":"MemberOf","from":"ana","to":"core","data":{"since":"2024-01-01"}}\n'
    )
    catalog = compile_source(done.schema)
    assert [[k.name for k in node.key_properties] for node in catalog.nodes] == [["name"], ["code"]]
    edge = catalog.edges[0]
    assert (edge.name, edge.src_type, edge.dst_type, str(edge.properties[0].type)) == (
        "MemberOf",
        "Person",
        "Team",
        "Date",
    )
    definition = read_definition(done.pipeline_file)
    assert [(s.format, s.paths) for s in definition.sources] == [("ndjson", ("../all.jsonl",))]
    assert not definition.mappings


def test_records_that_only_look_like_our_form_are_plain_rows(inferred):
    done = inferred(events_jsonl='{"type":"click","data":{"x":1}}\n{"type":"scroll","data":{"x":2}}\n')
    node = done.draft.nodes[0]
    assert (node.name, [p.name for p in node.properties]) == ("Events", ["type", "data"])


def test_explicit_ids_and_small_edge_names_of_our_own_form_are_taken_as_they_are(inferred):
    done = inferred(
        all_jsonl='{"type":"Note","data":{"id":"n1","text":"same"}}\n{"type":"Note","data":{"id":"n2","text":"same"}}\n'
        '{"edge":"follows","from":"n1","to":"n2"}\n'
    )
    catalog = compile_source(done.schema)
    assert not catalog.nodes[0].key_properties
    assert [(e.name, e.src_type, e.dst_type) for e in catalog.edges] == [("Follows", "Note", "Note")]
    assert "every 'from' is the id of a Note" in done.schema


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ('{"edge":"Knows","from":"a","to":"b"}', "no node type is known for 'from' of edge Knows"),
        ('{"type":"A","data":{"x y":1}}', "no schema can be made of these files"),
        ('{"type":"A","data":{"x":1}}\n{"edge":"E","from":1,"to":2}', "no node type is known"),
    ],
)
def test_records_of_our_own_form_that_fit_no_schema_are_refused(folder, lines, words):
    Path("a.jsonl").write_text(lines + "\n")
    assert words in refused("a.jsonl").describe()


def test_records_that_mix_both_forms_are_refused(folder):
    Path("a.jsonl").write_text('{"type":"A","data":{"x":1}}\n{"x":1}\n')
    assert "mixes records" in refused("a.jsonl").describe()


def test_an_object_in_our_own_form_is_refused_because_no_load_takes_it(folder):
    Path("a.jsonl").write_text('{"type":"A","data":{"x":{"y":1}}}\n')
    assert "member 'x' of A holds objects" in refused("a.jsonl").describe()
