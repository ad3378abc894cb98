"""Reads lineage of graphs older than the commit rows: it lies only in the commit tables then."""

from __future__ import annotations

from typing import Any

import orjson

from omnigraph.base.errors import Conflict
from omnigraph.manifest import layout
from omnigraph.manifest.rows import GRAPH_COMMIT, Row, commit_key
from omnigraph.storage.places import Root
from omnigraph.storage.tables import TableRef, open_table, table_exists


def legacy_commit_rows(root: Root, branch: str | None) -> list[Row]:
    """A commit row for each commit on the branch's first-parent chain, oldest first."""
    commits = _read(TableRef(root, layout.COMMITS, branch))
    actors = {r["graph_commit_id"]: r["actor_id"] for r in _read(TableRef(root, layout.COMMIT_ACTORS))}
    return [_row(c, actors.get(c["graph_commit_id"])) for c in first_parent_chain(commits, branch)]


def first_parent_chain(commits: list[dict[str, Any]], branch: str | None) -> list[dict[str, Any]]:
    """The commits from genesis to head; a chain that is broken or forked is refused."""
    by_parent: dict[str | None, list[dict[str, Any]]] = {}
    for commit in commits:
        by_parent.setdefault(commit["parent_commit_id"], []).append(commit)
    chain: list[dict[str, Any]] = []
    parent: str | None = None
    while parent in by_parent:
        if len(by_parent[parent]) > 1 or len(chain) > len(commits):
            break
        chain.append(by_parent[parent][0])
        parent = chain[-1]["graph_commit_id"]
    if len(chain) != len(commits):
        raise Conflict(
            f"commit graph of branch '{branch or 'main'}' is not linear",
            "The commit tables of this old graph are damaged; export it read-only and load it into a new graph.",
        )
    return chain


def _read(ref: TableRef) -> list[dict[str, Any]]:
    if not table_exists(ref):
        if ref.branch is None or not table_exists(ref.main):
            return []
        ref = ref.main
    rows: list[dict[str, Any]] = open_table(ref, None).read().to_pylist()
    return rows


def _row(commit: dict[str, Any], actor: str | None) -> Row:
    stamp = {
        "graph_commit_id": commit["graph_commit_id"],
        "parent_commit_id": commit["parent_commit_id"],
        "merged_parent_commit_id": commit["merged_parent_commit_id"],
        "actor_id": actor,
        "created_at": commit["created_at"],
        "manifest_version": commit["manifest_version"],
    }
    text = orjson.dumps({k: v for k, v in stamp.items() if v is not None}).decode()
    return Row(
        commit_key(commit["parent_commit_id"]),
        GRAPH_COMMIT,
        metadata=text,
        created_at_version=int(commit["manifest_version"]),
    )
