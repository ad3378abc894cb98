"""The manifest: every branch opens, its rows tell one story, its newest version is whole."""

from __future__ import annotations

from collections import Counter

from omnigraph.base.errors import GraphMoved, NotFound, OmniError
from omnigraph.engine.verify.findings import Damage
from omnigraph.engine.verify.inspection import UNREADABLE, Inspection
from omnigraph.manifest import layout
from omnigraph.manifest.store import BranchState, NewerGraph
from omnigraph.storage.inventory import recorded_files
from omnigraph.storage.refs import branch_files, read_branch
from omnigraph.storage.tables import torn_versions

MANIFEST_KEY = "__manifest"
_UPGRADE = "look again with a newer omnigraph; the graph may be whole"
# What decoding rows of any content may raise besides our own errors.
_GARBLED = (ValueError, KeyError, TypeError, AttributeError, IndexError)


def branch_names(look: Inspection) -> list[str]:
    """Every branch but main and internal ones, by its reference; a reference that cannot be read is found."""
    names = []
    for name in branch_files(look.manifest.ref()):
        if name.startswith((layout.SCHEMA_LOCK_BRANCH, layout.LEGACY_RUN_PREFIX)):
            continue
        try:
            if read_branch(look.manifest.ref(), name) is not None:
                names.append(name)
        except (OmniError, *_GARBLED) as error:
            look.add(Damage.MANIFEST, name, MANIFEST_KEY, f"the reference of the branch cannot be read: {error}")
    return sorted(names)


def check_manifest(look: Inspection, branch: str | None) -> None:
    """Read a branch into `look.states`, or say why it cannot be read; one that was deleted meanwhile is none."""
    try:
        state = _state(look, branch)
    except NotFound:
        return
    except GraphMoved as error:
        look.add(Damage.MOVED_BASE, branch, MANIFEST_KEY, str(error), path=error.recorded_base)
        return
    except (OmniError, *_GARBLED) as error:
        if branch is None or _is_there(look, branch):
            told, repair = f"the manifest cannot be read: {_told(error)}", ""
            if isinstance(error, NewerGraph):
                repair = _UPGRADE
            look.add(Damage.MANIFEST, branch, MANIFEST_KEY, told, repair=repair)
        return
    before = len(look.findings)
    try:
        _check_files(look, state)
        _check_rows(look, state)
        _check_head(look, state)
    except UNREADABLE as error:
        look.add(Damage.MANIFEST, branch, MANIFEST_KEY, f"the manifest cannot be read: {_told(error)}")
    if look.is_gone(state):
        del look.findings[before:]
    else:
        look.states[branch] = state


def _check_head(look: Inspection, state: BranchState) -> None:
    torn = torn_versions(state.table.ref) if state.table.below_torn else []
    if torn:
        look.add(
            Damage.TORN_ABOVE,
            state.branch,
            MANIFEST_KEY,
            f"version {torn[0]} of the manifest is torn; it was never acknowledged",
            pinned=state.version,
            head=torn[0],
            path=state.table.ref.version_file(torn[0]),
        )


def _state(look: Inspection, branch: str | None) -> BranchState:
    """The branch with every row of it decoded; a reading that met a commit or a compaction is repeated."""
    try:
        state = look.manifest.state(branch)
        state.commits()
    except NotFound:
        raise
    except (OmniError, *_GARBLED):
        look.manifest.forget(branch)
        state = look.manifest.state(branch)
        state.commits()
    return state


def _is_there(look: Inspection, branch: str) -> bool:
    try:
        return read_branch(look.manifest.ref(), branch) is not None
    except (OmniError, *_GARBLED):
        return True


def _check_files(look: Inspection, state: BranchState) -> None:
    listing = look.listing(layout.MANIFEST)
    listing.renew()
    for file in recorded_files(state.table):
        size = listing.size_of(file.path)
        if size is None or file.size not in (None, size):
            what = "is missing" if size is None else f"has {size} bytes, recorded are {file.size}"
            look.add(Damage.MANIFEST, state.branch, MANIFEST_KEY, f"{file.path} {what}", path=file.path)


def _check_rows(look: Inspection, state: BranchState) -> None:
    """Keys are unique, commits follow each other, and every pin has a row count."""
    rows = look.manifest.rows(state)
    repeated = [key for key, times in Counter(row.object_id for row in rows).items() if times > 1]
    for key in sorted(repeated):
        look.add(Damage.MANIFEST, state.branch, MANIFEST_KEY, f"the row {key} is there more than once")
    pins = [row.object_id for row in rows if row.object_type == "table_version" and row.row_count is None]
    for key in sorted(pins):
        look.add(Damage.MANIFEST, state.branch, MANIFEST_KEY, f"the row {key} has no row count")
    before = None
    for commit in state.commits():
        if commit.parent_commit_id != before:
            told = f"commit {commit.graph_commit_id} names {commit.parent_commit_id} as its parent, not {before}"
            look.add(Damage.MANIFEST, state.branch, MANIFEST_KEY, told)
        before = commit.graph_commit_id


def _told(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def missing_manifest(look: Inspection) -> str | None:
    """Why there is no manifest where a graph was; None when there is one, NotFound where there is no graph at all."""
    if look.manifest.exists() or look.ctx.objects.list(f"{layout.MANIFEST}/_versions", limit=1):
        return None
    if any(look.ctx.objects.list(place, limit=1) for place in (layout.MANIFEST, "nodes", "edges")):
        return "there are tables and no manifest that tells of them"
    if look.ctx.objects.exists(layout.SCHEMA_SOURCE) or look.ctx.objects.exists(layout.INIT_CLAIM):
        return "an init was interrupted, or is running"
    raise NotFound(
        f"there is no graph at '{look.ctx.root.uri}': it has no {layout.MANIFEST}", "Create one with omnigraph init."
    )
