"""Looks whether a graph is whole: everything that can be reached is read, and what is broken is told."""
