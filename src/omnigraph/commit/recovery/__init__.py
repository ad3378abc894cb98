"""Finishes or undoes an interrupted write from its sidecar: observe, classify, act, audit."""
