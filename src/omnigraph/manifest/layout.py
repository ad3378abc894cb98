"""Where everything of a graph lies below its root."""

from __future__ import annotations

from omnigraph.base.ids import fnv1a64_hex

MANIFEST = "__manifest"
SCHEMA_SOURCE = "_schema.pg"
SCHEMA_IR = "_schema.ir.json"
SCHEMA_STATE = "__schema_state.json"
COMMITS = "_graph_commits.lance"
COMMIT_ACTORS = "_graph_commit_actors.lance"
RECOVERIES = "_graph_commit_recoveries.lance"
SCHEMA_DIR = "__schema"
RECOVERY_DIR = "__recovery"
LOCK_DIR = "__locks"
FENCE_DIR = "__fences"
STAGING_DIR = "__staging"
TAG_DIR = "__tags"
BRANCH_CONTROL_LOCK = "__branch_control__"
INIT_CLAIM = "__init_claim.json"
CLONE_CLAIM = "__clone_claim.json"
SCHEMA_LOCK_BRANCH = "__schema_apply_lock__"
LEGACY_RUN_PREFIX = "__run__"

_RECORD_NAMES = {SCHEMA_SOURCE: "pg", SCHEMA_IR: "ir.json", SCHEMA_STATE: "state.json"}

INIT_LEFTOVERS = (SCHEMA_SOURCE, SCHEMA_IR, SCHEMA_STATE, COMMITS, COMMIT_ACTORS, "nodes", "edges", LOCK_DIR)


def table_location(kind: str, name: str, incarnation: int | None = None) -> str:
    """The path a table of this name gets when it is created; later its manifest row is the truth."""
    suffix = f"-{incarnation}" if incarnation is not None else ""
    return f"{kind}s/{fnv1a64_hex(name)}{suffix}"


def schema_record_key(graph_commit_id: str, key: str) -> str:
    """Where a schema file of one commit lies, from before the commit until a later one has set a schema."""
    return f"{SCHEMA_DIR}/{graph_commit_id}.{_RECORD_NAMES[key]}"


def sidecar_key(operation_id: str) -> str:
    return f"{RECOVERY_DIR}/{operation_id}.json"


def heartbeat_key(operation_id: str) -> str:
    return f"{STAGING_DIR}/{operation_id}.json"


def staging_folder(operation_id: str) -> str:
    """Where a load keeps files of its own while it stages."""
    return f"{STAGING_DIR}/{operation_id}"


def fence_key(branch: str) -> str:
    return f"{FENCE_DIR}/{fnv1a64_hex(branch)}.json"


def lock_name(branch: str | None) -> str:
    return fnv1a64_hex(branch or "main")
