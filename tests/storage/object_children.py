"""Processes that compete for the same objects; children import them by name."""

from typing import Any

from omnigraph.storage.objects import LocalObjectStore


def compete(root: str, me: int, keys: list[str], start: Any, results: Any) -> None:
    """Create each key with all the others at once, then add one to the counter for each."""
    store = LocalObjectStore(root)
    won = []
    for key in keys:
        start.wait(240)
        won.append((key, me, store.put_if_absent(key, f"{me}".encode()) is not None))
    for _ in keys:
        _count_up(store)
    results.put(won)


def _count_up(store: LocalObjectStore) -> None:
    while True:
        found = store.get("counter")
        assert found is not None
        if store.put_if_match("counter", f"{int(found.data) + 1}".encode(), found.etag) is not None:
            return
