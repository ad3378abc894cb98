"""`omnigraph infer`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnigraph.cli.command import Run, command
from omnigraph.cli.formats import JSON
from omnigraph.cli.output import one_line, put_json, put_line
from omnigraph.cli.progress import progress
from omnigraph.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from omnigraph.pipeline.infer.draft import EdgeDraft, NodeDraft
    from omnigraph.pipeline.infer.infer import Inferred

_EXAMPLES = (
    "omnigraph infer people.csv --out draft",
    "omnigraph infer people.csv exports/ --sample 10000 --out trial",
)


def add_to(app: typer.Typer) -> None:
    command(app, "infer", examples=_EXAMPLES, needs_graph=False)(_infer)


def _infer(
    run: Run,
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILES...", help="CSV, Parquet or NDJSON files, or folders of files with equal columns."
        ),
    ],
    out: Annotated[str, typer.Option("--out", metavar="DIR", help="Where the two files go; default here.")] = ".",
    sample: Annotated[
        int | None, typer.Option("--sample", metavar="N", min=1, help="Read only the first N rows of each input.")
    ] = None,
) -> None:
    """Draft a schema and a pipeline from files."""
    from omnigraph.pipeline.infer.infer import infer

    with progress(run.told.quiet) as report:
        done = infer(files, out=out, sample=sample, settings=Settings.resolve(), progress=report)
    if run.format == JSON:
        put_json(_json(done, sample))
        return
    for line in _lines(done):
        put_line(one_line(line))


def _lines(done: Inferred) -> Iterator[str]:
    yield f"read {done.rows} rows; wrote {done.schema_file} and {done.pipeline_file}"
    rows = [(f"node {n.name}", _counted(len(n.properties)), _node_told(n)) for n in done.draft.nodes]
    rows += [(f"edge {e.name}", _counted(len(e.properties)), f"{e.src_type} -> {e.dst_type}") for e in done.draft.edges]
    widths = [max(len(row[k]) for row in rows) for k in range(2)] if rows else [0, 0]
    for what, count, told in rows:
        yield f"{what:<{widths[0]}}  {count:<{widths[1]}}  {told}".rstrip()
    yield "a draft: read its comments before you use it"


def _counted(number: int) -> str:
    return f"{number} {'property' if number == 1 else 'properties'}"


def _node_told(node: NodeDraft) -> str:
    key = next((p.name for p in node.properties if p.is_key), None)
    enums = [p.name for p in node.properties if p.type.startswith("enum(")]
    told = [f"key {key}" if key else "no key"]
    return ", ".join([*told, *([f"enum {' '.join(enums)}"] if enums else [])])


def _json(done: Inferred, sample: int | None) -> dict[str, Any]:
    told: dict[str, Any] = {"schema": done.schema_file, "pipeline": done.pipeline_file, "rows": done.rows}
    if sample is not None:
        told["sample"] = sample
    told["sources"] = [{"name": s.name, "format": s.format, "path": list(s.paths)} for s in done.draft.sources]
    told["nodes"] = [_type(node) for node in done.draft.nodes]
    told["edges"] = [{**_type(edge), "src": edge.src_type, "dst": edge.dst_type} for edge in done.draft.edges]
    return told


def _type(found: NodeDraft | EdgeDraft) -> dict[str, Any]:
    properties: Sequence[Any] = found.properties
    listed = [{"name": p.name, "type": p.type, "key": p.is_key} for p in properties]
    return {"name": found.name, "properties": listed, "comments": list(found.comments)}
