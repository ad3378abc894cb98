"""OmniGraph: a typed property graph with branches, commits and time travel, on Lance datasets, fed by Spark.

The public names live in `omnigraph.api` and are loaded when one of them is first used: a Spark executor that imports
`omnigraph.pipeline.worker` must not load the rooms that can publish, and `omnigraph --help` must answer quickly.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from omnigraph.api import *

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    if name.startswith("_"):
        raise AttributeError(f"module 'omnigraph' has no attribute {name!r}")
    try:
        return getattr(import_module("omnigraph.api"), name)
    except AttributeError:
        raise AttributeError(f"module 'omnigraph' has no attribute {name!r}") from None


def __dir__() -> list[str]:
    return [*import_module("omnigraph.api").__all__, "__version__"]
