"""Where changes lie that were found and not all told yet, so that a next page need not find them again.

Holds at every return:
  1. At most one table's changes are kept, and nobody else reads them while a page is made of them.
  2. Changes that were told to their end, or that another page made room for, are gone with their files.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from types import TracebackType

from omnigraph.engine.changes.pairs import TablePair
from omnigraph.engine.changes.rows import RowChanges
from omnigraph.engine.changes.tables import OpenPair
from omnigraph.sets.scratch import Scratch
from omnigraph.settings import Settings


@dataclass(eq=False)
class Found:
    """Changes of one table for the time of a `with`; `keep` leaves them on the desk afterwards."""

    desk: Desk
    pair: TablePair
    changes: RowChanges
    scratch: Scratch
    kept: bool = False

    def keep(self) -> None:
        self.kept = True

    def __enter__(self) -> Found:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.kept and kind is None:
            self.desk.put(self)
        else:
            self.scratch.close()


class Desk:
    """One for each handle; safe to use from several threads."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._waiting: Found | None = None

    def row_changes(self, pair: OpenPair) -> Found:
        """The changes of a table, found now or left by an earlier page."""
        with self._lock:
            waiting, self._waiting = self._waiting, None
        if waiting is not None and waiting.pair == pair.pair and waiting.changes.fields.equals(pair.fields):
            waiting.kept = False
            return waiting
        if waiting is not None:
            waiting.scratch.close()
        scratch = Scratch(self._settings)
        try:
            return Found(self, pair.pair, pair.row_changes(scratch), scratch)
        except BaseException:
            scratch.close()
            raise

    def put(self, found: Found) -> None:
        found.scratch.release()
        with self._lock:
            before, self._waiting = self._waiting, found
        if before is not None:
            before.scratch.close()

    def clear(self) -> None:
        """Forget what was kept."""
        with self._lock:
            waiting, self._waiting = self._waiting, None
        if waiting is not None:
            waiting.scratch.close()
