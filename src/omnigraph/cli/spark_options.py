"""What commands that may run on Spark share: which engine, which master, which of Spark's own settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Annotated

import typer

from omnigraph.cli.command import Run
from omnigraph.cli.failures import UsageMistake


class Engine(StrEnum):
    auto = "auto"
    embedded = "embedded"
    spark = "spark"


ReadEngineOption = Annotated[
    Engine, typer.Option("--engine", help="One process, or Spark; auto takes Spark for what memory does not hold.")
]
MasterOption = Annotated[
    str | None, typer.Option("--master", metavar="URL", help="Spark: local[N], spark://…, sc://….")
]
ConfOption = Annotated[list[str] | None, typer.Option("--spark-conf", metavar="K=V", help="A Spark setting. Repeats.")]


def take_spark_options(run: Run, master: str | None, given: Sequence[str] | None) -> None:
    """Let what the line says win over the settings."""
    conf = dict(run.settings.spark_conf)
    for pair in given or ():
        name, is_pair, value = pair.partition("=")
        if not is_pair or not name:
            raise UsageMistake(f"--spark-conf '{pair}' is not K=V", "For example spark.driver.memory=4g.")
        conf[name.strip()] = value.strip()
    run.settings = replace(run.settings, spark_conf=conf)
    if master is not None:
        run.settings = replace(run.settings, spark_master=master, spark_remote=None)
