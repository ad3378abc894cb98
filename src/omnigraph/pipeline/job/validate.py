"""Everything about a pipeline that can be known without writing: the schema, the views, the columns, the rules.

Holds at every return: each mapping and rule was resolved by Spark's own analysis against the schema of the branch it
will be loaded to. Every problem found on the way was told in one error.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import SparkSession

from omnigraph.base.errors import NotFound
from omnigraph.catalog.catalog import Catalog
from omnigraph.engine.write.load import Mode
from omnigraph.graph import Graph, s3_access
from omnigraph.pipeline.failures import unless_gone
from omnigraph.pipeline.job.definition import NDJSON, Definition, LoadSection, Target
from omnigraph.pipeline.job.mapping import CheckedMapping, check_mapping
from omnigraph.pipeline.job.problems import Problems
from omnigraph.pipeline.job.quality import CheckedRule, check_rule
from omnigraph.pipeline.job.sources import Sources, expanded
from omnigraph.pipeline.job.views import Views
from omnigraph.pipeline.progress import is_connect


@dataclass(frozen=True)
class Overrides:
    """What the command line says; each member wins over the file."""

    branch: str | None = None
    base: str | None = None
    mode: Mode | None = None
    message: str | None = None
    report: str | None = None

    def over(self, definition: Definition) -> Definition:
        target, load = definition.target, definition.load
        given = replace(
            target,
            branch=self.branch or target.branch,
            base=self.base or target.base,
            mode=self.mode or target.mode,
        )
        return replace(definition, target=given, load=replace(load, message=self.message or load.message))


@dataclass(frozen=True)
class Prepared:
    """A pipeline that fits its graph, ready to run. `release` frees what Spark keeps for it."""

    definition: Definition
    mode: Mode
    branch: str
    sources: Sources
    views: Views
    mappings: tuple[CheckedMapping, ...]
    rules: tuple[CheckedRule, ...]
    ndjson: tuple[str, ...]
    home: SparkSession

    def to_json(self, uri: str) -> dict[str, Any]:
        target = self.definition.target
        told: dict[str, Any] = {"valid": True, "file": self.definition.file, "uri": uri, "branch": self.branch}
        told |= {"base_branch": target.base, "mode": self.mode, "merge_into": target.merge_into}
        told["sources"] = [{"name": s.name, "format": s.format} for s in self.definition.sources]
        told["views"] = [transform.name for transform in self.definition.transforms]
        for kind in ("node", "edge"):
            told[f"{kind}s"] = [
                {"type": checked.table.name, "from": checked.rows.name, "properties": [n for n, _ in m.columns]}
                for checked in self.mappings
                if (m := checked.mapping).kind == kind
            ]
        told["quality"] = [{"name": rule.rule.name, "severity": rule.rule.severity} for rule in self.rules]
        return {name: value for name, value in told.items() if value is not None}

    def release(self) -> None:
        _leave(self.views, self.home)


def prepare(definition: Definition, graph: Graph, spark: SparkSession) -> Prepared:
    """Resolve everything; raises PipelineInvalid with all that is wrong."""
    problems = Problems(definition.file)
    branch = definition.target.branch or graph.settings.cli_branch
    if definition.target.mode is None:
        told = "'mode' is missing: append, merge or overwrite"
        problems.add(definition.target.spot.member("mode"), "missing_key", told)
    catalog = _catalog(graph, branch, definition.target, problems)
    _check_merge(graph, branch, definition.target, problems)
    _check_rejects(definition, problems)
    # A session of its own keeps the pipeline's view names apart from those of others.
    own = spark if is_connect(spark) else spark.newSession()
    access = s3_access(graph.settings)
    sources = Sources(own, definition, access)
    views = Views(own, definition, sources, problems)
    mappings = [check_mapping(m, catalog, views, problems) for m in definition.mappings] if catalog is not None else []
    rules = [check_rule(rule, views, problems) for rule in definition.rules]
    ndjson: list[str] = []
    for source in definition.sources:
        if source.format == NDJSON:
            ndjson += _ndjson_files(definition, source.name, problems, access)
    try:
        problems.refuse()
    except BaseException:
        _leave(views, spark)
        raise
    assert definition.target.mode is not None
    return Prepared(
        definition,
        definition.target.mode,
        branch,
        sources,
        views,
        tuple(mapping for mapping in mappings if mapping is not None),
        tuple(rule for rule in rules if rule is not None),
        tuple(ndjson),
        spark,
    )


def _check_merge(graph: Graph, branch: str, target: Target, problems: Problems) -> None:
    into, spot = target.merge_into, target.spot.member("merge_into")
    if into is None:
        return
    if into == branch:
        problems.add(spot, "wrong_value", f"'{into}' is the branch that is loaded; merge it into another one")
    elif into not in graph.branch_list():
        problems.add(spot, "not_found", f"branch '{into}' does not exist")


def _leave(views: Views, home: SparkSession) -> None:
    """Drop the pipeline's views and make the caller's session the active one again."""
    with unless_gone():
        views.release()
        if not is_connect(home):
            # Making a frame is the public way to do that; the pipeline's own session became active by it.
            home.createDataFrame([], "nothing int")


def _catalog(graph: Graph, branch: str, target: Target, problems: Problems) -> Catalog | None:
    """The schema of the branch, or of the one it will be made from."""
    branches = graph.branch_list()
    if branch in branches:
        return graph.schema(branch).catalog
    if target.base is None:
        told = f"branch '{branch}' does not exist; say where it starts: from: main"
        problems.add(target.spot.member("branch"), "not_found", told)
        return graph.schema().catalog
    if target.base not in branches:
        problems.add(target.spot.member("from"), "not_found", f"branch '{target.base}' does not exist")
        return graph.schema().catalog
    return graph.schema(target.base).catalog


def _check_rejects(definition: Definition, problems: Problems) -> None:
    path = rejects_path(definition)
    if path is not None and os.path.exists(path):
        told = f"rejects file '{path}' exists; move it away or name another"
        problems.add(definition.load.spot.member("rejects"), "exists", told)


def rejects_path(definition: Definition) -> str | None:
    """Where rows that are left out go; beside the pipeline file unless it says otherwise."""
    load: LoadSection = definition.load
    if load.on_error != "quarantine":
        return None
    return definition.beside(load.rejects) if load.rejects else f"{definition.file}.rejects.jsonl"


def _ndjson_files(definition: Definition, name: str, problems: Problems, access: Any) -> Sequence[str]:
    source = next(each for each in definition.sources if each.name == name)
    try:
        found = expanded(definition, source, access)
    except NotFound as error:
        problems.add(source.spot, "not_found", error.describe())
        return []
    absent = [path for path in found if "://" not in path and not os.path.exists(path)]
    if absent or not found:
        problems.add(source.spot, "not_found", f"no file at {absent[0] if absent else ', '.join(source.paths)}")
        return []
    return found
