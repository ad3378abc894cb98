"""`make demo` at a small size: every row of its lake is in the graph or accounted for, wherever it is started."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import omnigraph as og

DEMO = Path(__file__).resolve().parents[2] / "demo"
pytestmark = pytest.mark.slow


def python(*arguments: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *map(str, arguments)], cwd=folder, capture_output=True, text=True, check=False
    )


def csv_rows(*files: Path) -> list[dict[str, str]]:
    return [row for file in files for row in csv.DictReader(file.read_text(encoding="utf-8").splitlines())]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """The demo run in a folder where an earlier one left its files."""
    place = tmp_path_factory.mktemp("demo")
    (place / "again" / "out").mkdir(parents=True)
    (place / "again" / ".omnigraph-demo").touch()
    (place / "again" / "out" / "rejects.jsonl").write_text("of an earlier run\n")
    return place / "again", python(DEMO, "again", "--rows", "2000", folder=place)


@pytest.mark.spark
def test_the_demo_shows_its_commands_and_ends_well(ran: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    folder, done = ran
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    for command in ("infer", "init", "pipeline run", "snapshot", "commit list"):
        assert f"\n$ omnigraph {command}" in done.stdout
    assert (folder / "out" / "report.html").as_uri() in done.stdout
    assert "committed</title>" in (folder / "out" / "report.html").read_text(encoding="utf-8")
    assert "warning: quality rule 'returned_after_lent' does not hold" in done.stderr
    assert f"rm -r {folder}" in done.stdout.replace("\n", " ")


@pytest.mark.spark
def test_every_row_of_the_lake_landed_or_is_accounted_for(ran: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    folder, lake = ran[0], ran[0] / "lake"
    with (folder / "out" / "rejects.jsonl").open(encoding="utf-8") as lines:
        rejects = [json.loads(line) for line in lines]
    # A line that is no JSON names no type; all of them are reviews.
    left_out = Counter(row["type"] or "Reviewed" for row in rejects)
    graph = og.Graph.open(str(folder / "library"))
    landed = {key.split(":")[1]: entry.row_count for key, entry in graph.snapshot("import").tables.items()}

    books = pq.read_table(lake / "books.parquet")
    readers = csv_rows(lake / "readers.csv")
    loans = csv_rows(*sorted((lake / "loans").glob("*.csv")))
    cards, isbns = {row["card"] for row in readers}, set(books.column("isbn").to_pylist())
    known = [loan for loan in loans if loan["card"] in cards and loan["isbn"] in isbns]
    assert len(loans) > len(known)
    assert len(readers) > len(cards)
    given = {
        "Author": pq.read_metadata(lake / "authors.parquet").num_rows,
        "Book": books.num_rows,
        "Reader": len(cards),
        "Wrote": sum(map(len, books.column("authors").to_pylist())),
        "Borrowed": len(known),
        "Reviewed": len((lake / "reviews.jsonl").read_bytes().splitlines()),
    }
    assert {name: landed[name] + left_out[name] for name in given} == given
    reasons = {"wrong_type", "invalid_enum", "range_violation", "unique_violation", "invalid_json", "endpoint_rejected"}
    assert {row["reason"] for row in rejects} == reasons
    assert {entry.row_count for entry in graph.snapshot("main").tables.values()} == {0}


def test_a_command_that_fails_fails_the_demo(tmp_path: Path) -> None:
    broken = tmp_path / "demo"
    broken.mkdir()
    for file in DEMO.iterdir():
        if file.is_file():
            (broken / file.name).write_bytes(file.read_bytes())
    (broken / "schema.pg").write_text("node Author {")
    done = python(broken, "out", "--rows", "1000", folder=tmp_path)
    assert done.returncode == 1
    assert "the demo stopped" in done.stderr
    assert "pipeline run" not in done.stdout.rsplit("$ ", 1)[-1]


def test_a_folder_of_something_else_is_never_replaced(tmp_path: Path) -> None:
    mine = tmp_path / "mine" / "thesis.txt"
    mine.parent.mkdir()
    mine.write_text("ten years")
    done = python(DEMO, "mine", folder=tmp_path)
    assert done.returncode == 1
    assert "holds something else" in done.stderr
    assert mine.read_text() == "ten years"


def test_the_same_size_gives_the_same_lake(tmp_path: Path) -> None:
    for name in ("one", "two"):
        done = python(DEMO / "generate.py", name, "1000", folder=tmp_path)
        assert done.returncode == 0, done.stderr
    one, two = (
        {p.relative_to(f): p.read_bytes() for p in f.rglob("*.*")} for f in (tmp_path / "one", tmp_path / "two")
    )
    assert len(one) == 7
    assert one == two
