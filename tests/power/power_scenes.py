"""Whose power is cut: every kind of write, the making of a graph, housekeeping, and recovery after another death."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from crash_world import COLUMNS, EFFECTS, SCHEMA, TABLES
from power_trace import Event, Kind

ONE, TWO = TABLES[-1:], TABLES[1:]
ANSWERS = ("acknowledged", "refused")


@dataclass(frozen=True)
class Place:
    """A moment of a recording: the `nth` passing of a mark, or just before the `syncs`-th sync after it."""

    mark: str
    nth: int = 0
    syncs: int = 0

    def find(self, events: Sequence[Event]) -> int:
        marks = [i for i, e in enumerate(events) if e.kind is Kind.MARK and e.path == self.mark]
        at = marks[self.nth]
        for _ in range(self.syncs):
            at = next(i for i, e in enumerate(events) if i > at and e.kind is Kind.SYNC_BEGINS)
        return at


@dataclass(frozen=True)
class Scene:
    """One order to a child, the graph it finds, and, for a recovery, which write died where before.

    `windows`: the writer whose failpoints it passes. `meant`: the scene that shows what the write would have become.
    """

    name: str
    start: str
    order: dict[str, Any]
    died: tuple[str, Place] | None = None
    windows: str = ""
    meant: str = ""
    graph: str = "g"


def _write(effect: str, tables: Sequence[str], start: str = "grown", name: str = "", **more: Any) -> Scene:
    order = {"does": "write", "writes": [[effect, list(tables)]], **more}
    return Scene(name or f"{effect}_{len(tables)}t", start, order, windows=EFFECTS[effect].writer.name)


def _recovery(name: str, first: str, place: Place) -> Scene:
    return Scene(name, "grown", {"does": "open"}, (first, place), "recovery", meant=first)


_ARMED, _MID = "load.post_phase_a_pre_phase_b", "load.mid_phase_b"
_APPLIED, _PUBLISHED = "load.post_phase_b_pre_manifest_commit", "load.post_manifest_commit_pre_phase_d"
_ON_ONE = (
    "append",
    "delete_by_predicate",
    "overwrite_to_empty",
    "text_index",
    "vector_index",
    "revert",
    "schema_catch_up",
    "schema_apply",
)
_MORE = COLUMNS.replace("{ ", "{ joined: Date?  rank: I64 @default(7)  ", 1)
_APPLY = {"does": "apply", "source": SCHEMA.replace(COLUMNS, _MORE, 2)}
_ROWS = [["rows", list(TWO)]]
SCENES = (
    Scene("init", "nothing", {"does": "init"}),
    Scene("init_in_new_folders", "nothing", {"does": "init"}, graph="a/b/g"),
    _write("append", ONE, "fresh", "first_write"),
    _write("overwrite", TWO, "fresh", "first_load"),
    _write("delete_by_id", ONE, "rows", "first_delete"),
    *(_write(effect, ONE if effect in _ON_ONE else TWO) for effect in EFFECTS),
    Scene("apply", "grown", _APPLY, windows="schema_apply"),
    Scene("optimize", "grown", {"does": "optimize"}, windows="optimize"),
    Scene("two_writes", "fresh", {"does": "write", "writes": [*_ROWS, *_ROWS]}, windows="load"),
    Scene(
        "manifest_compaction",
        "grown",
        {"does": "write", "writes": [*_ROWS, *_ROWS], "settings": {"manifest_compact_fragments": 2}},
        windows="load",
    ),
    Scene(
        "projections",
        "grown",
        {"does": "write", "writes": [*_ROWS, *_ROWS], "settings": {"projections_max_lag": 1}},
        windows="load",
    ),
    Scene(
        "undo",
        "grown",
        {"does": "write", "writes": [["upsert", list(TWO)]], "fail_at": _APPLIED},
        windows="recovery",
        meant="upsert_2t",
    ),
    _recovery("back_from_armed", "upsert_2t", Place(_ARMED)),
    _recovery("back_from_half_landed", "upsert_2t", Place(_MID)),
    _recovery("back_from_half_landed_unsynced", "upsert_2t", Place(_ARMED, syncs=1)),
    _recovery("forward_from_landed", "upsert_2t", Place(_APPLIED)),
    _recovery("forward_from_landed_unsynced", "upsert_2t", Place(_MID, syncs=1)),
    _recovery("settled_from_published", "upsert_2t", Place(_PUBLISHED)),
    _recovery("settled_from_published_unsynced", "upsert_2t", Place(_APPLIED, syncs=3)),
    Scene(
        "forward_from_applied",
        "grown",
        {"does": "open"},
        ("apply", Place("schema_apply.post_phase_b_pre_manifest_commit")),
        "recovery",
        meant="apply",
    ),
    _recovery("forward_from_compacted_unsynced", "compaction_2t", Place("optimize.mid_phase_b", syncs=1)),
)
