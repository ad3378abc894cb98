"""`omnigraph commit …`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnigraph.base.clock import iso_us
from omnigraph.base.ids import is_ulid
from omnigraph.base.moments import time_us
from omnigraph.cli.bodies import commit_body, recovery_body
from omnigraph.cli.change_text import decision_line
from omnigraph.cli.command import BranchOption, Run, command, help_if_no_command
from omnigraph.cli.commands import changes
from omnigraph.cli.commands.merge import add_to_commit
from omnigraph.cli.failures import UsageMistake
from omnigraph.cli.formats import JSON, ROW_FORMATS, TEXT, Rows, put_rows
from omnigraph.cli.output import json_text, one_line, put_json, put_line

if TYPE_CHECKING:
    from omnigraph.commit.recovery.audit import RecoveryRecord
    from omnigraph.manifest.lineage import GraphCommit

Keep = Callable[["GraphCommit"], bool]

FILTERS = ("actor", "kind", "since", "until")
_COLUMNS = ("graph_commit_id", "branch", "version", "kind", "actor", "created_at", "message")
_LIST_EXAMPLES = (
    "omnigraph commit list --store ./library --limit 20",
    "omnigraph commit list --store ./library --filter actor=omnigraph:recovery",
    "omnigraph commit list --store ./library --filter kind=load --filter since=2026-01-01 --format csv",
)
_SHOW_EXAMPLES = (
    "omnigraph commit show 01KBXJ7Q3WZ5T9N8M4R2C6D0EF --store ./library",
    "omnigraph commit show main~1 --store ./library --json",
)


def add_to(app: typer.Typer) -> None:
    commit = typer.Typer(help="See what was committed, and undo it.")
    commit.callback(invoke_without_command=True)(help_if_no_command)
    command(commit, "list", examples=_LIST_EXAMPLES, formats=ROW_FORMATS)(_list)
    command(commit, "show", examples=_SHOW_EXAMPLES)(_show)
    add_to_commit(commit)
    changes.add_to_commit(commit)
    app.add_typer(commit, name="commit")


def _list(
    run: Run,
    branch: BranchOption = None,
    filter: Annotated[
        list[str] | None, typer.Option("--filter", metavar="K=V", help="actor, kind, since or until; all must hold.")
    ] = None,
    limit: Annotated[int | None, typer.Option("--limit", metavar="N", min=1, help="At most N commits.")] = None,
) -> None:
    """List the history of a branch, newest first."""
    keeps = [_keep(text) for text in filter or ()]
    on = run.branch(branch)
    commits = [c for c in run.read().list_commits(on) if all(keep(c) for keep in keeps)][:limit]
    if run.format == JSON:
        put_json({"commits": [commit_body(c) for c in commits]})
    elif run.format == TEXT:
        for commit in commits:
            put_line(_line(commit))
        if not commits:
            run.note(f"no commit of branch '{on}' matches")
    else:
        put_rows(Rows("commit list", {"branch": on}, _COLUMNS, [_row(c) for c in commits]), run.format)


def _show(
    run: Run,
    id: Annotated[str, typer.Argument(metavar="ID", help="A commit id, or what names one: main, main~1, a tag.")],
) -> None:
    """Show one commit: who made it, when, why, and what it changed."""
    graph = run.read()
    commit = graph.get_commit(id if is_ulid(id.strip()) else graph.snapshot_of(id).graph_commit_id or id)
    records: Sequence[RecoveryRecord] = graph.recoveries().records if commit.kind == "recovery" else ()
    record = next((r for r in records if r.graph_commit_id == commit.graph_commit_id), None)
    if run.format == JSON:
        put_json({**commit_body(commit), **({"recovery": recovery_body(record)} if record else {})})
        return
    for line in (*_commit_lines(commit), *(_record_lines(record) if record else ())):
        put_line(line)


def _keep(text: str) -> Keep:
    name, given, value = text.partition("=")
    match name if given else "":
        case "actor":
            return lambda c: (c.actor_id or "") == value
        case "kind":
            return lambda c: (c.kind or "") == value
        case "since":
            earliest = time_us(value)
            return lambda c: c.created_at >= earliest
        case "until":
            latest = time_us(value)
            return lambda c: c.created_at <= latest
        case "":
            raise UsageMistake(f"--filter '{text}' is not KEY=VALUE", f"The keys are {', '.join(FILTERS)}.")
        case _:
            raise UsageMistake(f"unknown filter '{name}'", f"The keys are {', '.join(FILTERS)}.")


def _first_line(message: str | None) -> str | None:
    return message.split("\n", 1)[0].rstrip("\r") if message is not None else None


def _line(commit: GraphCommit) -> str:
    known = f"{commit.graph_commit_id} branch={commit.manifest_branch or 'main'} version={commit.manifest_version}"
    who = f"kind={commit.kind or '-'} actor={commit.actor_id or '-'}"
    return one_line(f"{known} {who}  {_first_line(commit.message) or ''}").rstrip()


def _row(commit: GraphCommit) -> tuple[Any, ...]:
    return (
        commit.graph_commit_id,
        commit.manifest_branch or "main",
        commit.manifest_version,
        commit.kind,
        commit.actor_id,
        iso_us(commit.created_at),
        commit.message,
    )


def _commit_lines(commit: GraphCommit) -> Iterator[str]:
    values = {
        "graph_commit_id": commit.graph_commit_id,
        "branch": commit.manifest_branch or "main",
        "version": commit.manifest_version,
        "parent_commit_id": commit.parent_commit_id,
        "merged_parent_commit_id": commit.merged_parent_commit_id,
        "kind": commit.kind,
        "actor": commit.actor_id,
        "created_at": iso_us(commit.created_at),
        "operation_id": commit.operation_id,
    }
    yield from (f"{key}: {one_line(str(value))}" for key, value in values.items() if value is not None)
    if commit.message is not None:
        yield "message: " + "\n  ".join(one_line(line) for line in commit.message.rstrip("\n").split("\n"))
    for table_key, effect in commit.counts.items():
        yield f"{table_key}: inserts={effect.inserts} updates={effect.updates} deletes={effect.deletes}"
    yield from map(decision_line, _decisions(commit))
    if commit.metadata:
        yield f"metadata: {json_text(commit.metadata)}"


def _decisions(commit: GraphCommit) -> Sequence[Mapping[str, Any]]:
    """How the conflicts of a merge were settled."""
    ours = commit.metadata.get("omnigraph") or {}
    return (ours.get("merge") or {}).get("choices") or ()


def _record_lines(record: RecoveryRecord) -> Iterator[str]:
    yield f"recovery_kind: {record.recovery_kind}"
    if record.recovery_for_actor is not None:
        yield f"recovery_for_actor: {one_line(record.recovery_for_actor)}"
    yield f"sidecar_writer_kind: {record.sidecar_writer_kind}"
    yield f"recovered_operation_id: {record.operation_id}"
    for outcome in record.per_table_outcomes:
        yield f"recovered {outcome.table_key}: v{outcome.from_version} → v{outcome.to_version}"
    yield f"recovered_at: {iso_us(record.created_at)}"
