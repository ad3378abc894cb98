"""How truth changes: one write plan, one protocol, one recovery, for every writer."""
