"""The harms: each does to a graph what a power cut, another tool or a careless hand would do."""

from __future__ import annotations

import lance
import orjson
import pyarrow as pa
import pytest
from damage_scene import (
    CITY,
    KNOWS,
    LIVES,
    PERSON,
    append,
    copy_of,
    data_file,
    foreign,
    index_files,
    insert,
    lose,
    pinned,
    ref_of,
    rows_like,
    torn_next,
)

import omnigraph as og
from omnigraph.base import failpoints
from omnigraph.manifest import layout
from omnigraph.manifest.rows import Changes, CommitIntent, Pin
from omnigraph.storage.apply import commit_staged
from omnigraph.storage.refs import delete_branch
from omnigraph.storage.stage import Stamp, stage_append


class Died(BaseException):
    """Ends a write where it stands."""


def _die() -> None:
    raise Died


def lost_data_file(graph: og.Graph) -> None:
    lose(graph, data_file(graph, PERSON))


def cut_data_file(graph: og.Graph) -> None:
    name = data_file(graph, PERSON)
    graph.context.objects.put(name, copy_of(graph, name)[:-7])


def lost_deletion_file(graph: og.Graph) -> None:
    graph.mutate('query gone() { delete Person where name = "later" }')
    graph.mutate('query gone() { delete Knows where from = "p03" }')
    names = [file.key for file in graph.context.objects.walk(f"{ref_of(graph, KNOWS).path}/_deletions")]
    lose(graph, names[0])


def lost_index_file(graph: og.Graph) -> None:
    lose(graph, index_files(graph, PERSON)[0])


def lost_index_folder(graph: og.Graph) -> None:
    for name in index_files(graph, PERSON, "bio_text_idx"):
        lose(graph, name)


def dropped_index(graph: og.Graph) -> None:
    """The definition is gone and a writer of ours has taken that for maintenance."""
    foreign(graph, PERSON).drop_index("id_btree_idx")
    graph.refresh()
    assert pinned(graph, PERSON).version == foreign(graph, PERSON).version


def swapped_index(graph: og.Graph) -> None:
    """Files of the right size with the content of another index."""
    src, dst = index_files(graph, KNOWS, "src_btree_idx"), index_files(graph, KNOWS, "dst_btree_idx")
    data = [copy_of(graph, name) for name in src]
    assert [len(d) for d in data] == [len(copy_of(graph, name)) for name in dst]
    for name, content in zip(dst, data, strict=True):
        graph.context.objects.put(name, content)


def torn_above(graph: og.Graph) -> None:
    torn_next(graph, PERSON)


def torn_pin(graph: og.Graph) -> None:
    table = pinned(graph, PERSON)
    graph.context.objects.put(table.ref.version_file(table.version), b"")


def lost_pin(graph: og.Graph) -> None:
    table = pinned(graph, PERSON)
    lose(graph, table.ref.version_file(table.version))


def torn_manifest_head(graph: og.Graph) -> None:
    state = graph.context.manifest.state()
    graph.context.objects.put(state.next_file, b"")


def torn_manifest(graph: og.Graph) -> None:
    """Every version of it: nothing says any more what the graph is."""
    for file in list(graph.context.objects.walk(f"{layout.MANIFEST}/_versions")):
        if file.key.endswith(".manifest"):
            graph.context.objects.put(file.key, b"")


def newer_stamp(graph: og.Graph) -> None:
    """What an omnigraph of the future leaves."""
    manifest = lance.dataset(graph.context.manifest.ref().uri, storage_options=graph.context.manifest.ref().options)
    manifest.update_schema_metadata({"omnigraph:internal_schema_version": "9"})


def lost_manifest_file(graph: og.Graph) -> None:
    lose(graph, next(file.key for file in graph.context.objects.walk(f"{layout.MANIFEST}/data")))


def foreign_append(graph: og.Graph) -> None:
    append(graph, PERSON, id=["alien"], name=["alien"])


def foreign_delete(graph: og.Graph) -> None:
    foreign(graph, PERSON).delete("id = 'later'")


def foreign_compaction(graph: og.Graph) -> None:
    insert(graph, "small")  # Lance joins only fragments that the same indexes cover
    foreign(graph, PERSON).optimize.compact_files()
    assert foreign(graph, PERSON).version > pinned(graph, PERSON).version


def foreign_compaction_of_a_fork(graph: og.Graph) -> None:
    """Deleted rows go for good, and Lance leaves the indexes that the fork inherited without files."""
    graph.branch_create("draft")
    graph.mutate("query gone() { delete Person where age < 8 }", branch="draft")
    foreign(graph, PERSON, "draft").optimize.compact_files()
    assert foreign(graph, PERSON, "draft").version > pinned(graph, PERSON, "draft").version


def unreadable_history(graph: og.Graph) -> None:
    """The newest version opens, one below it does not."""
    foreign_append(graph)
    append(graph, PERSON, id=["other"], name=["other"])
    table = pinned(graph, PERSON)
    graph.context.objects.put(table.ref.version_file(table.version + 1), b"")


def late_effect(graph: og.Graph) -> None:
    """A staged write of ours that lands although nobody publishes it."""
    table = pinned(graph, PERSON)
    rows = rows_like(graph, PERSON, id=["late"], name=["late"])
    assert commit_staged(stage_append(table, rows, Stamp("01J0000000000000000000LATE", PERSON, "0"))).error is None


def published(graph: og.Graph, key: str, version: int, rows: int) -> None:
    """What repair and every writer refuse to do: a pin that nobody checked."""
    entry = graph.snapshot().tables[key]
    pin = Pin(key, entry.location, entry.table_branch, version, rows)
    intent = CommitIntent("01J0000000000000000000FAKE", "01J0000000000000000000FAKE", "load")
    graph.context.publisher.publish(None, Changes((pin,)), {}, intent)


def forced_rows(graph: og.Graph, key: str, **columns: list[object]) -> None:
    append(graph, key, **columns)
    head = foreign(graph, key)
    published(graph, key, head.version, head.count_rows())


def wrong_count(graph: og.Graph) -> None:
    append(graph, PERSON, id=["alien"], name=["alien"])
    published(graph, PERSON, foreign(graph, PERSON).version, 5)


def repeated_id(graph: og.Graph) -> None:
    forced_rows(graph, PERSON, id=["p01"], name=["p01"])


def dangling_edge(graph: og.Graph) -> None:
    forced_rows(graph, KNOWS, id=["e1", "e2"], src=["p01", "nobody"], dst=["nobody", "p02"])


def out_of_range(graph: og.Graph) -> None:
    forced_rows(graph, PERSON, id=["old"], name=["old"], age=[500])


def not_unique(graph: og.Graph) -> None:
    forced_rows(graph, CITY, id=["Roma"], name=["Roma"], code=["ro"])


def too_many(graph: og.Graph) -> None:
    forced_rows(graph, LIVES, id=["x"], src=["p01"], dst=["Oslo"])


def foreign_key(graph: og.Graph) -> None:
    forced_rows(graph, PERSON, id=["one"], name=["another"])


def stray_fork(graph: og.Graph) -> None:
    graph.branch_create("gone")
    insert(graph, "there", "gone")
    delete_branch(graph.context.manifest.ref(), "gone")


def stray_folder(graph: og.Graph) -> None:
    ref = ref_of(graph, PERSON)
    uri = ref.uri.replace(ref.location, "nodes/0123456789abcdef")
    lance.write_dataset(pa.table({"id": ["x"]}), uri, storage_options=ref.options)


def pending_sidecar(graph: og.Graph) -> None:
    failpoints.arm("mutation.post_phase_b_pre_manifest_commit", _die)
    with pytest.raises(Died):
        insert(graph, "half")


def broken_sidecar(graph: og.Graph) -> None:
    graph.context.objects.put(f"{layout.RECOVERY_DIR}/01J00000000000000000000000.json", b"{")


def edited_schema(graph: og.Graph) -> None:
    source = copy_of(graph, layout.SCHEMA_SOURCE).decode().replace("bio: String?", "bio: I32?")
    graph.context.objects.put(layout.SCHEMA_SOURCE, source.encode())


def lost_schema(graph: og.Graph) -> None:
    lose(graph, layout.SCHEMA_IR)


def garbled_state(graph: og.Graph) -> None:
    graph.context.objects.put(layout.SCHEMA_STATE, b"\xff{")


def garbled_tag(graph: og.Graph) -> None:
    graph.tag_create("first")
    graph.context.objects.put(f"{layout.TAG_DIR}/first.json", b"no json")


def tag_of_nothing(graph: og.Graph) -> None:
    graph.tag_create("first")
    key = f"{layout.TAG_DIR}/first.json"
    told = orjson.loads(copy_of(graph, key)) | {"graph_commit_id": "01J00000000000000000000000"}
    graph.context.objects.put(key, orjson.dumps(told))


def dead_load(graph: og.Graph) -> None:
    told = {
        "operation_id": "01J00000000000000000000000",
        "branch": None,
        "host": "there",
        "pid": 1,
        "started_at": "2020-01-01T00:00:00.000000Z",
        "renewed_at": "2020-01-01T00:00:00.000000Z",
        "pins": [],
    }
    graph.context.objects.put(layout.heartbeat_key(told["operation_id"]), orjson.dumps(told))


def invented_commit(graph: og.Graph) -> None:
    graph.close()
    ref = graph.context.ref(layout.COMMITS, None)
    row = lance.dataset(ref.uri, storage_options=ref.options).to_table().slice(0, 1).to_pylist()[0]
    schema = lance.dataset(ref.uri, storage_options=ref.options).schema
    told = pa.Table.from_pylist([row | {"graph_commit_id": "01J00000000000000000000000"}], schema)
    lance.write_dataset(told, ref.uri, mode="append", storage_options=ref.options)
