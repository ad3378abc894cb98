"""What a graph may hold: types, properties, constraints, their identity and their Arrow shape. No I/O happens here."""
