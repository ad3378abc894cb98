"""Publishers that race on one manifest head without lock, tables or sidecars; processes import them by name."""

from typing import Any

from race_helpers import Ground, start_together

from omnigraph import Conflict, ExpectedVersionMismatch, Graph, RowLevelCasContention
from omnigraph.base.ids import new_ulid
from omnigraph.manifest.publisher import HeadMoved, Precondition
from omnigraph.manifest.rows import Changes, CommitIntent, Pin

Answer = tuple[int, str, str]


def publish_rounds(ground: Ground, writer: int, rounds: int, bound_by: str) -> list[Answer]:
    """(round, outcome, commit id) per round; all writers of a round saw the same head before any published."""
    graph = ground.open()
    answers = []
    for number in range(rounds):
        start_together(ground)
        state = graph.context.manifest.state()
        start_together(ground)
        intent = CommitIntent(new_ulid(), new_ulid(), "load", message=f"{writer}")
        answers.append((number, _outcome(graph, state, intent, bound_by), intent.graph_commit_id))
    return answers


def _outcome(graph: Graph, state: Any, intent: CommitIntent, bound_by: str) -> str:
    entry = state.entries["node:Left"]
    following = Pin("node:Left", entry.location, None, entry.table_version + 1, entry.row_count + 1)
    publish = graph.context.publisher.publish
    try:
        match bound_by:
            case "parent":
                publish(None, Changes(), {}, intent, Precondition(parent=state.head_id, bind_parent=True))
            case "table version":
                publish(None, Changes((following,)), {"node:Left": entry}, intent)
            case "nothing":
                publish(None, Changes(), {}, intent)
    except (HeadMoved, ExpectedVersionMismatch, RowLevelCasContention) as refused:
        return type(refused).__name__
    except Conflict as unexpected:
        return f"unexpected {unexpected}"
    return "won"
