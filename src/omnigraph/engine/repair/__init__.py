"""Mends what can be mended without guessing, and says of the rest why not."""
