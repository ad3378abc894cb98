"""The real program, in its own process: start-up, signals, pipes; and the help of every command."""

from __future__ import annotations

import gzip
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.main import get_command

import omnigraph as og
from omnigraph.cli.about import INTERNAL_SCHEMA_VERSION
from omnigraph.cli.app import app
from omnigraph.cli.commands.commit import _SHOW_EXAMPLES
from omnigraph.manifest.rows import INTERNAL_MANIFEST_SCHEMA_VERSION

pytestmark = pytest.mark.slow

PROGRAM = [sys.executable, "-m", "omnigraph.cli.main"]
COMMANDS = [
    "init",
    "load",
    "pipeline validate",
    "pipeline run",
    "infer",
    "embed",
    "mutate",
    "branch create",
    "branch list",
    "branch delete",
    "branch merge",
    "branch reset",
    "branch diff",
    "tag create",
    "tag list",
    "tag delete",
    "query",
    "sql",
    "analytics run",
    "snapshot",
    "export",
    "commit list",
    "commit show",
    "commit revert",
    "commit changes",
    "log",
    "history",
    "changes poll",
    "changes baseline",
    "schema show",
    "schema plan",
    "schema apply",
    "lint",
    "status",
    "recovery list",
    "lock list",
    "lock break",
    "verify",
    "repair",
    "optimize",
    "upkeep",
    "cleanup",
    "clone",
    "version",
]


def _run(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*PROGRAM, *arguments], capture_output=True, text=True, check=False, timeout=60, **options)


def test_version_tells_the_program_and_the_on_disk_version(cli):
    assert INTERNAL_SCHEMA_VERSION == INTERNAL_MANIFEST_SCHEMA_VERSION
    wanted = f"omnigraph {og.__version__}\ninternal-schema {INTERNAL_MANIFEST_SCHEMA_VERSION}\n"
    assert cli("version").out == cli("--version").out == wanted
    assert cli("version", "--json").json == {"version": og.__version__, "internal_schema_version": 4}


def test_version_works_whatever_the_settings_file_says(cli):
    Path("omnigraph.yaml").write_text("wrong: 1")
    assert cli("version").code == 0


def test_help_and_version_load_neither_the_engine_nor_its_libraries():
    heavy = ["lance", "pyarrow", "pyspark", "numpy", "pandas", "duckdb", "omnigraph.graph", "omnigraph.engine"]
    code = (
        "import sys; from omnigraph.cli.main import main; main(['--help']); main(['version']); "
        f"print([m for m in {heavy!r} if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr == "[]\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_one_line_summary_and_examples(cli, name):
    text = cli(*name.split(), "--help").out
    assert text.startswith(f"Usage: omnigraph {name} ")
    summary = text.split("\n\n")[1]
    assert summary.strip().endswith(".")
    assert "\n" not in summary
    assert "\n  Examples:\n    omnigraph " in text
    assert cli(*name.split(), "-h").out == text


def test_the_list_of_commands_above_is_complete():
    root = get_command(app)
    found = []
    for name, command in root.commands.items():
        found += [f"{name} {sub}" for sub in command.commands] if hasattr(command, "commands") else [name]
    assert sorted(found) == sorted(COMMANDS)


def test_no_summary_in_the_list_of_commands_is_cut(cli):
    for line in (
        [],
        ["branch"],
        ["commit"],
        ["schema"],
        ["recovery"],
        ["lock"],
        ["pipeline"],
        ["tag"],
        ["changes"],
        ["analytics"],
    ):
        assert "..." not in cli(*line, "--help").out.replace("[ARGS]...", "")


def _write_inputs() -> None:
    """The files that examples name."""
    hire = "query hire($n: String) { insert Person { name: $n } }"
    fire = 'query fire() { delete Person where name = "nobody" }'
    by_name = "query by_name($n: String) { match { $p: Person { name: $n } } return { $p.name, $p.age } }"
    Path("people.gq").write_text(f"{hire}\n{fire}\n{by_name}")
    Path("new.pg").write_text(Path("schema.pg").read_text().replace("age: I32?", "age: I32?\n  born: Date?"))
    Path("ana.json").write_text('{"n": "ana"}')
    Path("people.jsonl").write_text('{"type":"Person","data":{"name":"bo"}}\n')
    Path("books.jsonl.gz").write_bytes(gzip.compress(b'{"type":"Book","data":{"title":"Graphs"}}\n'))
    Path("people.csv").write_text("name,age\ndi,4\n")
    Path("pipeline.yaml").write_text(
        "version: 1\ntarget: {graph: library, mode: merge}\n"
        "sources: {people: {format: csv, path: people.csv, options: {header: true}}}\n"
        "nodes: [{type: Person, from: people, map: {name: name, age: cast(age as int)}}]\n"
    )
    Path("docs.jsonl").write_text('{"type":"Doc","data":{"slug":"intro","title":"Graphs"}}\n')
    spec = "{dimension: 4, types: {Doc: {target: vec, fields: [title]}}}"
    Path("embed.yaml").write_text(spec)
    named = "sources: {raw_seed: docs.jsonl}\nartifacts: {embedded_seed: seeded.jsonl}\n"
    Path("seed.yaml").write_text(f"{named}embeddings: {spec}\n")
    Path("omnigraph.yaml").write_text("embeddings: {provider: mock}\n")
    Path("upkeep.yaml").write_text("version: 1\nrules:\n  - {do: optimize, branches: [main]}\n")
    Path("exports").mkdir()
    Path("exports/more.jsonl").write_text('{"type":"Person","data":{"name":"cy"}}\n')


def _prepare(graph: og.Graph, add_people: Callable[..., og.Graph]) -> str:
    """The branches, tags and people that examples name; a cursor to go on from."""
    add_people(graph, "ana")
    graph.tag_create("before-import")
    graph.tag_create("v1")
    for branch, name in (("draft", "dora"), ("import", "ivy"), ("team/review", "tom")):
        graph.branch_create(branch)
        graph.mutate("query q($n: String) { insert Person { name: $n } }", {"n": name}, branch=branch)
    add_people(graph, "zed")
    cursor = graph.changes_poll(start="now").cursor
    assert cursor is not None
    return cursor


@pytest.mark.spark
def test_every_example_of_the_help_is_true(cli, graph, add_people, tmp_path, spark):
    _write_inputs()
    cursor = _prepare(graph, add_people)
    ours = _SHOW_EXAMPLES[0].split()[3]
    examples = [
        line.strip()
        for name in ["", *COMMANDS]
        for line in cli(*name.split(), "--help").out.split("Examples:\n")[1].splitlines()
    ]
    assert len(examples) > 10
    head = graph.head_commit_id_for_branch()
    library, kept = tmp_path / "library", tmp_path / "kept"
    shutil.copytree(library, kept)
    for example in dict.fromkeys(examples):
        named = example.replace(ours, head).replace("$CURSOR", cursor)
        program, *words = shlex.split(named)
        assert program == "omnigraph"
        if "--follow" in words or any(word.startswith("s3://") for word in words):
            continue  # it ends when the user ends it, or needs a store of the user's
        shutil.rmtree("copy", ignore_errors=True)
        shutil.rmtree(library)
        if words[:2] != ["init", "./library"]:
            shutil.copytree(kept, library)
            if words[1:2] == ["create"]:
                opened = og.Graph.open("library")
                (opened.branch_delete if words[0] == "branch" else opened.tag_delete)(words[2])
        done = cli(*words)
        assert done.code == 0, (example, done.err)


def test_the_program_prints_the_payload_on_stdout_and_the_rest_on_stderr(tmp_path):
    done = _run("init", "library", "--schema", "schema.pg")
    assert (done.returncode, done.stdout, done.stderr) == (0, "initialized library\n", "omnigraph init → library\n")


def test_ctrl_c_ends_the_program_with_130_and_without_a_traceback(tmp_path):
    os.mkfifo("waits.pg")
    process = subprocess.Popen(
        [*PROGRAM, "init", "library", "--schema", "waits.pg"], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    # Opening the other end waits until the program has opened its own: from then on it reads.
    with open("waits.pg", "w"):
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "interrupted\n")
    assert not Path("library").exists()


def test_a_reader_that_stops_reading_is_no_error(graph):
    read_end, write_end = os.pipe()
    os.close(read_end)
    process = subprocess.run(
        [*PROGRAM, "commit", "list", "-s", "library"], stdout=write_end, stderr=subprocess.PIPE, text=True, timeout=60
    )
    os.close(write_end)
    assert (process.returncode, process.stderr) == (0, "")


def test_output_that_cannot_be_written_is_unavailable(graph):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*PROGRAM, "commit", "list", "-s", "library"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60
        )
    assert done.returncode == 6
    assert done.stderr.startswith("error: could not write the output: No space left on device\n")
    assert "Traceback" not in done.stderr


def test_closed_streams_and_a_poor_encoding_do_not_end_a_command(graph):
    shell = "{} snapshot library --json >&- && {} snapshot nowhere 2>&-; test $? = 1 && {} snapshot → "
    line = shell.replace("{}", shlex.join(PROGRAM))
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(["bash", "-c", line], capture_output=True, check=False, timeout=60, env=env)
    assert done.returncode == 1
    assert b"\\u2192" in done.stderr
    assert b"Traceback" not in done.stderr


@contextmanager
def _without_privileges() -> Iterator[None]:
    """Root may write anywhere, so for a while we are not root."""
    root = os.geteuid() == 0
    try:
        if root:
            os.setresuid(65534, 65534, 0)
        yield
    finally:
        if root:
            os.setresuid(0, 0, 0)


def test_a_store_that_may_not_be_written_can_be_read_and_refuses_an_init_beside_it(cli, add_people, monkeypatch):
    schema = Path("schema.pg").read_text()
    reads = ["snapshot library", "status library", "commit list -s library", "recovery list -s library"]
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.chdir(folder)
        Path("schema.pg").write_text(schema)
        add_people(og.Graph.init("library", schema), "ann")
        wanted = [cli(*line.split()).out for line in reads]
        paths = [Path(folder), *Path(folder).rglob("*")]
        for path in paths:
            path.chmod(0o555 if path.is_dir() else 0o444)
        try:
            with _without_privileges():
                found = [cli(*line.split()).out for line in reads]
                refused = cli("init", "other", "--schema", "schema.pg")
                with pytest.raises(og.Unavailable):
                    og.Graph.open("library")
        finally:
            for path in paths:
                path.chmod(0o755)
        assert found == wanted
        assert refused.code == 6
        assert "no permission" in refused.err
        monkeypatch.chdir("/")
