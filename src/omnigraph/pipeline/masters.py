"""Which Spark a master or server URL means, and whether anybody answers there.

A wrong URL is refused before a JVM is started, and an unreachable one within seconds: Spark itself would try for
a minute, a Connect client for ten.
"""

from __future__ import annotations

import re
import socket
from contextlib import closing

from omnigraph.base.errors import BadRequest, Unavailable

CONNECT_SCHEME = "sc://"
_CONNECT_PORT = 15002
_ANSWER_SECONDS_MAX = 10.0
_HINT = "Use local[N], local[*], spark://host:port, yarn, k8s://… or sc://host:port."
_LOCAL = re.compile(r"local(\[(\*|[1-9][0-9]*)(,\s*[1-9][0-9]*)?\])?|local-cluster\[[0-9]+,\s*[0-9]+,\s*[0-9]+\]")
_HOST = r"(\[[0-9a-fA-F:.]+\]|[^\s:/,\[\]]+)"
_STANDALONE = re.compile(rf"spark://{_HOST}:[0-9]+(,{_HOST}:[0-9]+)*")
_SERVER = re.compile(rf"sc://{_HOST}(:[0-9]+)?(/(;.*)?)?")


def is_local(master: str) -> bool:
    """Whether driver and executors are one process of this machine."""
    return master.split("[")[0] == "local"


def is_loopback(master: str) -> bool:
    """Whether it is a standalone cluster whose processes all run on this machine."""
    hosts = [host for host, _ in addresses(master)] if master.startswith("spark://") else []
    return bool(hosts) and all(host in ("localhost", "::1") or host.startswith("127.") for host in hosts)


def is_server(url: str) -> bool:
    return url.startswith(CONNECT_SCHEME)


def refuse_nonsense(url: str) -> None:
    """Raise for a URL that no Spark would take. Schemes we do not know are left to Spark's plugins."""
    scheme = url.partition("://")[0] if "://" in url else None
    known = {"spark": _STANDALONE, "sc": _SERVER, None: _LOCAL}
    if url == "yarn" or (scheme not in known and re.fullmatch(r"[A-Za-z][\w+.-]*://\S+", url)):
        return
    pattern = known.get(scheme)
    if pattern is None or pattern.fullmatch(url) is None or any(port > 65_535 for _, port in addresses(url)):
        raise BadRequest(f"'{url}' is no Spark master", _HINT)


def addresses(url: str) -> list[tuple[str, int]]:
    """The hosts and ports that a standalone cluster or a Connect server is reached at; none for other URLs."""
    scheme, _, rest = url.partition("://")
    if scheme not in ("spark", "sc"):
        return []
    found = []
    for place in rest.partition("/")[0].split(","):
        host, _, port = place.rpartition(":") if re.search(r":[0-9]+$", place) else (place, "", str(_CONNECT_PORT))
        found.append((host.strip("[]"), int(port)))
    return found


def refuse_unreachable(url: str, hint: str) -> None:
    """Raise unless one of the addresses accepts a connection; URLs without an address pass."""
    places = addresses(url)
    reasons = []
    for place in places:
        try:
            with closing(socket.create_connection(place, timeout=_ANSWER_SECONDS_MAX)):
                return
        except OSError as error:
            reasons.append(error.strerror or str(error))
    if places:
        raise Unavailable(f"no Spark answers at {url}: {reasons[-1]}", hint, what="spark")
