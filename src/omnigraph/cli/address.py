"""Which graph a command means: what was typed, else the environment, else the settings file."""

from __future__ import annotations

from omnigraph.base.errors import BadRequest, OmniError
from omnigraph.cli.failures import UsageMistake
from omnigraph.settings import Settings
from omnigraph.storage.uri import parse_uri


def graph_uri(verb: str, positional: str | None, store: str | None, settings: Settings) -> str:
    """The URI a command works on. Names of the settings file win over directories; write `./name` for those."""
    given = [settings.graphs.get(text, text) for text in (positional, store) if text is not None]
    if len(given) == 2 and not _same(given[0], given[1]):
        raise UsageMistake(
            f"two different graphs were given: '{given[0]}' and '{given[1]}'",
            "Name the graph once, as the positional URI or with --store.",
        )
    if not given and settings.cli_graph is not None:
        given = [settings.graphs.get(settings.cli_graph, settings.cli_graph)]
    if not given:
        raise UsageMistake(
            f"omnigraph {verb} needs a graph",
            "Give --store URI, or set OMNIGRAPH_STORE, or cli.graph in omnigraph.yaml.",
        )
    return _usable(verb, given[0])


def _usable(verb: str, uri: str) -> str:
    if uri.lower().startswith(("http://", "https://")):
        raise BadRequest(
            f"omnigraph {verb} works on storage only, and '{uri}' is a server URL",
            "Give the graph's own place: a directory, file:// or s3://.",
        )
    try:
        uri.encode()
    except UnicodeEncodeError:
        raise BadRequest(f"'{uri}' is not valid UTF-8", "Lance needs a UTF-8 path; rename the directory.") from None
    return uri


def _same(one: str, other: str) -> bool:
    try:
        return one == other or parse_uri(one) == parse_uri(other)
    except OmniError:
        return False
