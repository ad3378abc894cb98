"""Spark looks for modules named `pyspark_*` on the path and finds the source `omnigraph` here."""

from omnigraph.pipeline.source import OmniGraphSource as DefaultSource

__all__ = ["DefaultSource"]
