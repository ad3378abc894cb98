"""One file for each family of commands; each has `add_to(app)`."""
