"""Ways to name a place, and what the store's failures are called."""

import errno
import os
import pickle
from pathlib import Path

import pyarrow as pa
import pytest
from lance.commit import CommitConflictError
from storage_helpers import START, content, people

from omnigraph import BadRequest, Conflict, Graph, Reclaimed, Unavailable
from omnigraph.base.errors import OmniError
from omnigraph.storage.failures import CommitLost, Unreadable, translate, translated
from omnigraph.storage.places import open_root
from omnigraph.storage.tables import TableRef, head_version, open_table, table_exists
from omnigraph.storage.uri import parse_uri

# ---- URIs


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("/data/graph", "/data/graph"),
        ("/data/graph/", "/data/graph"),
        ("/data/./x/../graph", "/data/graph"),
        ("file:///data/graph", "/data/graph"),
        ("FILE:///data/graph", "/data/graph"),
        ("file://localhost/data/graph", "/data/graph"),
        ("file:///data/my%20graph", "/data/my graph"),
        ("/data/my graph", "/data/my graph"),
        ("/data/100%25", "/data/100%25"),
        ("/data/größe", "/data/größe"),
    ],
)
def test_path_and_file_uri_name_an_absolute_directory(given: str, path: str):
    assert parse_uri(given).uri == path


def test_relative_path_is_made_absolute_and_home_is_expanded(monkeypatch, tmp_path: Path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/ana")
    assert parse_uri("library").uri == f"{tmp_path}/library"
    assert parse_uri("./library").uri == f"{tmp_path}/library"
    assert parse_uri("~/library").uri == "/home/ana/library"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("", "is empty"),
        ("  ", "is empty"),
        ("http://host/graph", "server URL"),
        ("HTTPS://host/graph", "server URL"),
        ("gs://bucket/graph", "unsupported URI scheme 'gs'"),
        ("hdfs://x/y", "unsupported URI scheme 'hdfs'"),
        ("file://otherhost/graph", "names another host"),
        ("s3://bucket", "is not a place for a graph"),
        ("s3://bucket/a?b", "or a '#'"),
        ("s3://bucket/a#b", "or a '#'"),
        ("/data/a?b", "or a control character"),
        ("/data/a\tb", "or a control character"),
        ("file:///data/a%3Fb", "or a control character"),
        ("file:///data/a#b", "is not a place for a graph"),
        ("s3://bucket/a/../b", "is not a place for a graph"),
    ],
)
def test_what_is_no_place_for_a_graph_is_refused_by_name(given: str, said: str):
    with pytest.raises(BadRequest, match=said):
        parse_uri(given)


def test_graph_in_a_directory_of_hostile_name_works(tmp_path: Path):
    place = tmp_path / 'it\'s a "graph"; größe %20 & more'
    graph = Graph.init(str(place), "node Person {\n  name: String @key\n}\n")
    assert Graph.open(str(place), "r").snapshot() == graph.snapshot()
    assert place.is_dir()


# ---- failures


@pytest.mark.parametrize(
    "error",
    [
        CommitConflictError("anything"),
        OSError("Commit conflict for version 3: Failed to commit"),
        OSError("Retryable commit conflict for version 3"),
        OSError("Incompatible transaction: this Update is incompatible"),
        OSError("Too many concurrent writers"),
        RuntimeError("Incompatible transaction: told by another class"),
    ],
)
def test_lost_race_is_a_conflict_however_lance_words_it(error: Exception):
    known = translate(error, "write node:T")
    assert isinstance(known, CommitLost)
    assert isinstance(known, Conflict)
    assert str(known).startswith("could not write node:T: ")


@pytest.mark.parametrize(
    ("error", "what", "said"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "disk", "the disk is full"),
        (OSError(errno.EDQUOT, "quota"), "disk", "the disk is full"),
        (OSError("LanceError(IO): ... No space left on device (os error 28)"), "disk", "the disk is full"),
        (PermissionError(errno.EACCES, "Permission denied"), "permissions", "no permission"),
        (OSError(errno.EROFS, "Read-only file system"), "permissions", "no permission"),
        (OSError("object store: Permission denied (os error 13)"), "permissions", "no permission"),
        (OSError("connection reset"), "store", "connection reset"),
        (pa.ArrowInvalid("External error: LanceError(IO): no answer"), "store", "no answer"),
        (OSError(), "store", "OSError"),
    ],
)
def test_trouble_of_the_store_says_what_is_the_matter(error: Exception, what: str, said: str):
    known = translate(error, "write node:T")
    assert isinstance(known, Unavailable)
    assert known.what == what
    assert said in str(known)


@pytest.mark.parametrize("error", [ValueError("x"), TypeError("y"), KeyError("z")])
def test_error_that_is_not_of_the_store_stays_itself(error: Exception):
    assert translate(error, "anything") is None
    with pytest.raises(type(error)) as raised, translated("anything"):
        raise error
    assert raised.value is error


def test_our_own_error_passes_through_unchanged():
    ours = Reclaimed("node:T", 3)
    with pytest.raises(Reclaimed) as raised, translated("anything"):
        raise ours
    assert raised.value is ours


def test_translated_error_keeps_its_cause_and_survives_pickling():
    cause = OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(Unavailable) as raised, translated("write node:T"):
        raise cause
    assert raised.value.__cause__ is cause
    copy = pickle.loads(pickle.dumps(raised.value))
    assert isinstance(copy, OmniError)
    assert (str(copy), copy.hint, copy.what) == (str(raised.value), raised.value.hint, "disk")


# ---- versions


def test_version_removed_is_reclaimed_and_torn_is_unreadable(tmp_path: Path):
    table = people(tmp_path, None)
    os.unlink(tmp_path / table.ref.version_file(1))
    with pytest.raises(Reclaimed, match="historical version 1 of node:People was reclaimed"):
        open_table(table.ref, 1, "node:People")
    (tmp_path / table.ref.version_file(2)).write_bytes(b"torn")
    with pytest.raises((Unreadable, Unavailable)):
        open_table(table.ref, 2, "node:People")
    assert content(open_table(table.ref, 3)) == START


def test_head_version_is_right_whatever_version_is_known(tmp_path: Path):
    table = people(tmp_path, None)
    assert [head_version(table.ref, known) for known in (0, 1, 2, 3, 4, 99)] == [3] * 6
    os.unlink(tmp_path / table.ref.version_file(1))
    assert head_version(table.ref, 1) == 3


def test_place_without_versions_is_no_table(tmp_path: Path):
    assert not table_exists(TableRef(open_root(str(tmp_path)), "nodes/none"))
    (tmp_path / "nodes").write_text("a file")
    assert not table_exists(TableRef(open_root(str(tmp_path)), "nodes"))
    assert head_version(TableRef(open_root(str(tmp_path)), "nodes/none"), 0) == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_directory_that_may_not_be_written_is_said_to_be_so(tmp_path: Path):
    tmp_path.chmod(0o500)
    with pytest.raises(Unavailable, match="no permission"):
        Graph.init(str(tmp_path / "graph"), "node Person {\n  name: String @key\n}\n")


def test_look_up_of_very_many_ids_equals_one_by_one(tmp_path: Path):
    table = people(tmp_path, None)
    many = [f"p{i}" for i in range(5000)]
    assert sorted(table.find(many, ["id"]).column("id").to_pylist()) == sorted(START)
    assert sorted(table.addresses(many).ids) == sorted(START)
    assert table.find([], ["id"]).schema == table.find(many, ["id"]).schema == pa.schema([table.schema.field("id")])
