"""Keeps Spark's workers quick between tasks.

After every task a Python worker of Spark collects garbage and looks at each object there is, which for all that we
import takes longer than many a task. What is there once a task has run stays, so it is set aside.
"""

from __future__ import annotations

import gc
import sys

_settled_modules = 0


def settle() -> None:
    """Set aside what the process holds, if it has imported anything since it last did."""
    global _settled_modules
    if len(sys.modules) != _settled_modules:
        _settled_modules = len(sys.modules)
        gc.collect()
        gc.freeze()
