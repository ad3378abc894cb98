"""SQL that tries to reach anything but the views, or to do anything but read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from sql_scenes import answers, made

import omnigraph as og

pytestmark = pytest.mark.timeout(60)

# Names in reach of a replacement scan, were it on.
hidden_rows = __import__("pyarrow").table({"secret": ["python"]})


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return made(tmp_path_factory.mktemp("sql"))


@pytest.fixture
def secret(tmp_path: Path) -> str:
    file = tmp_path / "secret.csv"
    file.write_text("secret\nhunter2\n")
    return str(file)


FILES = [
    "SELECT * FROM '{file}'",
    'SELECT * FROM "{file}"',
    "SELECT * FROM read_text('{file}')",
    "SELECT * FROM read_blob('{file}')",
    "SELECT * FROM read_csv('{file}')",
    "SELECT * FROM READ_CSV_AUTO('{file}')",
    "SELECT * FROM read_json('{file}')",
    "SELECT * FROM read_parquet('{file}')",
    "SELECT * FROM parquet_metadata('{file}')",
    "SELECT * FROM sniff_csv('{file}')",
    "SELECT * FROM glob('{folder}/*')",
    "SELECT * FROM query('SELECT * FROM read_text(''{file}'')')",
    "SELECT * FROM query_table('{file}')",
    "SELECT (SELECT content FROM read_text('{file}'))",
    "SELECT name FROM node_Person WHERE name IN (SELECT content FROM read_text('{file}'))",
    "WITH x AS (SELECT * FROM read_text('{file}')) SELECT * FROM x",
    "SELECT * FROM node_Person p, LATERAL (SELECT * FROM read_text('{file}')) t",
    'WITH "{file}" AS (SELECT 1) SELECT * FROM (SELECT 1) x',
    'SELECT * FROM (WITH "{file}" AS (SELECT 1 AS a) SELECT a FROM "{file}") x, "{file}"',
    "COPY (SELECT * FROM node_Person) TO '{folder}/out.csv'",
    "COPY node_Person FROM '{file}'",
    "ATTACH '{folder}/other.db' AS other",
    "EXPORT DATABASE '{folder}/out'",
    "IMPORT DATABASE '{folder}'",
    "CREATE TABLE t AS SELECT * FROM read_text('{file}')",
    "LOAD '{file}'",
]


@pytest.mark.parametrize("sql", FILES)
def test_no_file_is_read_or_written(graph, secret, sql):
    before = sorted(os.listdir(Path(secret).parent))
    try:
        found = graph.sql(sql.format(file=secret, folder=Path(secret).parent)).to_json()
    except og.BadRequest as error:
        found = {"error": str(error), "hint": error.hint}
        assert str(error).startswith("sql: ")
    assert "hunter2" not in str(found)
    assert sorted(os.listdir(Path(secret).parent)) == before


REFUSED = [
    "SELECT * FROM 'https://example.invalid/x.csv'",
    "SELECT * FROM read_csv('https://example.invalid/x.csv')",
    "SELECT * FROM read_parquet('s3://bucket/x.parquet')",
    "INSTALL httpfs",
    "LOAD httpfs",
    "FORCE INSTALL httpfs FROM 'http://example.invalid'",
    "CREATE SECRET s (TYPE s3)",
    "SELECT * FROM duckdb_secrets()",
    "SELECT * FROM which_secret('s3://x', 's3')",
    "SELECT * FROM duckdb_settings()",
    "SELECT * FROM duckdb_tables",
    "SELECT * FROM duckdb_functions()",
    "SELECT * FROM duckdb_memory()",
    "SELECT * FROM duckdb_temporary_files()",
    "SELECT * FROM duckdb_logs",
    "SELECT * FROM information_schema.tables",
    "SELECT * FROM pg_catalog.pg_settings",
    "SELECT * FROM pg_settings",
    "SELECT * FROM sqlite_master",
    "SELECT * FROM memory.main.node_Person",
    "SELECT * FROM temp.node_Person",
    "SELECT * FROM pragma_version()",
    "SELECT * FROM test_all_types()",
    "SELECT * FROM seq_scan('x')",
    "SELECT * FROM arrow_scan(1, 2, 3)",
    "SELECT * FROM python_map_function(1)",
    "SELECT * FROM json_execute_serialized_sql('{}')",
    "SELECT current_setting('memory_limit')",
    "SELECT current_setting('temp_directory')",
    "SELECT 'temp_directory'.current_setting()",
    "SELECT list_transform(['temp_directory'], x -> current_setting(x))",
    "SELECT getenv('HOME')",
    "SELECT system.main.current_setting('memory_limit')",
    "SELECT system.main.repeat('x', 1)",
    "SELECT write_log('x')",
    "SELECT json_serialize_sql('SELECT 1')",
    "SELECT nextval('s')",
    "SELECT sleep_ms(1)",
    "SELECT getvariable('x')",
    "PRAGMA version",
    "PRAGMA database_list",
    "PRAGMA enable_external_access",
    "SET enable_external_access = true",
    "SET GLOBAL memory_limit = '100GB'",
    "SET lock_configuration = false",
    "SET VARIABLE x = 1",
    "RESET memory_limit",
    "CALL pragma_version()",
    "CHECKPOINT",
    "VACUUM",
    "USE memory",
    "BEGIN",
    "EXPLAIN SELECT 1",
    "DESCRIBE node_Person",
    "SHOW TABLES",
    "SHOW ALL TABLES",
    "SUMMARIZE node_Person",
    "SELECT * FROM (DESCRIBE node_Person)",
    "SELECT * FROM (SHOW TABLES)",
    "CREATE TABLE t (a INT)",
    "CREATE VIEW v AS SELECT 1",
    "CREATE OR REPLACE MACRO repeat(a, b) AS 1",
    "DROP VIEW node_Person",
    "INSERT INTO node_Person (id) VALUES ('x')",
    "UPDATE node_Person SET age = 1",
    "DELETE FROM node_Person",
    "WITH a AS (INSERT INTO node_Person (id) VALUES ('x') RETURNING id) SELECT * FROM a",
    "WITH a AS (DELETE FROM node_Person RETURNING id) SELECT * FROM a",
    "MERGE INTO node_Person USING node_Person p ON false WHEN NOT MATCHED THEN INSERT VALUES (1)",
    "PREPARE p AS SELECT 1",
    "EXECUTE p",
    "SELECT $1",
    "SELECT ?",
    "SELECT $name",
    "",
    "  -- only a comment",
    ";",
    "SELECT 1; SELECT 2",
    "SELECT 1; -- and\nDROP VIEW node_Person",
    "SELECT 1 /* ; */ ; /* */ PRAGMA version",
    "SELECT 1;\x00SELECT 2",
    "SELECT 1 -- \n; SET threads = 1",
    "PIVOT node_Person ON age USING count(*)",
]


@pytest.mark.parametrize("sql", REFUSED)
def test_anything_else_is_refused_in_our_words(graph, sql):
    with pytest.raises(og.BadRequest) as told:
        graph.sql(sql)
    assert str(told.value).startswith("sql: ")
    assert "duckdb" not in (str(told.value) + told.value.hint).lower() or "duckdb" in sql.lower()


SYSTEM_VIEWS_BY_NAME = [
    "WITH duckdb_tables AS (SELECT * FROM duckdb_tables) SELECT * FROM duckdb_tables",
    "WITH a AS (SELECT * FROM duckdb_tables), duckdb_tables AS (SELECT 1) SELECT * FROM a",
    "SELECT * FROM (WITH pg_settings AS (SELECT 1) SELECT * FROM pg_settings) x, pg_settings",
    "SELECT * FROM (WITH sqlite_master AS (SELECT 1) SELECT * FROM sqlite_master) x, sqlite_master",
]


@pytest.mark.parametrize("sql", SYSTEM_VIEWS_BY_NAME)
def test_a_with_table_does_not_make_a_system_view_reachable(graph, sql):
    with pytest.raises(og.BadRequest, match="cannot be the name of a WITH table"):
        graph.sql(sql)


def test_no_python_variable_is_a_table(graph):
    local_rows = hidden_rows
    assert local_rows.num_rows == 1
    for name in ("hidden_rows", "local_rows", "graph", "told"):
        with pytest.raises(og.BadRequest, match=f"there is no view '{name}'"):
            graph.sql(f"SELECT * FROM {name}")


def test_a_with_table_named_like_a_python_variable_stays_in_its_scope(graph):
    sql = "SELECT * FROM (WITH hidden_rows AS (SELECT 1 AS a) SELECT a FROM hidden_rows) x, hidden_rows"
    with pytest.raises(og.BadRequest):
        graph.sql(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT " + "(" * 5000 + "1" + ")" * 5000,
        "SELECT 1" + "+1" * 5000,
        "SELECT * FROM " + "(SELECT * FROM " * 400 + "range(3)" + ")" * 400,
        "SELECT \ud800",
    ],
)
def test_odd_texts_end_in_an_answer_or_a_refusal(graph, sql):
    try:
        assert graph.sql(sql).row_count == 3
    except og.BadRequest as error:
        assert str(error).startswith("sql: ")


def test_an_attack_leaves_nothing_behind_for_the_next_statement(graph):
    with pytest.raises(og.BadRequest):
        graph.sql("CREATE MACRO now() AS 'hacked'")
    assert answers(graph, "SELECT count(*) FROM node_Person") == [(5,)]
    with pytest.raises(og.BadRequest, match="there is no view"):
        graph.sql("SELECT * FROM v")
