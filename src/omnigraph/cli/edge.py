"""Where commands end: the only place that knows both exceptions and exit codes.

Holds at every return:
  1. Whatever happened was told once: a payload on stdout, or one `error:` line on stderr.
  2. A Ctrl-C that a write put off takes effect only after the outcome of that write was printed.
  3. No traceback was shown unless `--debug` asked for it.
"""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper

import typer
from typer.main import get_command

from omnigraph.cli.app import app
from omnigraph.cli.failures import Failure, failure_of
from omnigraph.cli.output import abandon_stdout, one_line, put_json, say
from omnigraph.cli.told import Told
from omnigraph.commit.signals import held_until_reported


def perform(arguments: list[str]) -> int:
    """Run a command and report its outcome; KeyboardInterrupt comes through."""
    _ready_streams()
    with held_until_reported():
        return _attempt(arguments, Told.from_arguments(arguments))


def _attempt(arguments: list[str], told: Told) -> int:
    try:
        try:
            root = get_command(app)
            with root.make_context("omnigraph", arguments, obj=told) as context:
                root.invoke(context)
            code = 0
        except typer.Exit as ended:
            code = ended.exit_code
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # The reader has seen enough. What it did not read is no failure of ours.
        abandon_stdout()
        return 0
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # a panic inside a native library is no Exception
        failure = failure_of(error)
        _report(failure, error, told)
        return failure.exit_code


def _report(failure: Failure, error: BaseException, told: Told) -> None:
    if told.debug and not failure.is_usage:
        import traceback

        say("".join(traceback.format_exception(error)).rstrip())
    say(failure.text, label="error", style="bold red")
    for line in failure.listed:
        say(f"  {one_line(line)}")
    if failure.hint:
        say(failure.hint, label="hint", style="bold")
    if told.json:
        try:
            put_json(failure.body)
            sys.stdout.flush()
        except Exception:
            abandon_stdout()


def _ready_streams() -> None:
    """Neither a closed stream nor a character the encoding cannot show may end a command."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
