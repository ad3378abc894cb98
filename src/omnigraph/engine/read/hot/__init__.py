"""Tables kept in memory between queries: ids, columns, adjacency."""
