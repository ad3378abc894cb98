"""`omnigraph analytics`."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.answers import put_answer
from omnigraph.cli.command import BranchOption, Run, command, help_if_no_command
from omnigraph.cli.commands.export import save
from omnigraph.cli.failures import UsageMistake
from omnigraph.cli.formats import ALL_FORMATS
from omnigraph.cli.spark_options import ConfOption, Engine, MasterOption, ReadEngineOption, take_spark_options
from omnigraph.cli.targets import AsOfOption, AtOption, SnapshotOption, TargetOptions

if TYPE_CHECKING:
    from omnigraph.engine.read.result import QueryResult

_EXAMPLES = (
    "omnigraph analytics run degree --edge Wrote -s ./library --format csv",
    "omnigraph analytics run components --edge Wrote -s ./library --at main~1",
    "omnigraph analytics run pagerank --edge Wrote -s ./library --damping 0.9 --out ranks.parquet",
)


def add_to(app: typer.Typer) -> None:
    analytics = typer.Typer(help="Compute ranks, components and degrees.")
    analytics.callback(invoke_without_command=True)(help_if_no_command)
    command(analytics, "run", examples=_EXAMPLES, formats=ALL_FORMATS)(_run)
    app.add_typer(analytics, name="analytics")


def _run(
    run: Run,
    algorithm: Annotated[str, typer.Argument(metavar="ALGO", help="pagerank, components or degree.")],
    edge: Annotated[list[str], typer.Option("--edge", metavar="E", help="Follow edges of this type. Repeats.")],
    branch: BranchOption = None,
    snapshot: SnapshotOption = None,
    at: AtOption = None,
    as_of: AsOfOption = None,
    damping: Annotated[float, typer.Option("--damping", help="pagerank: the share that follows edges.")] = 0.85,
    iterations: Annotated[int, typer.Option("--iterations", help="pagerank: rounds at most.")] = 20,
    tolerance: Annotated[float, typer.Option("--tolerance", help="pagerank: stop when so little moves.")] = 1e-6,
    direction: Annotated[str, typer.Option("--direction", help="degree: out, in or both.")] = "out",
    out: Annotated[
        str | None, typer.Option("--out", metavar="FILE", help="Write .parquet, .csv, .jsonl or .arrow, not to stdout.")
    ] = None,
    engine: ReadEngineOption = Engine.auto,
    master: MasterOption = None,
    spark_conf: ConfOption = None,
) -> None:
    """Compute one value for each node of a branch or an older commit."""
    take_spark_options(run, master, spark_conf)
    targets = TargetOptions(branch, snapshot, at, as_of)
    ending = None if out is None else _ending(out)
    graph = run.read()
    on, pinned = targets.named(graph, run.settings.cli_branch)
    result = graph.analytics(
        algorithm,
        edge,
        branch=on,
        snapshot=pinned,
        engine=engine.value,
        damping=damping,
        iterations=iterations,
        tolerance=tolerance,
        direction=direction,
    )
    if out is None or ending is None:
        put_answer(run, result)
    else:
        save(iter([_file(result, ending)]), out)
        run.note(f"{result.row_count} values written to {out}")


def _ending(path: str) -> str:
    found = PurePath(path).suffix.lower()
    if found not in (".parquet", ".csv", ".jsonl", ".arrow"):
        raise UsageMistake(
            f"what kind of file '{path}' is cannot be told", "End it in .parquet, .csv, .jsonl or .arrow."
        )
    return found


def _file(result: QueryResult, ending: str) -> bytes:
    import orjson
    import pyarrow as pa
    from pyarrow import csv, parquet

    table, sink = result.to_arrow(), pa.BufferOutputStream()
    match ending:
        case ".parquet":
            parquet.write_table(table, sink)
        case ".csv":
            csv.write_csv(table, sink)
        case ".arrow":
            with pa.ipc.new_file(sink, table.schema) as file:
                file.write_table(table)
        case _:
            return b"".join(orjson.dumps(row) + b"\n" for row in table.to_pylist())
    return bytes(sink.getvalue())
