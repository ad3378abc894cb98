"""What of a graph is left over, decided from what was read. Pure: nothing here reads or removes anything.

Holds:
  1. What a live branch records, a living load may have staged, or a version refers to is never named.
  2. Whatever a reader could not make sense of counts as needed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from omnigraph.base.ids import is_ulid
from omnigraph.commit.staging import Heartbeat
from omnigraph.manifest import layout
from omnigraph.storage.files import owner_of, unit_of
from omnigraph.storage.objects import FoundFile
from omnigraph.storage.refs import BranchRef

# A listing tells times in whole seconds on some stores, and a kernel's own clock may lag a little.
CLOCK_SLACK_US = 2_000_000
_LEGACY_RUNS = re.compile(r"_graph_run(s|_actors)[^/]*\.lance")
_TABLE = re.compile(r"(nodes|edges)/[^/]+")
_TREE_VERSION = re.compile(r"tree/(?P<name>.+)/_versions/[^/]+\.manifest")


class What(Enum):
    """The kinds of leftovers, in the words of the result."""

    FORK = "fork"
    STALE_FORK = "stale fork"
    FORK_FILES = "files of a deleted fork"
    COMMIT_BRANCH = "commit-graph branch"
    TABLE = "unregistered table"
    LEGACY = "legacy table"
    HEARTBEAT = "dead heartbeat"
    STAGING = "staging folder"
    STAGED = "staged files"
    TEMPORARY = "temporary file"
    LOCK = "lock"


@dataclass(frozen=True)
class ForkUse:
    """What the live branches say about forks: which they record, and who reads them."""

    live: frozenset[str]
    readers: Mapping[tuple[str, str], str]
    """One live branch that records `(location, fork)`."""

    def reader_of(self, location: str, name: str) -> str | None:
        return self.readers.get((location, name))


@dataclass(frozen=True)
class Orphan:
    """A fork nobody may need. `kept`: why it must stay all the same."""

    name: str
    is_live: bool
    kept: str | None = None


def orphan_forks(location: str, refs: Mapping[str, BranchRef], use: ForkUse) -> list[Orphan]:
    """Forks of names the manifest does not have, and those a live branch does not record; children before parents.

    Whether one of a live branch may still be used by it is not known here.
    """
    orphans = []
    for name in sorted(refs, key=lambda n: (-_depth(n, refs), n)):
        reader = use.reader_of(location, name)
        if name in use.live:
            if reader is None:
                orphans.append(Orphan(name, is_live=True))
        else:
            kept = f"branch '{reader}' still reads it" if reader is not None else None
            orphans.append(Orphan(name, is_live=False, kept=kept))
    return orphans


def _depth(name: str, refs: Mapping[str, BranchRef]) -> int:
    """How many forks lie between a fork and main."""
    seen: set[str] = set()
    current: str | None = name
    while current is not None and current in refs and current not in seen:
        seen.add(current)
        current = refs[current].parent_branch
    return len(seen)


def trees_without_reference(paths: Iterable[str], refs: Collection[str], live: Collection[str]) -> list[str]:
    """Names of deleted forks whose versions still lie below a table's folder.

    A live branch of that name clears the place itself before it forks.
    """
    found = set()
    for path in paths:
        matched = _TREE_VERSION.fullmatch(path)
        if matched is not None and owner_of(path, refs)[0] is None and matched["name"] not in live:
            found.add(matched["name"])
    return sorted(found)


def unregistered_tables(places: Iterable[str], registered: Collection[str]) -> list[str]:
    """Table folders that no live branch ever registered; never a folder of tables."""
    return sorted(place for place in places if _TABLE.fullmatch(place) and place not in registered)


def staging_folders(places: Iterable[str], heartbeats: Iterable[Heartbeat]) -> list[str]:
    """Folders of loads that have no heartbeat."""
    known = {heartbeat.folder for heartbeat in heartbeats}
    return sorted(p for p in places if p not in known and is_ulid(p.removeprefix(f"{layout.STAGING_DIR}/")))


def legacy_tables(names: Iterable[str]) -> list[str]:
    return sorted(name for name in names if _LEGACY_RUNS.fullmatch(name))


def dead_heartbeats(heartbeats: Iterable[Heartbeat], at_us: int, limit_us: int) -> list[Heartbeat]:
    """Loads that gave no sign of life for a lifetime; one that cannot be read is dead when it is old enough."""
    return [h for h in heartbeats if (not h.is_alive(at_us) if h.readable else h.renewed_us < limit_us)]


def staged_before(at_us: int, grace_us: int, living: Iterable[Heartbeat]) -> int:
    """The time before which an unreferenced file was written by nobody who still needs it.

    `at_us` was read before the heartbeats: a load that starts later writes later files.
    """
    return min([at_us - grace_us, *(h.started_us for h in living)]) - CLOCK_SLACK_US


@dataclass(frozen=True)
class StagedFile:
    """A file that lies in the folder of a branch (None: main) and stands or falls with its unit."""

    branch: str | None
    unit: str
    file: FoundFile


def staged_leftovers(
    files: Iterable[FoundFile], location: str, branches: Collection[str], needed: Collection[str], limit_us: int
) -> Iterator[StagedFile]:
    """Files of a table that no version refers to and nobody is staging."""
    for file in files:
        if file.modified_us >= limit_us:
            continue
        branch, below = owner_of(file.key.removeprefix(f"{location}/"), branches)
        unit = unit_of(_after_lost_tree(below))
        if unit is not None and unit not in needed:
            yield StagedFile(branch, unit, file)


def _after_lost_tree(path: str) -> str:
    """A path below the folder of a fork that has no reference, from Lance's own folder on."""
    if not path.startswith("tree/"):
        return path
    parts = path.split("/")
    starts = [i for i in range(1, len(parts) - 1) if unit_of("/".join(parts[i:])) is not None]
    # The last one: a branch may be called like one of the folders, a file never is.
    return "/".join(parts[starts[-1] :]) if starts else path
