"""Processes that compete for one object; spawned children import them by name."""

from typing import Any

from omnigraph.storage.objects import LocalObjectStore


def claim_each(root: str, me: int, keys: list[str], start: Any, results: Any) -> None:
    store = LocalObjectStore(root)
    for key in keys:
        start.wait(60)
        results.put((key, me, store.put_if_absent(key, f"{me}".encode()) is not None))


def count_up(root: str, key: str, times: int, start: Any, results: Any) -> None:
    """Add one to a counter, `times` times, by conditional replacement only."""
    store = LocalObjectStore(root)
    start.wait(60)
    lost = 0
    for _ in range(times):
        while True:
            found = store.get(key)
            assert found is not None
            if store.put_if_match(key, f"{int(found.data) + 1}".encode(), found.etag) is not None:
                break
            lost += 1
    results.put(lost)
