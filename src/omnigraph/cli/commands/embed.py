"""`omnigraph embed`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.command import Run, command
from omnigraph.cli.failures import UsageMistake
from omnigraph.cli.formats import JSON
from omnigraph.cli.job_progress import JobProgress, engine_progress
from omnigraph.cli.output import one_line, put_json, put_line
from omnigraph.cli.spark_options import ConfOption, Engine, MasterOption, take_spark_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from omnigraph.embeddings import EmbedSummary
    from omnigraph.embeddings.embedder import Embeds
    from omnigraph.settings import Settings

_EXAMPLES = (
    "omnigraph embed --input docs.jsonl --output docs-embedded.jsonl --spec embed.yaml",
    "omnigraph embed --input docs.jsonl --output docs-embedded.jsonl --spec embed.yaml --select Doc:slug=intro",
    "omnigraph embed --seed seed.yaml --type Doc --reembed-all",
    "omnigraph embed --seed seed.yaml --engine spark --master 'local[8]'",
)


def add_to(app: typer.Typer) -> None:
    command(app, "embed", examples=_EXAMPLES, needs_graph=False, needs_settings=True)(_embed)


def _embed(
    run: Run,
    input: Annotated[
        str | None, typer.Option("--input", metavar="FILE", help="NDJSON records, plain, .gz or .zst.")
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", metavar="FILE", help="Where the records go with their vectors.")
    ] = None,
    spec: Annotated[
        str | None, typer.Option("--spec", metavar="FILE", help="Which fields of which types become which vectors.")
    ] = None,
    seed: Annotated[
        str | None, typer.Option("--seed", metavar="FILE", help="A manifest that names all three instead.")
    ] = None,
    type: Annotated[
        list[str] | None, typer.Option("--type", metavar="T", help="Only this type; may be repeated.")
    ] = None,
    select: Annotated[
        list[str] | None,
        typer.Option("--select", metavar="[T:]FIELD=VALUE", help="Embed these rows again; may be repeated."),
    ] = None,
    reembed_all: Annotated[bool, typer.Option("--reembed-all", help="Embed all rows again.")] = False,
    clean: Annotated[bool, typer.Option("--clean", help="Remove the vectors instead.")] = False,
    engine: Annotated[
        Engine, typer.Option("--engine", help="One request at a time, or Spark; auto takes Spark with a master.")
    ] = Engine.auto,
    master: MasterOption = None,
    spark_conf: ConfOption = None,
) -> None:
    """Add vectors to a file of records, before it is loaded."""
    if reembed_all and (clean or select):
        other = "--clean" if clean else "--select"
        raise UsageMistake(f"--reembed-all and {other} cannot be given together", "Leave one of them out.")
    take_spark_options(run, master, spark_conf)
    settings = run.settings
    from omnigraph.embeddings import EmbedSpec, embed_file
    from omnigraph.embeddings.spec import Seed

    if seed is not None:
        if input or output or spec:
            raise UsageMistake("--seed names input, output and spec itself", "Give either --seed or the other three.")
        told = Seed.read(seed)
    elif input and output and spec:
        told = Seed(input, output, EmbedSpec.read(spec))
    else:
        raise UsageMistake("--input, --output and --spec belong together", "Give all three, or --seed.")
    chosen = _engine(engine, settings)
    with engine_progress(chosen, run.told.quiet) as shown:
        done = embed_file(
            told.input,
            told.output,
            told.spec,
            types=type or (),
            select=select or (),
            reembed_all=reembed_all,
            clean=clean,
            settings=settings,
            progress=shown.stage,
            embeds=_embeds(chosen, shown),
        )
    if run.format == JSON:
        put_json(done.to_json())
    else:
        put_line(one_line(_line(done)))


def _engine(asked: Engine, settings: Settings) -> Engine:
    is_configured = settings.spark_master is not None or settings.spark_remote is not None
    if asked is Engine.auto:
        return Engine.spark if is_configured else Engine.embedded
    return asked


def _embeds(engine: Engine, shown: JobProgress) -> Callable[[Settings, str | None], Embeds]:
    if engine is Engine.spark:
        from omnigraph.pipeline.embed import on_spark

        return on_spark(tell_tasks=shown.tasks)
    from omnigraph.embeddings import Embedder

    return Embedder


def _line(done: EmbedSummary) -> str:
    if done.mode == "clean":
        return f"cleaned {done.input} into {done.output}: {done.cleaned_records} of {done.records} records"
    counted = f"{done.embedded_records} of {done.records} records"
    return f"embedded {done.input} into {done.output}: {counted}, {done.dimension} dimensions by model {done.model}"
