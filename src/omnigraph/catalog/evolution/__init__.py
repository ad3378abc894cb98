"""How an accepted schema becomes another one: steps as data, planned without looking at a row."""
