"""Processes of the tests, each forked off a server that has imported the package and called nothing of it.

Importing takes longer than most of them live. Lance does not survive a fork once it has threads, and it has none before
its first call; so every process begins as a fresh one does, only sooner.
"""

from __future__ import annotations

import multiprocessing

FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload(["omnigraph.graph", "omnigraph.engine.upkeep.cleanup", "obstore", "pytest"])
