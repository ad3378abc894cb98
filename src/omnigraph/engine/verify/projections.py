"""The commit tables: derived from the manifest, they may lag and must not tell another story."""

from __future__ import annotations

from omnigraph.engine.verify.findings import Damage
from omnigraph.engine.verify.inspection import UNREADABLE, Inspection
from omnigraph.manifest import layout
from omnigraph.manifest.lineage import GraphCommit
from omnigraph.manifest.projections import COMMITS_SCHEMA, read_actors, read_commits
from omnigraph.manifest.store import BranchState

_OPEN = "open the graph read-write; that brings them up to date"
_SHOWN_MAX = 3


def check_projections(look: Inspection, state: BranchState) -> None:
    """The commit table of a branch, and on main also the table of actors."""
    try:
        told = read_commits(look.ctx.root, state.branch)
        actors = read_actors(look.ctx.root) if state.branch is None else []
    except UNREADABLE as error:
        look.add(Damage.PROJECTION, state.branch, layout.COMMITS, f"the commit tables cannot be read: {error}")
        return
    # Read after the tables: they never know more than the manifest does.
    look.manifest.forget(state.branch)
    commits = look.manifest.state(state.branch).commits()
    known = {commit.graph_commit_id: commit for commit in commits}
    _compare(look, state, told, known)
    lag = len(known) - len({row["graph_commit_id"] for row in told})
    if told and lag > 2 * look.ctx.settings.projections_max_lag:
        text = f"the commit table lacks {lag} commits"
        look.add(Damage.PROJECTION, state.branch, layout.COMMITS, text, repair=_OPEN)
    wrong = sorted(id_ for id_, actor in actors if id_ in known and known[id_].actor_id != actor)
    if wrong:
        text = f"the actors of {_some(wrong)} are not those of the manifest"
        look.add(Damage.PROJECTION, state.branch, layout.COMMIT_ACTORS, text)


def _compare(
    look: Inspection, state: BranchState, told: list[dict[str, object]], known: dict[str, GraphCommit]
) -> None:
    ids = [str(row["graph_commit_id"]) for row in told]
    extra = sorted({id_ for id_ in ids if id_ not in known})
    twice = sorted({id_ for id_ in ids if ids.count(id_) > 1}) if len(set(ids)) != len(ids) else []
    wrong = sorted(
        str(row["graph_commit_id"])
        for row in told
        if (commit := known.get(str(row["graph_commit_id"]))) is not None
        and any(row[name] != getattr(commit, name) for name in COMMITS_SCHEMA.names)
    )
    for found, text in (
        (extra, "the commit table has {} that the manifest does not know"),
        (twice, "the commit table has {} more than once"),
        (wrong, "the commit table tells of {} otherwise than the manifest"),
    ):
        if found:
            look.add(Damage.PROJECTION, state.branch, layout.COMMITS, text.format(_some(found)))


def _some(ids: list[str]) -> str:
    more = f" and {len(ids) - _SHOWN_MAX} more" if len(ids) > _SHOWN_MAX else ""
    return f"{', '.join(ids[:_SHOWN_MAX])}{more}"
