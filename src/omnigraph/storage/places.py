"""A graph's root with everything needed to reach it: its small objects, Lance's options, how durable it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from omnigraph.storage.objects import LocalObjectStore, ObjectStore
from omnigraph.storage.s3 import S3Access, S3ObjectStore
from omnigraph.storage.uri import parse_uri


@dataclass(frozen=True)
class Root:
    """One graph's place. `syncs`: acknowledged means synced to the local disk."""

    uri: str
    objects: ObjectStore = field(repr=False, compare=False)
    storage_options: Mapping[str, str] | None = field(default=None, repr=False, compare=False)
    syncs: bool = field(default=False, compare=False)

    @property
    def is_local(self) -> bool:
        return self.storage_options is None


_probed: set[tuple[str, str]] = set()


def probe_store(root: Root) -> None:
    """Make sure, once per process and store, that an object store has the conditional puts we need."""
    if isinstance(root.objects, S3ObjectStore) and root.objects.identity not in _probed:
        root.objects.probe()
        _probed.add(root.objects.identity)


def open_root(text: str, access: S3Access | None = None, syncs: bool = True) -> Root:
    """The root a user names."""
    place = parse_uri(text)
    if place.scheme == "s3":
        reached = access or S3Access()
        return Root(place.uri, S3ObjectStore(place.uri, reached), reached.lance_options())
    return Root(place.uri, LocalObjectStore(place.uri, syncs), None, syncs)
