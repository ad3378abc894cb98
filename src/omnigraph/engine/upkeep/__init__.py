"""Keeping a graph in order: what is left over, what is too old, what has drifted."""
