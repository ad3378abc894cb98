"""`omnigraph schema show`."""

from __future__ import annotations

from pathlib import Path

import pytest


def test_schema_show_prints_the_source_byte_for_byte(cli, graph):
    assert cli("schema", "show", "-s", "library").payload == Path("schema.pg").read_bytes()


@pytest.mark.parametrize("source", ["// ä €\nnode A { x: String }", "node A { x: String }\r\n"])
def test_any_accepted_source_comes_back_unchanged(cli, source):
    Path("own.pg").write_bytes(source.encode())
    assert cli("init", "own", "--schema", "own.pg").code == 0
    assert cli("schema", "show", "-s", "own").payload == source.encode()


def test_schema_show_json_gives_source_hashes_and_types(cli, graph):
    body = cli("schema", "show", "-s", "library", "--json").json
    accepted = graph.schema()
    assert body["schema_source"] == accepted.source
    assert (body["schema_shape_hash"], body["schema_ir_hash"]) == (accepted.shape_hash, accepted.ir_hash)
    assert body["types"][0] == {
        "table_key": "edge:Wrote",
        "kind": "edge",
        "name": "Wrote",
        "from": "Person",
        "to": "Book",
        "properties": [{"name": "year", "type": "I32?"}],
        "constraints": [],
    }
    assert body["types"][2]["constraints"] == ["@key(name)"]


def test_schema_files_that_disagree_are_a_conflict(cli, graph):
    Path("library/_schema.pg").write_text("node Other { name: String }")
    done = cli("schema", "show", "-s", "library")
    assert done.code == 3
    assert "_schema.pg no longer matches" in done.err
