"""`infer`: read files, find keys and references, write a draft. The only part that touches the disk."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from omnigraph.base.errors import BadRequest, SourceError
from omnigraph.catalog.build import compile_source
from omnigraph.pipeline.infer import names
from omnigraph.pipeline.infer.csv_table import CsvTable
from omnigraph.pipeline.infer.draft import Draft, SourceDraft, Taken, make_draft
from omnigraph.pipeline.infer.inputs import Input, find_inputs
from omnigraph.pipeline.infer.json_lines import holds_own_records
from omnigraph.pipeline.infer.json_table import JsonTable
from omnigraph.pipeline.infer.keys import Read, find_references, with_key
from omnigraph.pipeline.infer.own import OwnType, draft_types, read_types
from omnigraph.pipeline.infer.parquet_table import ParquetTable
from omnigraph.pipeline.infer.profile import ColumnProfile, TableProfile
from omnigraph.pipeline.infer.sampling import sampled
from omnigraph.pipeline.infer.writing import pipeline_text, schema_text
from omnigraph.sets.scratch import Scratch
from omnigraph.settings import Settings

Progress = Callable[[str, int], None]
Table = CsvTable | ParquetTable | JsonTable
SCHEMA_FILE, PIPELINE_FILE = "schema.pg", "pipeline.yaml"
GRAPH = "graph"


@dataclass(frozen=True)
class Inferred:
    """The draft and the files it was written to."""

    draft: Draft
    schema: str
    pipeline: str
    schema_file: str
    pipeline_file: str
    rows: int


def infer(
    files: Sequence[str],
    *,
    out: str = ".",
    sample: int | None = None,
    settings: Settings | None = None,
    progress: Progress | None = None,
) -> Inferred:
    """Write `schema.pg` and `pipeline.yaml` into `out`; an existing file stays as it is and is refused."""
    targets = [os.path.join(out, name) for name in (SCHEMA_FILE, PIPELINE_FILE)]
    _refuse_existing(targets)
    counted = _Counter(progress)
    with Scratch(settings or Settings()) as scratch:
        draft = _drafted(find_inputs(files), out, sample, scratch, counted)
    schema, pipeline = schema_text(draft, sample), pipeline_text(draft, GRAPH)
    _check(schema)
    _write(out, targets, (schema, pipeline))
    return Inferred(draft, schema, pipeline, targets[0], targets[1], counted.rows)


def _check(schema: str) -> None:
    """Records of our own form name their types and properties themselves, and may do it in vain."""
    try:
        compile_source(schema, SCHEMA_FILE)
    except SourceError as error:
        told = f"no schema can be made of these files: {error.text}"
        raise BadRequest(told, "Names of types and properties are those of the records; change them there.") from error


class _Counter:
    def __init__(self, progress: Progress | None) -> None:
        self.rows = 0
        self._progress = progress

    def take(self, batches: Iterator[int]) -> int:
        before = self.rows
        for rows in batches:
            self.rows += rows
            self.stage("read")
        return self.rows - before

    def stage(self, name: str) -> None:
        if self._progress is not None:
            self._progress(name, self.rows)


def _drafted(inputs: Sequence[Input], out: str, sample: int | None, scratch: Scratch, counter: _Counter) -> Draft:
    taken = Taken()
    reads: list[Read] = []
    own: dict[tuple[str, str], OwnType] = {}
    sources: list[SourceDraft] = []
    for given in inputs:
        if given.format == "json" and holds_own_records(given.files):
            counter.take(read_types(given, sample, own))
            name = names.unique(names.source_name(given.title), taken.sources)
            sources.append(SourceDraft(name, "ndjson", (given.place(out),)))
        else:
            reads.append(_profiled(given, out, sample, counter))
    counter.stage("check")
    nodes, edges = draft_types(list(own.values()), scratch)
    taken.nodes |= {node.name.lower() for node in nodes}
    taken.edges |= {edge.name.lower() for edge in edges}
    keyed = [with_key(read, scratch) for read in reads]
    found = make_draft([read.profile for read in keyed], find_references(keyed, scratch), taken)
    return Draft((*sources, *found.sources), (*nodes, *found.nodes), (*edges, *found.edges))


def _profiled(given: Input, out: str, sample: int | None, counter: _Counter) -> Read:
    table = _opened(given)
    rows = counter.take(table.profile(sampled(table.batches(), sample)))
    if not rows:
        raise BadRequest(f"'{given.given}' has no rows", "There is nothing to infer types from; give files with rows.")
    profile = TableProfile(
        given.title, given.format, given.patterns(out), table.options(), rows, table.columns(), notes=table.notes()
    )

    def values(column: ColumnProfile) -> Iterator[pa.Array]:
        batches: Iterator[Any] = sampled(table.batches([column.name]), sample)
        return (table.id_texts(column, batch) for batch in batches)

    return Read(profile, values)


def _opened(given: Input) -> Table:
    match given.format:
        case "csv":
            return CsvTable(given)
        case "parquet":
            return ParquetTable(given)
        case _:
            return JsonTable(given)


def _refuse_existing(targets: Sequence[str]) -> None:
    for path in targets:
        if os.path.lexists(path):
            raise BadRequest(f"'{path}' exists and is never overwritten", "Move it away, or name a folder with --out.")


def _write(out: str, targets: Sequence[str], texts: Sequence[str]) -> None:
    """Both files or none."""
    written: list[str] = []
    try:
        os.makedirs(out, exist_ok=True)
        for path, text in zip(targets, texts, strict=True):
            with open(path, "x", encoding="utf-8", newline="\n") as opened:
                written.append(path)
                opened.write(text)
    except OSError as error:
        for path in written:
            os.remove(path)
        if isinstance(error, FileExistsError):
            _refuse_existing(targets)
        raise BadRequest(
            f"'{out}' cannot be written to: {error.strerror}", "Name another folder with --out."
        ) from error
