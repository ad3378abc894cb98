"""How a command is declared: its own parameters in its signature, the shared ones added here."""

from __future__ import annotations

import inspect
import logging
import sys
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnigraph.base.errors import BadRequest
from omnigraph.cli.about import put_version
from omnigraph.cli.address import graph_uri
from omnigraph.cli.formats import JSON, TEXT_FORMATS, chosen_format
from omnigraph.cli.output import say
from omnigraph.cli.told import Told
from omnigraph.settings import Settings

if TYPE_CHECKING:
    from omnigraph.api import Graph

UriArgument = Annotated[str | None, typer.Argument(metavar="URI", help="The graph; --store does the same.")]
BranchOption = Annotated[str | None, typer.Option("--branch", "-b", metavar="B", help="Branch; default main.")]
ActorOption = Annotated[str | None, typer.Option("--as", metavar="ACTOR", help="Who the commit says made it.")]
MessageOption = Annotated[str | None, typer.Option("--message", "-m", metavar="TEXT", help="Why, for the commit.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask on a graph that is not local.")]

_LEVELS = ("debug", "info", "warning", "error", "critical")


class Run:
    """One run of a command: which graph, which format, how loud."""

    def __init__(self, verb: str, told: Told, shared: dict[str, Any], formats: Sequence[str]) -> None:
        self.verb = verb
        self.told = told
        self._shared = shared
        default = self.settings.cli_format if "config" in shared else formats[0]
        self.format = chosen_format(shared["json"], shared["format"], default, formats)
        told.json = self.format == JSON

    @cached_property
    def settings(self) -> Settings:
        settings = Settings.resolve(config=self._shared.get("config"))
        _log_to_stderr(self.told, settings.log_level)
        return settings

    @property
    def names_a_store(self) -> bool:
        """Whether the line itself says which graph, not the environment or a file."""
        return self._shared.get("store") is not None

    def uri(self, positional: str | None = None) -> str:
        """The graph this run is about, as the user would name it."""
        return graph_uri(self.verb, positional, self._shared.get("store"), self.settings)

    @property
    def queries_folder(self) -> str | None:
        """Where the settings file keeps the stored queries of this run's graph."""
        named = self._shared.get("store") or self.settings.cli_graph
        return self.settings.graph_queries.get(named or "")

    def read(self, positional: str | None = None) -> Graph:
        """The graph, open for reading: nothing on disk changes."""
        uri = self.uri(positional)
        from omnigraph.api import Graph, OpenMode

        return Graph.open(uri, OpenMode.READ_ONLY, settings=self.settings)

    def write(self, positional: str | None = None) -> Graph:
        """The graph, open for writing; says first what is about to be changed."""
        uri = self.uri(positional)
        self.announce(uri)
        from omnigraph.api import Graph

        return Graph.open(uri, settings=self.settings)

    def actor(self, given: str | None) -> str | None:
        return given if given is not None else self.settings.cli_actor

    def confirm(self, yes: bool, what: str, positional: str | None = None) -> None:
        """Ask before something that cannot be taken back is done to a graph others share."""
        uri = self.uri(positional)
        if yes or "://" not in uri or uri.startswith("file://"):
            return
        if sys.stdin.isatty() and typer.confirm(f"{what} on {uri}?", err=True):
            return
        raise BadRequest(f"refused to {what} on {uri} without a confirmation", "Add --yes.")

    def branch(self, given: str | None) -> str:
        return given if given is not None else self.settings.cli_branch

    def note(self, text: str) -> None:
        """A remark on stderr, unless the user asked for quiet."""
        if not self.told.quiet:
            say(text)

    def announce(self, uri: str) -> None:
        """Every write says first what it is about to change."""
        self.note(f"omnigraph {self.verb} → {uri}")


def command(
    app: typer.Typer,
    name: str,
    *,
    examples: Sequence[str],
    formats: Sequence[str] = TEXT_FORMATS,
    needs_graph: bool = True,
    needs_settings: bool | None = None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register `function(run, …)` as a command; its docstring is the help. Settings are read where a graph is."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        shared = _shared_parameters(formats, needs_graph, needs_graph if needs_settings is None else needs_settings)
        names = [p.name for p in shared]

        def called(ctx: typer.Context, **given: Any) -> None:
            mine = {n: given.pop(n) for n in names}
            told = _told(ctx)
            _hear(told, mine["quiet"], mine["verbose"], mine["debug"])
            verb = ctx.command_path.partition(" ")[2]
            function(Run(verb, told, mine, formats), **given)

        own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
        context = inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
        parameters = [context, *(p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own), *shared]
        called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        called.__annotations__ = {p.name: p.annotation for p in parameters}
        app.command(name, help=inspect.getdoc(function), epilog=epilog(examples))(called)
        return function

    return register


def epilog(examples: Sequence[str]) -> str:
    """The end of a help text. The mark `\\b` keeps its lines as they are."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in examples)


def root_options(
    ctx: typer.Context,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the result and errors only.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log what happens, on stderr.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error came from.")] = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version and end.")] = False,
) -> None:
    """A typed property graph with branches, commits and time travel."""
    _hear(_told(ctx), quiet, verbose, debug)
    if version:
        put_version()
        raise typer.Exit(0)
    help_if_no_command(ctx)


def help_if_no_command(ctx: typer.Context) -> None:
    """A command group alone is half a sentence: show what could follow."""
    if ctx.invoked_subcommand is None:
        say(ctx.get_help())
        raise typer.Exit(2)


def _told(ctx: typer.Context) -> Told:
    return ctx.obj if isinstance(ctx.obj, Told) else Told()


def _hear(told: Told, quiet: bool, verbose: bool, debug: bool) -> None:
    told.quiet, told.verbose, told.debug = told.quiet or quiet, told.verbose or verbose, told.debug or debug


def _shared_parameters(formats: Sequence[str], needs_graph: bool, needs_settings: bool) -> list[inspect.Parameter]:
    options: list[tuple[str, Any, Any]] = []
    if needs_graph:
        store = typer.Option("--store", "-s", metavar="URI", help="The graph: a directory or name.")
        options.append(("store", str | None, store))
    if needs_settings:
        config = typer.Option("--config", metavar="FILE", help="Settings; default ./omnigraph.yaml.")
        options.append(("config", str | None, config))
    options += [
        ("json", bool, typer.Option("--json", help="Same as --format json.")),
        ("format", str | None, typer.Option("--format", metavar="|".join(formats), help="How to print the result.")),
        ("quiet", bool, typer.Option("--quiet", "-q", help="Print the result and errors only.")),
        ("verbose", bool, typer.Option("--verbose", "-v", help="Log what happens, on stderr.")),
        ("debug", bool, typer.Option("--debug", help="Show where an error came from.")),
    ]
    return [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            annotation=Annotated[kind, option],
            default=False if kind is bool else None,
        )
        for name, kind, option in options
    ]


def _log_to_stderr(told: Told, level: str) -> None:
    if level.lower() not in _LEVELS:
        raise BadRequest(f"log level '{level}' is unknown", f"Use one of {', '.join(_LEVELS)}.")
    log = logging.getLogger("omnigraph")
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("level=%(levelname)s logger=%(name)s %(message)s"))
    log.handlers = [handler]
    log.setLevel("INFO" if told.verbose else "ERROR" if told.quiet else level.upper())
