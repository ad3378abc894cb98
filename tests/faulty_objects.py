"""An object store around another one that goes wrong by rules: errors, lost answers, delays, stale reads.

Without a rule it is the store it wraps, call by call. `of_graph` puts one under a graph, `faulty_context` makes the
whole context of one, with leases as branch locks where the store has to carry them too.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from omnigraph.base.errors import Unavailable
from omnigraph.commit.context import CommitContext
from omnigraph.commit.lease import LeaseLocks
from omnigraph.graph import Graph, OpenMode
from omnigraph.settings import Settings
from omnigraph.storage.objects import FoundFile, Missing, ObjectStore, Stored
from omnigraph.storage.places import Root

READS = ("get", "exists", "list", "walk", "stream")
WRITES = ("put", "put_if_absent", "put_if_match", "delete", "remove_tree", "delete_files", "put_stream")


class Fault(Enum):
    BEFORE = "fails before it does anything"
    LOST = "does its work, and the answer is lost"
    STALE = "answers as things were when `remember` was called"
    LATE = "takes its time"


@dataclass(frozen=True)
class Call:
    number: int
    verb: str
    key: str

    def __str__(self) -> str:
        return f"{self.number} {self.verb} {self.key}"


@dataclass
class Rule:
    """What happens to the calls that match: `skip` of them pass, then `times` of them go wrong; None means all."""

    fault: Fault
    matches: Callable[[Call], bool]
    skip: int = 0
    times: int | None = 1
    seconds: float = 0.0
    error: Callable[[Call], Exception] = field(default=lambda call: no_answer(call))
    fired: list[Call] = field(default_factory=list)

    def fires(self, call: Call) -> bool:
        if not self.matches(call) or (self.times is not None and len(self.fired) >= self.times):
            return False
        if self.skip > 0:
            self.skip -= 1
            return False
        self.fired.append(call)
        return True


def no_answer(call: Call) -> Unavailable:
    return Unavailable(f"could not {call.verb} {call.key}: no answer", "Try again.", what="store")


def on(*verbs: str, key: str = "") -> Callable[[Call], bool]:
    """Calls of these verbs, of any when none is named, whose key starts with `key`."""
    return lambda call: (not verbs or call.verb in verbs) and call.key.startswith(key)


class FaultyObjects:
    """Every call is written down in `calls`; the rules are asked in order, and the first that fires decides."""

    def __init__(self, inner: ObjectStore) -> None:
        self.inner = inner
        self.calls: list[Call] = []
        self.rules: list[Rule] = []
        self._guard = threading.Lock()
        self._objects: dict[str, Stored | None] = {}
        self._lists: dict[str, list[str]] = {}

    def when(self, fault: Fault, matches: Callable[[Call], bool], **more: Any) -> Rule:
        """Add a rule; `when(Fault.LOST, on("put_if_absent", key="__recovery"))`."""
        rule = Rule(fault, matches, **more)
        self.rules.append(rule)
        return rule

    def heal(self) -> None:
        """Nothing goes wrong from now on."""
        self.rules.clear()

    def remember(self, *prefixes: str) -> None:
        """Keep what lies at or directly below these keys now; stale reads answer with it."""
        for prefix in prefixes:
            self._lists[prefix] = self.inner.list(prefix)
            for key in [prefix, *self._lists[prefix]]:
                self._objects[key] = self.inner.get(key)

    def get(self, key: str) -> Stored | None:
        return self._call("get", key, lambda: self.inner.get(key), lambda: self._past(key))

    def exists(self, key: str) -> bool:
        return self._call("exists", key, lambda: self.inner.exists(key), lambda: self._past(key) is not None)

    def put(self, key: str, data: bytes) -> None:
        self._call("put", key, lambda: self.inner.put(key, data))

    def put_if_absent(self, key: str, data: bytes) -> str | None:
        return self._call("put_if_absent", key, lambda: self.inner.put_if_absent(key, data))

    def put_if_match(self, key: str, data: bytes, etag: str) -> str | None:
        return self._call("put_if_match", key, lambda: self.inner.put_if_match(key, data, etag))

    def delete(self, key: str) -> None:
        self._call("delete", key, lambda: self.inner.delete(key))

    def list(self, prefix: str, limit: int | None = None) -> list[str]:
        return self._call(
            "list", prefix, lambda: self.inner.list(prefix, limit), lambda: self._lists.get(prefix, [])[:limit]
        )

    def remove_tree(self, prefix: str) -> None:
        self._call("remove_tree", prefix, lambda: self.inner.remove_tree(prefix))

    def walk(self, prefix: str) -> Iterator[FoundFile]:
        return iter(self._call("walk", prefix, lambda: [*self.inner.walk(prefix)]))

    def delete_files(self, keys: Sequence[str]) -> None:
        self._call("delete_files", keys[0] if keys else "", lambda: self.inner.delete_files(keys))

    def stream(self, key: str) -> Iterator[bytes]:
        """The call counts, and fails, when the first part is asked for, as it does in the stores."""
        yield from self._call("stream", key, lambda: self.inner.stream(key), lambda: self._past_parts(key))

    def put_stream(self, key: str, chunks: Iterator[bytes], size: int) -> None:
        self._call("put_stream", key, lambda: self.inner.put_stream(key, chunks, size))

    def _past_parts(self, key: str) -> Iterator[bytes]:
        past = self._past(key)
        if past is None:
            raise Missing(f"{key} is missing")
        return iter([past.data] if past.data else [])

    def _past(self, key: str) -> Stored | None:
        """What was there; a key that lay nowhere near what was remembered was not there."""
        return self._objects.get(key)

    def _call(self, verb: str, key: str, act: Callable[[], Any], past: Callable[[], Any] | None = None) -> Any:
        with self._guard:
            call = Call(len(self.calls), verb, key)
            self.calls.append(call)
            rule = next((r for r in self.rules if r.fires(call)), None)
        match rule.fault if rule else None:
            case Fault.BEFORE:
                raise rule.error(call)
            case Fault.LOST:
                act()
                raise rule.error(call)
            case Fault.STALE:
                assert past is not None, f"{verb} does not read"
                return past()
            case Fault.LATE:
                time.sleep(rule.seconds)
        return act()


def faulty_context(root: Root, settings: Settings, *, leased: bool = False) -> tuple[CommitContext, FaultyObjects]:
    """A context whose every small object goes through a FaultyObjects, on any root.

    `leased`: the branch locks are leases in the store, also on a local disk.
    """
    faulty = FaultyObjects(root.objects)
    context = CommitContext.of(dataclasses.replace(root, objects=faulty), settings)
    if leased and root.is_local:
        locks = LeaseLocks(
            faulty,
            settings.write_lock_timeout_ms,
            settings.write_lease_lifetime_ms,
            settings.write_lease_heartbeat_ms,
        )
        context = dataclasses.replace(context, locks=locks)
    return context, faulty


def of_graph(graph: Graph, *, leased: bool = False, settings: Settings | None = None) -> tuple[Graph, FaultyObjects]:
    """Another read-write handle on the same graph, over a store that can go wrong."""
    context, faulty = faulty_context(graph.context.root, settings or graph.settings, leased=leased)
    return Graph(context, OpenMode.READ_WRITE), faulty
