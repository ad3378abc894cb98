"""Drafts of a schema and a pipeline from files as they are; nothing here needs Spark or a graph."""
