"""What the user said about the program itself, wherever on the line: it must be known even when parsing fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass
class Told:
    json: bool = False
    debug: bool = False
    quiet: bool = False
    verbose: bool = False

    @staticmethod
    def from_arguments(arguments: Sequence[str]) -> Told:
        """A first guess from the bare words; the command corrects it once they are parsed."""
        pairs = zip(arguments, [*arguments[1:], ""], strict=True)
        json = any(a in ("--json", "--format=json") or (a, b) == ("--format", "json") for a, b in pairs)
        return Told(json=json, debug="--debug" in arguments)
