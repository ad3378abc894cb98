"""L2, what is true: which version of which table is visible on which branch, and which commit made it so."""
