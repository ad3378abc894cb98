"""Three-way merges: where two histories meet, row by row; and what undoes a commit by the same means."""
