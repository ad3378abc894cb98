"""Rewrites of fragments on executors."""

from __future__ import annotations

from omnigraph.storage.compaction import RewriteTask, run_rewrite


def rewrite_group(group: tuple[int, RewriteTask]) -> tuple[int, str]:
    """The number of the task and what was written. An attempt that nobody hears of leaves files that nobody names."""
    number, task = group
    return number, run_rewrite(task)
