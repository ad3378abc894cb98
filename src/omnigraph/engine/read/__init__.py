"""Answers queries: plans run against one view, nothing is written."""
