"""Which table versions a copy has, and which files those need.

Holds:
  1. Of main: every version that a commit shows and that is still there. What was reclaimed stays reclaimed.
  2. Of a branch's own tables: what its head shows, where it started, where a merge met it, and what is tagged.
  3. Of forks that are needed, only the versions that are needed; their files lie where they lay, below another root.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from omnigraph.commit.context import CommitContext
from omnigraph.engine.clone.cut import Cut, published
from omnigraph.engine.upkeep.keep import Limits, kept_commits, pinned_by
from omnigraph.manifest import layout
from omnigraph.manifest.store import BranchState
from omnigraph.storage.files import owner_of, unit_of, versions_of
from omnigraph.storage.objects import FoundFile, Missing
from omnigraph.storage.refs import references
from omnigraph.storage.relocated import units_at

Wanted = dict[str, dict[str | None, set[int]]]
"""Version numbers by location and fork; the fork None is main."""


@dataclass(frozen=True)
class TableCopy:
    """One table: `files` are copied as they are, versions of `forks` are written for their new place."""

    location: str
    files: tuple[FoundFile, ...]
    main: tuple[int, ...] = ()
    forks: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


def wanted_versions(ctx: CommitContext, main: BranchState, branches: Iterable[BranchState], cut: Cut) -> Wanted:
    """The versions of data tables that the copy must have as far as they are there."""
    states = [main, *branches]
    met = {c.merged_parent_commit_id for state in states for c in state.commits() if c.merged_parent_commit_id}
    named = met | {tag.graph_commit_id for tag in cut.tags}
    wanted: Wanted = {}
    for _, location, fork, version in published(ctx, main):
        wanted.setdefault(location, {}).setdefault(fork, set()).add(version)
    for state in states[1:]:
        rows = ctx.manifest.rows(state)
        kept = kept_commits(state.commits(), state.branch, Limits(None, None), 0, named)
        for location, fork, version in pinned_by(rows, kept):
            wanted.setdefault(location, {}).setdefault(fork, set()).add(version)
    return wanted


def table_copy(ctx: CommitContext, location: str, wanted: Mapping[str | None, Collection[int]]) -> TableCopy | None:
    """What has to be copied of a table of the source; None when nothing of it is there."""
    present: dict[str | None, dict[int, FoundFile]] = {}
    for fork, versions in wanted.items():
        there = versions_of(ctx.ref(location, fork))
        present[fork] = {version: there[version] for version in sorted(versions) if version in there}
    needed: set[str] = set()
    for fork, files in present.items():
        if files:
            needed |= units_at(ctx.ref(location, fork), files)
    if not any(present.values()):
        return None
    every = set(references(ctx.ref(location, None)))
    found = _needed_files(ctx, location, needed, every)
    main = present.get(None, {})
    forks = {fork: tuple(files) for fork, files in present.items() if fork is not None and files}
    # The version of main's manifest makes the copy a graph, so it comes by itself and last.
    return TableCopy(location, (*found, *(main.values() if location != layout.MANIFEST else ())), tuple(main), forks)


def _needed_files(ctx: CommitContext, location: str, needed: set[str], forks: set[str]) -> list[FoundFile]:
    """The files of these units; one that no file is found of is missing."""
    found: list[FoundFile] = []
    seen: set[str] = set()
    for file in ctx.objects.walk(location):
        owner, below = owner_of(file.key.removeprefix(f"{location}/"), forks)
        unit = unit_of(below)
        if unit is None or unit not in needed:
            continue
        seen.add(unit)
        # What a fork records of its own transactions names places; nobody reads it.
        if owner is None or not below.startswith("_transactions/"):
            found.append(file)
    lost = sorted(unit for unit in needed - seen if not unit.startswith("_transactions/"))
    if lost:
        raise Missing(f"{location}/{lost[0]} is missing in '{ctx.root.uri}'")
    return found


def missing_pins(states: Iterable[BranchState], copies: Mapping[str, TableCopy]) -> Iterator[tuple[str, str, int]]:
    """Tables that a branch shows and the copy would not have: branch, table key, version."""
    for state in states:
        for key, entry in state.entries.items():
            copy = copies.get(entry.location)
            fork = entry.table_branch
            versions = () if copy is None else copy.main if fork is None else copy.forks.get(fork, ())
            if entry.table_version not in versions:
                yield state.branch or "main", key, entry.table_version
