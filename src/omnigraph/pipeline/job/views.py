"""The names a pipeline's SQL may use: sources and transforms, as views of a Spark session of their own."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from omnigraph.pipeline.job.analysis import analysed
from omnigraph.pipeline.job.definition import NDJSON, Definition, Expression, Source
from omnigraph.pipeline.job.problems import Problems, nearest
from omnigraph.pipeline.job.sources import Sources

_WORD = re.compile(r"`?[A-Za-z_][A-Za-z0-9_]*`?")


@dataclass(frozen=True)
class Rows:
    """What a `from` or `on` names. `source` is set where the rows are a source's own."""

    frame: DataFrame
    name: str
    source: Source | None = None


class Views:
    """Builds every view once, in the order of the file; one that fails is told once and takes its users with it."""

    def __init__(self, spark: SparkSession, definition: Definition, sources: Sources, problems: Problems) -> None:
        # A session of its own keeps the names apart from other views of this process.
        self._spark = spark
        self._definition = definition
        self._sources = sources
        self._problems = problems
        self._frames: dict[str, Rows] = {}
        self._broken: set[str] = set()
        self._uses: dict[str, int] = {}
        self._kept: list[DataFrame] = []
        self._build()

    def _build(self) -> None:
        for source in self._definition.sources:
            if source.format == NDJSON:
                continue
            with analysed(self._problems, source.spot, f"reading source '{source.name}'"):
                frame = self._sources.frame(source)
                frame.createOrReplaceTempView(source.name)
                self._frames[source.name.lower()] = Rows(frame, source.name, source)
            if source.name.lower() not in self._frames:
                self._broken.add(source.name.lower())
        for transform in self._definition.transforms:
            name = transform.name.lower()
            made = self._query(transform.sql, Expression(transform.sql, transform.spot))
            if made is None:
                self._broken.add(name)
                continue
            made.createOrReplaceTempView(transform.name)
            self._frames[name] = Rows(made, transform.name)

    def find(self, wanted: Expression) -> Rows | None:
        """The rows that a view, a source or a query gives; None when they cannot be had, which was told."""
        if not _WORD.fullmatch(wanted.text):
            frame = self._query(wanted.text, wanted)
            return None if frame is None else Rows(frame, wanted.spot.path)
        name = wanted.text.strip("`")
        if name.lower() in self._broken:
            return None
        if name.lower() in self._frames:
            self._uses[name.lower()] = self._uses.get(name.lower(), 0) + 1
            return self._frames[name.lower()]
        ndjson = [s.name for s in self._definition.sources if s.format == NDJSON]
        if name in ndjson:
            told = f"source '{name}' is ndjson, which is loaded as it is; read it as json to map its rows"
        else:
            told = f"unknown view '{name}'{nearest(name, self.names)}"
        self._problems.add(wanted.spot, "unknown_view", told)
        return None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(rows.name for rows in self._frames.values())

    def _query(self, sql: str, at: Expression) -> DataFrame | None:
        words = {word.lower() for word in re.findall(r"[A-Za-z_][A-Za-z0-9_]*", sql)}
        found: DataFrame | None = None
        before = len(self._problems)
        if words & self._broken:
            # Whatever Spark says now follows from a fault that was told.
            return None
        with analysed(self._problems, at.spot, f"analysing {at.spot.path}", self.names):
            found = self._spark.sql(sql)
            _ = found.schema
        if found is None or len(self._problems) > before:
            return None
        if not found.columns:
            self._problems.add(at.spot, "bad_sql", "is no query; it must be a select")
            return None
        for name in words & self._frames.keys():
            self._uses[name] = self._uses.get(name, 0) + 1
        return found

    def keep_shared(self) -> None:
        """Compute a transform that several others read once only, so that all of them see the same rows."""
        for name, times in self._uses.items():
            if times > 1 and self._frames[name].source is None:
                self._kept.append(self._frames[name].frame.persist())

    def release(self) -> None:
        for frame in self._kept:
            frame.unpersist()
        for rows in self._frames.values():
            self._spark.catalog.dropTempView(rows.name)
