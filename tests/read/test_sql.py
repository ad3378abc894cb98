"""SQL over one snapshot: what a SELECT sees, and what it says when it cannot be run."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from sql_scenes import NAMES, SEEN, answers, made

import omnigraph as og
from omnigraph.storage.sql_source import SqlSource

pytestmark = pytest.mark.timeout(60)


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return made(tmp_path_factory.mktemp("sql"))


def test_nodes_and_edges_are_views_with_all_their_columns(graph):
    assert graph.sql("SELECT * FROM node_Person").columns == [
        "id",
        *sorted(["name", "age", "big", "score", "narrow", "born", "seen", "tags", "place", "photo"]),
    ]
    assert graph.sql("SELECT * FROM edge_Follows").columns == ["id", "src", "dst", "weight"]


def test_views_join_group_and_order(graph):
    found = answers(
        graph,
        "SELECT p.name, count(*) AS n, sum(f.weight) AS w FROM node_Person p "
        "JOIN edge_Follows f ON f.src = p.id GROUP BY p.name ORDER BY n DESC, p.name",
    )
    assert found == [("ana", 2, 1.5), ("bo", 1, None), ("cy", 1, 2.0)]


@pytest.mark.parametrize(
    ("condition", "names"),
    [
        ("id = 'bo'", ["bo"]),
        ("id IN ('ana', 'nobody', 'ed')", ["ana", "ed"]),
        ("age = 31", ["ana", "ed"]),
        ("age <> 31", ["cy", "di"]),
        ("age IS NULL", ["bo"]),
        ("age BETWEEN 17 AND 31 AND name > 'b'", ["cy", "ed"]),
        ("big = 9223372036854775808", ["cy"]),
        ("big > 1 OR name = 'ana'", ["ana", "bo", "cy", "ed"]),
        ("score = 0", ["ana", "bo"]),
        ("score > 1", ["cy", "ed"]),
        ("narrow = 0.2::FLOAT", ["bo"]),
        ("born < DATE '1991-01-01'", ["ana", "di"]),
        ("seen = TIMESTAMPTZ '2024-01-03 12:00:00+00'", ["cy"]),
        ("seen > TIMESTAMPTZ '2024-01-04 12:00:00.000001+00'", ["ed"]),
        ("photo = 'jpg'::BLOB", ["ana"]),
        ("list_contains(tags, 'a')", ["ana", "ed"]),
        ("name LIKE '%d%'", ["di", "ed"]),
        ("age = 31 AND score < 1 AND big = 1", ["ana"]),
    ],
)
def test_a_filter_gives_the_same_rows_however_it_is_pushed_down(graph, condition, names):
    assert answers(graph, f"SELECT name FROM node_Person WHERE {condition} ORDER BY name") == [(n,) for n in names]
    # An expression over the whole row cannot be pushed down.
    held_back = (
        f"SELECT name FROM (SELECT *, random() AS r FROM node_Person) WHERE ({condition}) AND r >= 0 ORDER BY name"
    )
    assert answers(graph, held_back) == [(n,) for n in names]


def test_every_type_comes_back_as_it_was_stored(graph):
    row = graph.sql("SELECT * FROM node_Person WHERE id = 'ana'").rows[0]
    assert (row["age"], row["big"], row["score"], row["tags"], row["photo"]) == (31, 1, 0.0, ["a", "b"], b"jpg")
    assert (row["seen"], row["born"].isoformat(), row["place"]) == (SEEN[0], "1990-01-01", [1.0, 0.0])
    types = [str(t) for t in graph.sql("SELECT age, tags, place, seen, photo FROM node_Person").types]
    assert types == ["I32?", "[String]?", "Vector(2)?", "DateTime?", "Blob?"]


def test_a_sum_of_integers_is_an_integer(graph):
    result = graph.sql("SELECT sum(age) AS s FROM node_Person")
    assert (result.rows, result.to_json()["rows"]) == ([{"s": 123}], [{"s": 123}])


def test_a_snapshot_is_read_as_it_was(tmp_path):
    graph = made(tmp_path)
    before = graph.head_commit_id_for_branch()
    graph.mutate('query q() { delete Person where name = "ed" }')
    count = "SELECT count(*) AS n FROM node_Person"
    assert answers(graph, count) == [(4,)]
    old = graph.sql(count, snapshot=before)
    assert (old.rows, old.target, old.graph_commit_id) == ([{"n": 5}], {"snapshot": before}, before)
    with pytest.raises(og.BadRequest):
        graph.sql(count, branch="main", snapshot=before)


def test_a_branch_is_read_by_its_name(tmp_path):
    graph = made(tmp_path)
    graph.branch_create("draft")
    graph.mutate('query q() { insert Person { name: "fay" } }', branch="draft")
    count = "SELECT count(*) AS n FROM node_Person"
    assert answers(graph, count) == [(5,)]
    result = graph.sql(count, branch="draft")
    assert (result.rows, result.target) == ([{"n": 6}], {"branch": "draft"})


def test_an_empty_graph_has_empty_views(tmp_path):
    graph = og.Graph.init(str(tmp_path / "g"), "node Person { name: String @key age: I32? }")
    assert graph.sql("SELECT * FROM node_Person").rows == []
    assert answers(graph, "SELECT count(*), max(age) FROM node_Person") == [(0, None)]


@pytest.mark.parametrize(
    "sql",
    [
        "WITH old AS (SELECT * FROM node_Person WHERE age > 18) SELECT count(*) FROM old",
        "WITH node_person AS (SELECT * FROM node_Person WHERE age > 18) SELECT count(*) FROM node_person",
        "FROM node_Person SELECT count(*) WHERE age > 18",
        "(SELECT 3) -- with a comment; and a semicolon",
        "SELECT 3;",
        "/* ; DROP */ SELECT count(*) FROM node_PERSON WHERE age > 18;;",
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 3) SELECT max(n) FROM t",
        "SELECT max(i) FROM range(4) t(i)",
        "SELECT len(range(3))",
        "SELECT len(repeat('abc', 1))",
        "SELECT 3 WHERE '; DROP TABLE x' <> ''",
    ],
)
def test_one_select_in_any_dress_is_run(graph, sql):
    assert answers(graph, sql) == [(3,)]


def test_an_unknown_view_suggests_the_nearest(graph):
    with pytest.raises(og.BadRequest) as told:
        graph.sql("SELECT *\nFROM node_Persn")
    assert str(told.value) == "sql: 2:6: there is no view 'node_Persn'"
    assert told.value.hint == "Did you mean 'node_Person'?"


@pytest.mark.parametrize(
    ("sql", "place", "said"),
    [
        ("SELECT 'é', nme FROM node_Person", (1, 13), 'Referenced column "nme" not found'),
        ("SELECT name\nFROM node_Person\nWHER age = 1", (3, 6), "syntax error"),
        ("SELECT name::INTEGER FROM node_Person", (1, 12), "Could not convert string 'ana' to INT32"),
        ("SELECT frob(name) FROM node_Person", (1, 8), "frob does not exist"),
    ],
)
def test_an_error_says_where_and_why(graph, sql, place, said):
    with pytest.raises(og.BadRequest) as told:
        graph.sql(sql)
    assert said in str(told.value)
    assert (told.value.line, told.value.column) == place


def test_an_error_does_not_spoil_the_next_statement(graph):
    for wrong in ("SELECT nme FROM node_Person", "SELECT name::INTEGER FROM node_Person", "SELECT 1 +"):
        with pytest.raises(og.BadRequest):
            graph.sql(wrong)
        assert answers(graph, "SELECT count(*) FROM node_Person") == [(5,)]


def test_two_columns_of_one_name_ask_for_an_alias(graph):
    with pytest.raises(og.BadRequest, match="two columns are named 'id'"):
        graph.sql("SELECT a.id, b.id FROM node_Person a, node_Person b")


def test_types_whose_names_differ_only_in_case_are_told_apart(tmp_path):
    graph = og.Graph.init(str(tmp_path / "g"), "node Ab { a: String @key }\nnode AB { b: String @key }")
    graph.mutate('query q() { insert Ab { a: "x" } }')
    assert answers(graph, "SELECT a FROM node_Ab") == [("x",)]
    assert graph.sql("SELECT b FROM node_AB").rows == []
    for sql in ("SELECT * FROM node_ab", "SELECT a, b FROM node_Ab, node_AB"):
        with pytest.raises(og.BadRequest, match="may be several views"):
            graph.sql(sql)


def test_names_come_in_any_order_from_several_threads(graph):
    asked = [NAMES[n % 5] for n in range(20)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda n: answers(graph, f"SELECT name FROM node_Person WHERE id = '{n}'"), asked))
    assert found == [[(name,)] for name in asked]


@pytest.mark.parametrize("where", [None, pc.field("extra").is_null(), pc.field("age") == 31, pc.field("extra") == 1])
def test_a_column_that_an_old_version_does_not_have_reads_as_null(graph, where):
    table = graph.view().table("node:Person")
    source = SqlSource(table, table.schema.append(pa.field("extra", pa.int64())))
    for columns in (["name", "extra"], ["extra"]):
        found = source.scanner(columns=columns, filter=where).to_reader().read_all()
        assert found.schema.field("extra").type == pa.int64()
        assert found.num_rows == (5 if where is None or "null" in str(where) else 2 if "age" in str(where) else 0)
        assert found.column("extra").null_count == found.num_rows
