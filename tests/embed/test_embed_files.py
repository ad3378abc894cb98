"""Files: which rows get vectors, what they are embedded as, and that all else stays as it was."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import numpy as np
import pytest
from file_scene import SPEC, datas, doc, lines_of, many, write
from provider_scene import expected

import omnigraph.embeddings
from omnigraph.base.errors import BadRequest, NotFound
from omnigraph.embeddings import EmbedSpec, embed_file, embed_seed
from omnigraph.settings import Settings

MOCKED = Settings.resolve(embeddings_mock=True)


def test_a_file_gets_its_missing_vectors_and_a_summary(provider, settings):
    write(doc("one"), doc("two", vec=None), doc("three", vec=[]), doc("four", vec=[1, 0, 0, 0]), doc("five", vec=""))
    done = omnigraph.embeddings.embed_file("in.jsonl", "out.jsonl", SPEC, settings=settings())
    assert done.to_json() == {
        "input": "in.jsonl",
        "output": "out.jsonl",
        "records": 5,
        "selected_records": 4,
        "embedded_records": 4,
        "cleaned_records": 0,
        "mode": "fill_missing",
        "dimension": 4,
        "model": "m-1",
    }
    assert provider.texts == [[f"type: Doc\ntitle: {title}" for title in ("one", "two", "three", "five")]]
    found = datas()
    assert found[3]["vec"] == [1, 0, 0, 0]
    vector = np.array(found[0]["vec"]).astype(np.float32)
    assert vector.tobytes() == expected("type: Doc\ntitle: one", 4).tobytes()


def test_documents_are_embedded_as_documents(provider, settings):
    write(doc("one"))
    embed_file("in.jsonl", "out.jsonl", SPEC, settings=settings(embeddings_provider="gemini", gemini_api_key="k"))
    assert provider.asked[0].body["taskType"] == "RETRIEVAL_DOCUMENT"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_lines_that_are_not_concerned_pass_byte_for_byte(end):
    other = [
        '\ufeff{"type":"Other","data":{"title":"x"}}',
        '{"edge":"Cites" , "from":"a","to":"b", "data":{"vec":null}}',
        "",
        "   ",
        doc("has one").replace(":", " : ").replace('"has one"', '"has one", "vec": [1.0e0, 2, 3, 4]'),
        '{"n": 1.50, "big": 123456789012345678901234567890}',
        '{"type":7,"data":3}',
    ]
    given = end.join([*other, doc("no vector", n=1), "{}"]).encode()
    Path("in.jsonl").write_bytes(given)
    done = embed_file("in.jsonl", "out.jsonl", SPEC, settings=MOCKED)
    assert (done.records, done.embedded_records) == (7, 1)
    before, after = given.splitlines(keepends=True), lines_of()
    changed = [k for k, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]
    assert changed == [7]
    assert after[7].startswith(before[7].rstrip(b"\r\n")[:-2] + b',"vec":[')
    assert after[7].endswith(b"]}}" + end.encode())


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({"title": "A b", "body": "C"}, "title: A b\nbody: C"),
        ({"body": "C", "title": "A"}, "title: A\nbody: C"),
        ({"title": "  ", "body": "C"}, "body: C"),
        ({"title": None, "body": ["x", "y", " ", "z"]}, "body: x, y, z"),
        ({"title": 3, "body": [True, 1.5]}, "title: 3\nbody: true, 1.5"),
        ({"title": "two\nlines", "other": "no"}, "title: two\nlines"),
    ],
)
def test_a_row_is_embedded_as_its_type_and_its_fields_that_say_something(provider, settings, data, text):
    write(json.dumps({"type": "Doc", "data": data}))
    embed_file("in.jsonl", "out.jsonl", SPEC, settings=settings())
    assert provider.texts == [[f"type: Doc\n{text}"]]


def test_texts_go_64_to_a_request_whatever_lies_between_them(provider, settings):
    rows = [line for row in many(130) for line in (row, '{"edge":"E","from":"a","to":"b"}')]
    write(*rows)
    done = embed_file("in.jsonl", "out.jsonl", SPEC, settings=settings())
    assert [len(texts) for texts in provider.texts] == [64, 64, 2]
    assert (done.records, done.embedded_records) == (260, 130)
    for k, data in enumerate(datas_of_docs()):
        wanted = expected(f"type: Doc\ntitle: title {k}", 4)
        assert np.array(data["vec"]).astype(np.float32).tobytes() == wanted.tobytes()


def datas_of_docs() -> list[dict[str, object]]:
    return [json.loads(line)["data"] for line in lines_of() if b'"Doc"' in line]


VECTOR = [1, 0, 0, 0]
ROWS = (
    doc("one", slug="a", n=1, vec=VECTOR),
    doc("two", slug="b", n=2, vec=VECTOR),
    doc("three", slug="c", n=1, tags=["x", "y"]),
    json.dumps({"type": "Tag", "data": {"name": "t", "slug": "a", "tag_vec": VECTOR}}),
)


def changed_rows() -> list[int]:
    before = "".join(f"{row}\n" for row in ROWS).encode().splitlines(keepends=True)
    return [k for k, (a, b) in enumerate(zip(before, lines_of(), strict=True)) if a != b]


@pytest.mark.parametrize(
    ("options", "mode", "changed"),
    [
        ({}, "fill_missing", [2]),
        ({"reembed_all": True}, "reembed_all", [0, 1, 2, 3]),
        ({"reembed_all": True, "types": ["Doc"]}, "reembed_all", [0, 1, 2]),
        ({"types": ["Tag"]}, "fill_missing", []),
        ({"select": ["slug=a"]}, "select", [0, 3]),
        ({"select": ["Doc:slug=a"]}, "select", [0]),
        ({"select": ["slug=a"], "types": ["Tag"]}, "select", [3]),
        ({"select": ["Doc:slug=a", "Doc:slug=b"]}, "select", [0, 1]),
        ({"select": ["n=1"]}, "select", [0, 2]),
        ({"select": ["tags=y"]}, "select", [2]),
        ({"select": ["slug=A"]}, "select", []),
        ({"clean": True}, "clean", [0, 1, 3]),
        ({"clean": True, "types": ["Doc"]}, "clean", [0, 1]),
        ({"clean": True, "select": ["Doc:slug=b"]}, "clean", [1]),
    ],
)
def test_each_mode_changes_its_own_rows(options, mode, changed):
    write(*ROWS)
    done = embed_file("in.jsonl", "out.jsonl", SPEC, settings=MOCKED, **options)
    assert changed_rows() == changed
    assert (done.mode, done.records, done.selected_records) == (mode, 4, len(changed))
    assert (done.embedded_records, done.cleaned_records) == (
        (0, len(changed)) if mode == "clean" else (len(changed), 0)
    )
    if mode == "clean":
        assert not any({"vec", "tag_vec"} & datas()[k].keys() for k in changed)


def test_a_value_of_a_selector_may_hold_colons_and_equals_signs():
    write(doc("one", url="http://h/?a=b"), doc("two", url="x"))
    assert (
        embed_file("in.jsonl", "out.jsonl", SPEC, select=["url=http://h/?a=b"], settings=MOCKED).embedded_records == 1
    )


@pytest.mark.parametrize("text", ["slug", "=x", "Doc:=x", ":slug=x", ""])
def test_a_selector_that_is_none_is_refused(text):
    write(doc("one"))
    with pytest.raises(BadRequest, match=r"is not \[Type:\]field=value"):
        embed_file("in.jsonl", "out.jsonl", SPEC, select=[text], settings=MOCKED)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"reembed_all": True, "clean": True}, "reembed_all and clean contradict each other"),
        ({"reembed_all": True, "select": ["a=b"]}, "reembed_all and select contradict each other"),
        ({"types": ["Dok"]}, "type 'Dok' is not in the spec"),
        ({"select": ["Dok:a=b"]}, "type 'Dok' is not in the spec"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, told):
    write(doc("one"))
    with pytest.raises(BadRequest, match=told):
        embed_file("in.jsonl", "out.jsonl", SPEC, settings=MOCKED, **options)
    assert os.listdir() == ["in.jsonl"]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{oops", "the line is not JSON"),
        ('{"type":"Doc","data":{"title":"a"}} {}', "the line is not JSON"),
        ("[1]", "the line is no JSON object"),
        ('{"type":"Doc"}', "the line has no object 'data'"),
        ('{"type":"Doc","data":[]}', "the line has no object 'data'"),
        (doc("", body=[]), "the line has no text to embed: title, body are empty"),
        (doc({"x": 1}), "the line has a nested value in 'title', which has no text"),
        ('{"type":"Doc","data":{"title":"a","title":"b"}}', "the line has member 'title' twice"),
        ('{"type":"Doc","data":{"title":"a"},"type":"Doc"}', "the line has member 'type' twice"),
    ],
)
def test_a_line_that_cannot_be_embedded_is_told_with_its_number_and_leaves_nothing(line, told):
    write(doc("one"), "", line)
    with pytest.raises(BadRequest) as caught:
        embed_file("in.jsonl", "out.jsonl", SPEC, settings=MOCKED)
    assert str(caught.value).startswith(f"in.jsonl:3: {told}")
    assert set(os.listdir()) <= {"in.jsonl", "out.jsonl.kept"}


def test_a_row_without_text_is_no_matter_where_its_vector_is_there():
    write(doc("", vec=VECTOR))
    assert embed_file("in.jsonl", "out.jsonl", SPEC, settings=MOCKED).embedded_records == 0
    with pytest.raises(BadRequest, match=r"in\.jsonl:1: the line has no text"):
        embed_file("in.jsonl", "out.jsonl", SPEC, reembed_all=True, settings=MOCKED)


def test_a_line_that_is_too_long_is_told_and_never_held_whole():
    write(doc("one"), doc("x" * 300))
    limited = Settings.resolve(embeddings_mock=True, load_max_line_bytes=100)
    with pytest.raises(BadRequest, match=r"in\.jsonl:2: the line is longer than 100 bytes"):
        embed_file("in.jsonl", "out.jsonl", SPEC, settings=limited)
    exact = Settings.resolve(embeddings_mock=True, load_max_line_bytes=len(doc("x" * 300)))
    assert embed_file("in.jsonl", "out.jsonl", SPEC, settings=exact).embedded_records == 2


def test_a_file_may_be_embedded_in_place():
    write(doc("one"), doc("two"))
    assert embed_file("in.jsonl", "in.jsonl", SPEC, settings=MOCKED).embedded_records == 2
    assert embed_file("in.jsonl", "in.jsonl", SPEC, settings=MOCKED).embedded_records == 0
    assert os.listdir() == ["in.jsonl"]


def test_an_output_that_is_a_link_stays_one():
    write(doc("one"))
    Path("real.jsonl").touch()
    os.symlink("real.jsonl", "out.jsonl")
    embed_file("in.jsonl", "out.jsonl", SPEC, settings=MOCKED)
    assert os.path.islink("out.jsonl")
    assert "vec" in datas("real.jsonl")[0]


def test_compressed_files_are_read_and_written_by_their_names():
    Path("in.jsonl.gz").write_bytes(gzip.compress(f"{doc('one')}\n".encode()))
    embed_file("in.jsonl.gz", "mid.jsonl.zst", SPEC, settings=MOCKED)
    embed_file("mid.jsonl.zst", "out.jsonl", SPEC, settings=MOCKED)
    write(doc("one"))
    embed_file("in.jsonl", "direct.jsonl", SPEC, settings=MOCKED)
    assert lines_of("out.jsonl") == lines_of("direct.jsonl")
    assert sorted(os.listdir()) == ["direct.jsonl", "in.jsonl", "in.jsonl.gz", "mid.jsonl.zst", "out.jsonl"]


def test_a_damaged_compressed_file_is_told():
    Path("in.jsonl.gz").write_bytes(gzip.compress("\n".join(many(500)).encode())[:-20])
    with pytest.raises(BadRequest, match=r"input 'in\.jsonl\.gz' cannot be read after line"):
        embed_file("in.jsonl.gz", "out.jsonl", SPEC, settings=MOCKED)
    assert "out.jsonl" not in os.listdir()


def test_an_empty_file_becomes_an_empty_file():
    Path("in.jsonl").touch()
    assert embed_file("in.jsonl", "out.jsonl", SPEC, settings=MOCKED).records == 0
    assert Path("out.jsonl").read_bytes() == b""


def test_inputs_and_outputs_that_cannot_be_are_told():
    with pytest.raises(NotFound, match=r"input 'nowhere\.jsonl' not found"):
        embed_file("nowhere.jsonl", "out.jsonl", SPEC, settings=MOCKED)
    write(doc("one"))
    with pytest.raises(BadRequest, match=r"input '\.' cannot be read"):
        embed_file(".", "out.jsonl", SPEC, settings=MOCKED)
    for output in (".", "", "a\0b"):
        with pytest.raises(BadRequest, match="is no name for a file"):
            embed_file("in.jsonl", output, SPEC, settings=MOCKED)
    for clean in (True, False):
        with pytest.raises(BadRequest, match=r"output 'no/out\.jsonl' cannot be written: No such file"):
            embed_file("in.jsonl", "no/out.jsonl", SPEC, clean=clean, settings=MOCKED)
    assert os.listdir() == ["in.jsonl"]


def test_the_model_of_the_spec_wins(provider, settings):
    write(doc("one"))
    done = embed_file("in.jsonl", "out.jsonl", {**SPEC, "model": "of-spec"}, settings=settings())
    assert (done.model, provider.asked[0].body["model"]) == ("of-spec", "of-spec")


def test_what_is_embedded_loads_and_is_found_as_it_was_written(tmp_path):
    import omnigraph as og

    schema = 'node Doc {\n  title: String @key\n  vec: Vector(4)? @embed("title")\n}\n'
    write(doc("one"), doc("two"))
    embed_file("in.jsonl", "out.jsonl", SPEC, settings=MOCKED)
    graph = og.Graph.init(str(tmp_path / "g"), schema)
    assert graph.load(["out.jsonl"], mode="append").total_entities == 2
    exported = [json.loads(line)["data"] for line in b"".join(graph.export()).splitlines()]
    assert sorted((d["title"], d["vec"]) for d in exported) == sorted((d["title"], d["vec"]) for d in datas())


def test_a_seed_manifest_names_input_output_and_spec_beside_itself():
    Path("seeds").mkdir()
    write(doc("one"), name="seeds/raw.jsonl")
    manifest = {
        "graph": "library",
        "sources": {"raw_seed": "raw.jsonl", "other": 1},
        "artifacts": {"embedded_seed": "done.jsonl"},
        "embeddings": SPEC,
    }
    Path("seeds/seed.yaml").write_text(json.dumps(manifest))
    done = embed_seed("seeds/seed.yaml", settings=MOCKED)
    assert (done.input, done.output, done.embedded_records) == ("seeds/raw.jsonl", "seeds/done.jsonl", 1)
    assert len(datas("seeds/done.jsonl")[0]["vec"]) == 4


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[]", "expects a mapping"),
        ("dimension: x\ntypes: {}", "dimension expects a whole number"),
        ("dimension: 0\ntypes: {}", "dimension expects a whole number"),
        ("dimension: true\ntypes: {}", "dimension expects a whole number"),
        ("dimension: 4", "types expects a mapping of at least one type"),
        ("dimension: 4\nmodel: 3\ntypes: {D: {target: v, fields: [a]}}", "model expects a text"),
        ("dimension: 4\ntypes: {D: {target: v}}", "D: fields expects a list"),
        ("dimension: 4\ntypes: {D: {target: v, fields: []}}", "D: fields expects a list"),
        ("dimension: 4\ntypes: {D: {fields: [a]}}", "D: target expects the name"),
        ("dimension: 4\ntypes: {D: {target: a, fields: [a]}}", "target 'a' cannot be one of its own fields"),
        ("dimension: 4\ntypes: {on: {target: v, fields: [a]}}", "types expects names, not True"),
        ("dimension: 4\nsize: 3\ntypes: {D: {target: v, fields: [a]}}", "does not know 'size'"),
        ("dimension: 4\ntypes: {D: {target: v", r"spec\.yaml:2: "),
    ],
)
def test_a_spec_that_is_wrong_is_told_by_its_name(text, told):
    Path("spec.yaml").write_text(text)
    with pytest.raises(BadRequest, match=told) as caught:
        EmbedSpec.read("spec.yaml")
    assert str(caught.value).startswith("spec.yaml")


@pytest.mark.parametrize("missing", ["sources", "artifacts", "embeddings"])
def test_a_seed_manifest_that_is_not_complete_is_told(missing):
    whole = {"sources": {"raw_seed": "a"}, "artifacts": {"embedded_seed": "b"}, "embeddings": SPEC}
    Path("seed.yaml").write_text(json.dumps({k: v for k, v in whole.items() if k != missing}))
    with pytest.raises(BadRequest, match=missing):
        embed_seed("seed.yaml", settings=MOCKED)
    with pytest.raises(NotFound):
        embed_seed("other.yaml", settings=MOCKED)
