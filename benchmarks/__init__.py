"""Ratios against the raw substrate, measured in one run."""
