"""Writing to stdout and stderr, for a terminal, a pipe or a file."""

from __future__ import annotations

import os
import re
import sys
from typing import Any

import orjson

from omnigraph.base.errors import Unavailable

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def put_line(text: str) -> None:
    """One line of payload."""
    put_text(f"{text}\n")


def put_text(text: str) -> None:
    """Payload as it is."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _unwritable(error) from error


def put_bytes(data: bytes) -> None:
    """Binary payload."""
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _unwritable(error) from error


def put_json(value: Any) -> None:
    """One JSON document: indented for eyes, one line for programs."""
    option = orjson.OPT_INDENT_2 if on_terminal() else 0
    put_line(json_text(value, option))


def json_text(value: Any, option: int = 0) -> str:
    return orjson.dumps(value, option=option, default=_plain).decode()


def _plain(value: Any) -> Any:
    if hasattr(value, "items"):
        return dict(value)
    return str(value)


def on_terminal() -> bool:
    return sys.stdout.isatty()


def say(text: str, *, label: str = "", style: str = "") -> None:
    """A message about the work, on stderr; it never stops the work."""
    try:
        if label and sys.stderr.isatty():
            from rich.console import Console
            from rich.text import Text

            line = Text.assemble((f"{label}:", style), f" {text}")
            Console(stderr=True, highlight=False, soft_wrap=True).print(line)
        else:
            sys.stderr.write(f"{label}: {text}\n" if label else f"{text}\n")
            sys.stderr.flush()
    except OSError:
        return


def one_line(text: str) -> str:
    """`text` without anything that moves the cursor or colours the terminal."""
    return _CONTROL.sub(lambda found: _NAMED.get(found[0], f"\\x{ord(found[0]):02x}"), text)


def abandon_stdout() -> None:
    """Send what is still buffered nowhere, so that the end of the process does not fail on it again."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    except (OSError, ValueError):
        return


def _unwritable(error: OSError) -> Unavailable:
    abandon_stdout()
    why = error.strerror or str(error)
    return Unavailable(f"could not write the output: {why}", "The command itself had ended.", what="output")
