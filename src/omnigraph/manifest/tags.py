"""Tags: names that commits have for good. One object each, made if absent and never rewritten."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from urllib.parse import quote, unquote

import orjson

from omnigraph.base.errors import BadRequest, Conflict
from omnigraph.base.ids import is_ulid
from omnigraph.manifest import layout
from omnigraph.manifest.branches import checked_name
from omnigraph.storage.objects import ObjectStore

_SUFFIX = ".json"
_FILE_NAME_MAX = 255


@dataclass(frozen=True)
class Tag:
    """A name for one commit. `branch` is the one it was committed on."""

    name: str
    graph_commit_id: str
    branch: str = "main"
    actor_id: str | None = None
    message: str | None = None
    created_at: int = 0

    def to_bytes(self) -> bytes:
        return orjson.dumps(asdict(self))


def tag_key(name: str) -> str:
    """Where a tag lies. A name may hold slashes, its object never does: all tags are in one listing."""
    return f"{layout.TAG_DIR}/{quote(name, safe='')}{_SUFFIX}"


def checked_tag_name(name: str) -> str:
    """`name` trimmed, or the reason why it cannot name a tag."""
    name = checked_name(name, "tag")
    if name == "main":
        raise BadRequest("cannot create tag 'main'", "It is a branch.")
    if is_ulid(name):
        raise BadRequest(f"'{name}' looks like a commit id", "Give the tag another name.")
    if len(tag_key(name)) - len(layout.TAG_DIR) > _FILE_NAME_MAX:
        raise BadRequest("tag name has too many slashes for its length", "Give the tag a shorter name.")
    return name


def read_tag(objects: ObjectStore, name: str) -> Tag | None:
    """The tag of this name, by one read; None when there is none."""
    stored = objects.get(tag_key(name))
    return None if stored is None else _decoded(tag_key(name), stored.data)


def list_tags(objects: ObjectStore) -> list[Tag]:
    """Every tag, by name. One that cannot be read stops everything: what it keeps is not known."""
    found = []
    for key in objects.list(layout.TAG_DIR):
        stored = objects.get(key) if key.endswith(_SUFFIX) else None
        if stored is not None:
            found.append(_decoded(key, stored.data))
    return sorted(found, key=lambda tag: tag.name)


def tag_names(objects: ObjectStore) -> list[str]:
    """The names alone, by one listing, of tags that cannot be read too."""
    keys = (key.rsplit("/", 1)[1] for key in objects.list(layout.TAG_DIR))
    return sorted(unquote(key.removesuffix(_SUFFIX)) for key in keys if key.endswith(_SUFFIX))


def _decoded(key: str, data: bytes) -> Tag:
    name = unquote(key.rsplit("/", 1)[1].removesuffix(_SUFFIX))
    try:
        told = orjson.loads(data)
        return Tag(
            name,
            str(told["graph_commit_id"]),
            str(told.get("branch") or "main"),
            told.get("actor_id"),
            told.get("message"),
            int(told.get("created_at") or 0),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        hint = f"Nothing was removed. Repair it, or remove it with omnigraph tag delete {name}."
        raise Conflict(f"tag {key} cannot be read", hint) from error
