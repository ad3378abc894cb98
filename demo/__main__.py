"""A library's lake becomes a graph: generated files, one pipeline on Spark, one commit, and a look at what landed.

python -m demo [FOLDER] [--rows N]

Everything is done by the commands that are shown, in a folder of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from rich.console import Console

HERE = Path(__file__).resolve().parent
FILES = ("generate.py", "schema.pg", "pipeline.yaml")
MARK = ".omnigraph-demo"
ASK = """\
python <<'END'
import omnigraph as og

graph = og.Graph.open("library")
readers = graph.spark.nodes("Reader", branch="import", columns=["name", "tier"], filter="city = 'Porto'")
readers.groupBy("tier").count().orderBy("tier").show()
graph.spark.sql('''
    select a.name as author, count(*) as loans, count(distinct l.src) as readers
    from Author a join Wrote w on w.src = a.id join Borrowed l on l.dst = w.dst
    where year(l.lent) = 2024
    group by a.id, a.name order by loans desc, author limit 5
''', branch="import").show()
END"""
console = Console(highlight=False, soft_wrap=True)


class Demo:
    """Shows each command, then runs it in the folder as a user would, with the programs of this environment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.steps = 0

    def head(self, title: str) -> None:
        self.steps += 1
        console.print(f"\n[bold cyan]{self.steps}. {title}[/]")

    def run(self, command: str) -> None:
        console.print(f"[bold]$ {command}[/]", markup=True)
        programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        done = subprocess.run(command, shell=True, cwd=self.folder, env={**os.environ, "PATH": programs}, check=False)
        if done.returncode:
            sys.exit(
                f"the demo stopped: the command above ended with {done.returncode}; its files are in {self.folder}"
            )


def make_folder(folder: Path) -> None:
    """An empty folder with the demo's files; what an earlier demo left there is replaced, nothing else ever is."""
    if folder.exists() and not (folder / MARK).exists() and (not folder.is_dir() or any(folder.iterdir())):
        sys.exit(f"{folder} holds something else; name another folder")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / MARK).touch()
    for name in FILES:
        shutil.copy(HERE / name, folder)


def show_rejects(file: Path) -> None:
    """Of each reason how many rows there are, and one of them."""
    found: dict[str, list[dict[str, object]]] = {}
    with file.open(encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            found.setdefault(row["reason"], []).append(row)
    for reason, rows in sorted(found.items(), key=lambda entry: -len(entry[1])):
        first = rows[0]
        console.print(f"{len(rows):>7,}  [yellow]{reason}[/], the first at {first['file']}:{first['line']}")
        console.print(f"         {first['message']}", style="dim", markup=False)
    console.print("An edge of a rejected node goes with it (endpoint_rejected): nothing in the graph dangles.")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m demo", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", nargs="?", default="demo-out", help="where its files go; default demo-out")
    parser.add_argument("--rows", type=int, default=1_000_000, help="nodes and edges together; default 1000000")
    given = parser.parse_args()
    if given.rows < 1_000:
        parser.error("--rows must be at least 1000")
    folder, started = Path(given.folder).resolve(), time.monotonic()
    make_folder(folder)
    demo = Demo(folder)

    console.print(f"Everything below happens in {folder}")
    demo.head(f"A lake: {given.rows:,} things of a lending library in CSV, Parquet and NDJSON, some of them dirty")
    demo.run(f"python generate.py lake {given.rows}")
    demo.run("du -ah lake | sort -k 2")
    demo.run("head -n 3 lake/readers.csv lake/loans/2024.csv lake/reviews.jsonl")

    demo.head("What is in it? A first draft of a schema, from the data")
    demo.run("omnigraph infer lake/readers.csv --sample 10000 --out draft")
    demo.run("cat draft/schema.pg")

    demo.head("The schema we want, the pipeline that fills it")
    demo.run("cat schema.pg pipeline.yaml")

    demo.head("An empty graph, then the pipeline on Spark: onto a branch, as one commit")
    demo.run("omnigraph init library --schema schema.pg")
    demo.run("omnigraph pipeline run pipeline.yaml")
    console.print(f"The report of this run, for a browser: [bold]{(folder / 'out' / 'report.html').as_uri()}[/]")

    demo.head("What landed. Readers of main have seen nothing of it yet")
    demo.run("omnigraph snapshot library --branch import")
    demo.run("omnigraph snapshot library --branch main")

    demo.head("What did not land, and why: out/rejects.jsonl")
    show_rejects(folder / "out" / "rejects.jsonl")

    demo.head("Questions, asked on Spark")
    demo.run(ASK)

    demo.head("The history of the branch")
    demo.run("omnigraph commit list --store library --branch import")

    console.print(f"\nDone in {time.monotonic() - started:.0f} s. To remove all of it: [bold]rm -r {folder}[/]")


if __name__ == "__main__":
    main()
