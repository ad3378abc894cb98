"""What a clone did, and how it tells how far it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from omnigraph.engine.verify.findings import Finding

Tell = Callable[[str, int, int], None]
"""Takes the stage, how much of it is done, and of how much; bytes while files are copied, tables afterwards."""


@dataclass(frozen=True)
class ClonedBranch:
    """A branch of the copy. It shows what `source_head` shows; `head` is another commit where it has forks."""

    name: str
    source_head: str | None
    head: str | None
    forks: int = 0

    def to_json(self) -> dict[str, Any]:
        return {"branch": self.name, "source_head": self.source_head, "head": self.head, "forks": self.forks}


@dataclass(frozen=True)
class CloneResult:
    """`files` and `bytes_copied` are what this run copied; what an interrupted one left was not copied again."""

    source: str
    target: str
    branches: tuple[ClonedBranch, ...]
    tags: int
    files: int
    bytes_copied: int
    resumed: bool
    findings: tuple[Finding, ...] = ()
    """What verify says of the copy: of things that the source has too, or nothing."""

    def to_json(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "target": self.target,
            "branches": [branch.to_json() for branch in self.branches],
            "tags": self.tags,
            "files": self.files,
            "bytes_copied": self.bytes_copied,
            "resumed": self.resumed,
            "findings": [finding.to_json() for finding in self.findings],
        }


def silent(stage: str, done: int, total: int) -> None:
    """For callers who do not want to be told."""
