"""Schema changes brought into the tables: on main at once, on branches when they are written to."""
