"""Where a merge is worked on: in this process, or by executors; what it gives is the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol

from omnigraph.commit.context import CommitContext
from omnigraph.commit.staging import StagingBeat
from omnigraph.engine.merge.combine import Combination, may_bring
from omnigraph.engine.merge.history import Entries
from omnigraph.engine.merge.resolve import Resolver
from omnigraph.engine.view import View, open_entry
from omnigraph.engine.write.bench import Bench, EmbeddedBench
from omnigraph.engine.write.engines import Engine, check_engine
from omnigraph.engine.write.intake import Progress
from omnigraph.manifest.snapshot import SubTableEntry
from omnigraph.sets.scratch import Scratch
from omnigraph.storage.delta_parts import delta_parts
from omnigraph.storage.tables import Table


@dataclass(frozen=True)
class Sides:
    """The three states of a merge: what `view` shows is the target."""

    ctx: CommitContext
    view: View
    base: Entries
    source: Entries
    dry_run: bool = False
    actor: str | None = None


class Room(Protocol):
    """`beat`: the sign of life of the merge, if it needs one before it is committed."""

    bench: Bench
    beat: StagingBeat | None

    def combination(self, resolver: Resolver, progress: Progress, listed_max: int, explains: int) -> Combination: ...


OpenRoom = Callable[[Sides], AbstractContextManager[Room]]


class EmbeddedRoom:
    beat: StagingBeat | None = None

    def __init__(self, sides: Sides, scratch: Scratch) -> None:
        self._sides = sides
        self.bench: Bench = EmbeddedBench(scratch)

    def combination(self, resolver: Resolver, progress: Progress, listed_max: int, explains: int) -> Combination:
        sides, scratch = self._sides, self.bench.scratch
        return Combination(sides.view, sides.base, sides.source, resolver, scratch, progress, listed_max, explains)


@contextmanager
def embedded_room(sides: Sides) -> Iterator[Room]:
    with Scratch(sides.ctx.settings) as scratch:
        yield EmbeddedRoom(sides, scratch)


def choose_merge_engine(engine: str, sides: Sides) -> Engine:
    """The engine asked for; `auto` takes Spark where a master is configured and where very many rows differ."""
    chosen, settings = check_engine(engine), sides.ctx.settings
    if chosen != "auto":
        return chosen
    if settings.spark_master is not None or settings.spark_remote is not None:
        return "spark"
    return "spark" if _has_rows(sides, settings.merge_auto_spark_rows) else "embedded"


def _has_rows(sides: Sides, enough: int) -> bool:
    """Whether so many rows have to be compared, by metadata; tables that are small altogether are not opened."""
    brought = {
        key: e for key, e in sides.source.items() if may_bring(sides.base.get(key), e, sides.view.entries.get(key))
    }
    stored = [entries.get(key) for key in brought for entries in (sides.base, sides.source, sides.view.entries)]
    if sum(entry.row_count for entry in stored if entry is not None) < enough:
        return False
    rows = 0
    for key, source in brought.items():
        type_ = sides.view.catalog.find_table(key)
        if type_ is not None:
            before = _open(sides, key, sides.base.get(key))
            for entry in (source, sides.view.entries.get(key)):
                rows += delta_parts(before, _open(sides, key, entry), type_.arrow_schema.names).row_count
    return rows >= enough


def _open(sides: Sides, key: str, entry: SubTableEntry | None) -> Table | None:
    return None if entry is None else open_entry(sides.view.root, sides.view.catalog, key, entry)
