"""What lies beside the tables: sidecars, forks and folders nobody knows, tags, signs of life of loads."""

from __future__ import annotations

from omnigraph.base.clock import now_us
from omnigraph.base.errors import OmniError
from omnigraph.commit.drift import drift_of
from omnigraph.commit.sidecar import readable_sidecars
from omnigraph.commit.staging import list_heartbeats
from omnigraph.engine.upkeep.decide import unregistered_tables
from omnigraph.engine.upkeep.keep import pinned_by
from omnigraph.engine.upkeep.seen import is_held, outlasting, registered
from omnigraph.engine.verify.findings import Damage
from omnigraph.engine.verify.inspection import Inspection
from omnigraph.manifest import layout
from omnigraph.manifest.lineage import GraphCommit
from omnigraph.manifest.snapshot import SubTableEntry
from omnigraph.manifest.store import BranchState, branch_name
from omnigraph.manifest.tags import Tag, read_tag, tag_key, tag_names
from omnigraph.storage.refs import branch_files, read_branch
from omnigraph.storage.tables import has_version, table_exists


def check_sidecars(look: Inspection) -> None:
    """Interrupted writes that no living writer is about to end; and what they moved."""
    first, unreadable = readable_sidecars(look.ctx.objects)
    for error in unreadable:
        look.add(Damage.PENDING, None, None, str(error), path=str(error).split(" ", 1)[0], repair=error.hint)
    known = {sidecar.operation_id: sidecar for sidecar in first}
    branches = {sidecar.branch for sidecar in first}
    left = outlasting(
        look.ctx,
        lambda: {s.operation_id for s in readable_sidecars(look.ctx.objects)[0]} & known.keys(),
        lambda: any(is_held(look.ctx, branch) for branch in branches),
    )
    for operation_id in sorted(left):
        sidecar = known[operation_id]
        look.explained |= {(sidecar.branch, table.table_key) for table in sidecar.tables}
        told = f"a write ({sidecar.writer_kind.value}) was interrupted: {sidecar.key}"
        look.add(Damage.PENDING, sidecar.branch, None, told, path=sidecar.key)


def check_forks(look: Inspection) -> None:
    """Forks of branches that the manifest does not have. One that is being deleted takes its forks with it."""
    places = registered(look.states) | {layout.COMMITS: layout.COMMITS}

    def troubles() -> set[tuple[str, str]]:
        forks = [(location, name) for location in places for name in branch_files(look.ctx.ref(location, None))]
        # Read after the forks: a branch is there before it has any.
        live = set(branch_files(look.manifest.ref())) if forks else set()
        return {fork for fork in forks if fork[1] not in live}

    for location, name in sorted(outlasting(look.ctx, troubles, lambda: is_held(look.ctx, layout.BRANCH_CONTROL_LOCK))):
        told = f"{location} has a fork of branch '{name}', which is not there"
        path = look.ctx.ref(location, name).path
        look.add(Damage.ORPHAN_FORK, branch_name(name), places[location], told, path=path)


def check_unrecorded_forks(look: Inspection, state: BranchState) -> None:
    """Forks of a branch that something was written to and that the branch does not show: its commit may be lost."""
    branch = state.branch
    places = registered(look.states)

    def troubles() -> set[str]:
        shown = {location for _, location, fork in look.manifest.state(branch).tables.groups if fork == branch}
        hidden = [place for place in places if place not in shown]
        return {place for place in hidden if _is_written(look, place, branch or "")}

    if branch is None:
        return
    for location in sorted(outlasting(look.ctx, troubles, lambda: is_held(look.ctx, branch))):
        if (branch, places[location]) not in look.explained:
            told = f"{location} has rows of branch '{branch}' that no commit of it shows; one may be lost"
            path = look.ctx.ref(location, branch).path
            look.add(Damage.ORPHAN_FORK, branch, places[location], told, path=path)


def _is_written(look: Inspection, location: str, branch: str) -> bool:
    """Whether more was done to a fork than making it; a name that is used again starts with restores."""
    fork = read_branch(look.ctx.ref(location, None), branch)
    if fork is None:
        return False
    done = drift_of(look.ctx, SubTableEntry(location, fork.parent_version, branch, 0)).operations
    return any(operation != "Restore" for operation in done)


def check_folders(look: Inspection) -> None:
    """Table folders that no branch ever registered, if no schema apply is making them."""

    def troubles() -> set[str]:
        places = [place for folder in ("nodes", "edges") for place in look.ctx.objects.list(folder)]
        strange = unregistered_tables(places, registered(look.states))
        if not strange:
            return set()
        live = {branch for branch, state in look.states.items() if not look.is_gone(state)}
        return set(unregistered_tables(strange, registered({b: look.manifest.state(b) for b in live})))

    def busy() -> bool:
        return is_held(look.ctx, layout.SCHEMA_LOCK_BRANCH) or is_held(look.ctx, None)

    for place in sorted(outlasting(look.ctx, troubles, busy)):
        what = "a table" if table_exists(look.ctx.ref(place, None)) else "a folder"
        look.add(Damage.ORPHAN_TABLE, None, None, f"{place} is {what} that no branch knows", path=place)


def check_tags(look: Inspection) -> None:
    """Every tag is readable, and so is all that its commit shows."""
    objects = look.ctx.objects
    for name in tag_names(objects):
        try:
            tag = read_tag(objects, name)
        except OmniError as error:
            look.add(Damage.TAG, None, None, str(error), path=tag_key(name), repair=f"omnigraph tag delete {name}")
            continue
        wrong = _wrong(look, tag) if tag is not None else None
        if tag is not None and wrong is not None:
            told = f"tag '{name}' names commit {tag.graph_commit_id}, {wrong}"
            repair = f"restore it from a backup, or omnigraph tag delete {name}"
            look.add(Damage.TAG, branch_name(tag.branch), None, told, path=tag_key(name), repair=repair)


def _wrong(look: Inspection, tag: Tag) -> str | None:
    for state in look.states.values():
        commit = next((c for c in state.commits() if c.graph_commit_id == tag.graph_commit_id), None)
        if commit is not None and not look.is_gone(state):
            return _lost(look, state, commit)
    unread = look.states.keys() ^ {None, *branch_files(look.manifest.ref())}
    return None if unread else "which no branch has"


def _lost(look: Inspection, state: BranchState, commit: GraphCommit) -> str | None:
    for place in sorted(pinned_by(look.manifest.rows(state), [commit]), key=str):
        if not has_version(look.ref(place), place[2]):
            return f"whose table {place[0]} has no version v{place[2]} any more"
        if place in look.broken:
            return f"whose table {place[0]} cannot be read whole at v{place[2]}"
    return None


def check_heartbeats(look: Inspection) -> None:
    for load in list_heartbeats(look.ctx):
        if not load.readable:
            look.add(Damage.HEARTBEAT, load.branch, None, f"{load.key} cannot be read", path=load.key)
        elif not load.is_alive(now_us()):
            told = f"a load on {load.host} (process {load.pid}) gave no sign of life any more: {load.key}"
            look.add(Damage.HEARTBEAT, load.branch, None, told, path=load.key)
