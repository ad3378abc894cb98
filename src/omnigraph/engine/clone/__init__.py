"""A whole graph copied to another place: its history, its branches, nothing that refers to where it was."""
