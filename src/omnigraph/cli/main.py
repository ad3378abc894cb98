"""The program `omnigraph`. Nothing is loaded outside `main`, so that even an early Ctrl-C ends without a traceback."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn

EXIT_INTERRUPTED = 130


def run() -> NoReturn:
    """The console script."""
    sys.exit(main(sys.argv[1:]))


def main(arguments: Sequence[str]) -> int:
    """Run one command; the exit code is returned, everything else was printed."""
    try:
        from omnigraph.cli.edge import perform

        return perform(list(arguments))
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return EXIT_INTERRUPTED


if __name__ == "__main__":
    run()
