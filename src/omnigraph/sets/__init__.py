"""Work on sets of rows: SQL over Arrow relations, and rows dealt so that those that must meet are together."""
