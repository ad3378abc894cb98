"""Algorithms over the whole graph: one snapshot in, one value for each node out."""
