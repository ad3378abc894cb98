"""Text and vector search over one table version: the same rows with no, a partial or a full index."""
