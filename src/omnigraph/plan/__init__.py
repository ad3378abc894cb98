"""What a query means: names resolved, types known, parameters read."""
