"""What the user said about the program itself, wherever on the line: it must be known even when parsing fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass
class Told:
    json: bool = False
    debug: bool = False
    quiet: bool = False
    verbose: bool = False

    @staticmethod
    def from_arguments(arguments: Sequence[str]) -> Told:
        """A first guess from the bare words; the command corrects it once they are parsed."""
        apart = any(pair == ("--format", "json") for pair in pairwise(arguments))
        json = apart or "--json" in arguments or "--format=json" in arguments
        return Told(json=json, debug="--debug" in arguments)
