"""What a graph does: views for reading, change sets for writing, upkeep."""
