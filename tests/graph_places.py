"""Where the suites keep their graphs: a folder on the local disk, or prefixes of a bucket on the S3 server.

A suite that asks its place for graphs runs in both without knowing which.
"""

from __future__ import annotations

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import obstore

from omnigraph.base.ids import new_ulid
from omnigraph.graph import Graph
from omnigraph.settings import Settings
from omnigraph.storage.uri import split_s3
from s3_server import S3Server

DISK, S3 = "disk", "s3"
# Long enough for a process that waits for a busy core, short enough to wait for when a holder fell silent.
LEASE_TIMES = {"write_lease_lifetime_ms": 6_000, "write_lease_heartbeat_ms": 1_500}
_THREADS = 8


@dataclass(frozen=True)
class Home:
    """One graph with the settings that reach it; processes may hand it to each other."""

    uri: str
    settings: Settings

    def open(self, mode: str = "rw", **more: Any) -> Graph:
        return Graph.open(self.uri, mode, settings=replace(self.settings, **more))

    def init(self, schema: str) -> Graph:
        return Graph.init(self.uri, schema, settings=self.settings)


class Place(Protocol):
    """What a suite needs of the place its graphs lie in."""

    name: str
    settings: Settings

    def fresh(self) -> str: ...
    def copy(self, source: str) -> str: ...
    def remove(self, uri: str) -> None: ...
    def listing(self, uri: str) -> dict[str, Any]: ...


def unusual(settings: Settings) -> dict[str, Any]:
    """The settings that are not the usual ones: what another process must be told to act by the same."""
    usual = asdict(Settings())
    return {name: value for name, value in asdict(settings).items() if value != usual[name]}


def home_in(place: Place) -> Home:
    return Home(place.fresh(), place.settings)


def sidecars(place: Place, uri: str) -> list[str]:
    """A writer killed while it writes one may leave a temporary file, which nobody takes for a sidecar."""
    return sorted(n for n in place.listing(uri) if n.startswith("__recovery/") and n.endswith(".json"))


class DiskPlace:
    """Graphs in one folder."""

    name = DISK

    def __init__(self, folder: Path) -> None:
        self.settings = Settings.resolve()
        self._folder = folder

    def fresh(self) -> str:
        return str(self._folder / new_ulid())

    def copy(self, source: str) -> str:
        return str(shutil.copytree(source, self.fresh()))

    def remove(self, uri: str) -> None:
        shutil.rmtree(uri)

    def listing(self, uri: str) -> dict[str, Any]:
        """Every file of the graph with its size and time of change."""
        stats = {name: os.stat(os.path.join(uri, name)) for name in _files(uri)}
        return {name: (stat.st_size, stat.st_mtime_ns) for name, stat in stats.items()}


class S3Place:
    """Graphs in the bucket of a server, each below a prefix of its own."""

    name = S3

    def __init__(self, server: S3Server) -> None:
        self.settings = server.settings(**LEASE_TIMES)
        self._server = server

    def fresh(self) -> str:
        return self._server.uri()

    def copy(self, source: str) -> str:
        """A graph of this bucket or of the local disk, object by object."""
        uri = self.fresh()
        into = self._store(uri)
        if source.startswith("s3://"):
            from_ = self._store(source)
            objects = [(name, lambda n=name: from_.get(n).bytes()) for name in self.listing(source)]
        else:
            objects = [(name, Path(source, name).read_bytes) for name in _files(source)]
        with ThreadPoolExecutor(_THREADS) as threads:
            list(threads.map(lambda o: into.put(o[0], o[1](), use_multipart=False), objects))
        return uri

    def remove(self, uri: str) -> None:
        self._store(uri).delete(list(self.listing(uri)))

    def listing(self, uri: str) -> dict[str, Any]:
        """Every object of the graph with its tag and time of change."""
        found = [o for batch in obstore.list(self._store(uri)) for o in batch]
        return {str(o["path"]): (o["e_tag"], o["last_modified"]) for o in found}

    def _store(self, uri: str) -> Any:
        return self._server.access().open(*split_s3(uri))


def _files(folder: str) -> list[str]:
    return [os.path.relpath(os.path.join(f, name), folder) for f, _, names in os.walk(folder) for name in names]
