"""Validation of a change set against what is stored, stage by stage; the same for loads and mutations."""
