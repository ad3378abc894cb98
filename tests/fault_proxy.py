"""A loopback proxy in front of an S3 server: it writes down every request and lets chosen ones go wrong.

The client is given `endpoint` as its store. Bytes pass unchanged, so signatures stay valid. Each request goes to the
server on a connection of its own: nothing the proxy does makes the server see a request twice.
"""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from types import TracebackType
from urllib.parse import unquote

_NO_BODY = (204, 304)
_PREFIX = re.compile(r"(?:^|&)prefix=([^&]*)")
_FIRST_KEY = re.compile(rb"<Key>([^<]*)</Key>")
_UNAVAILABLE = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"


@dataclass
class Request:
    """One request as it arrived; `status` is the server's answer, also when the client never got it.

    `key` starts with the bucket. A listing has its prefix there, a deletion of several objects the first of them.
    """

    number: int
    method: str
    key: str
    query: str
    condition: str
    status: int | None = None
    fate: str = "passed"

    @property
    def kind(self) -> str:
        """GET, HEAD, LIST, DELETE, PUT, PUT if-absent or PUT if-match; parts of an upload say so."""
        names = {name.partition("=")[0] for name in self.query.split("&")}
        if "list-type" in names:
            return "LIST"
        if self.method == "POST" and "delete" in names:
            return "DELETE"
        if names & {"uploads", "uploadId"}:
            return f"{self.method} multipart"
        return f"{self.method} {self.condition}".strip()

    def __str__(self) -> str:
        return f"{self.number} {self.kind} {self.key} -> {self.status} ({self.fate})"


class Fate(Enum):
    LOSE_ANSWER = "answer lost"
    REFUSE = "refused"
    SAY_503 = "answered 503"
    DELAY = "delayed"
    HOLD = "held"


@dataclass
class Rule:
    """What happens to the requests that match: from the `nth` one on, `times` of them."""

    matches: Callable[[Request], bool]
    fate: Fate
    nth: int = 1
    times: int = 1
    delay_s: float = 0.0
    arrived: threading.Event = field(default_factory=threading.Event)
    """Set when a request met this fate: for a held one, while it waits."""
    passed_on: threading.Event = field(default_factory=threading.Event)
    """Set when the server has answered a request that met this fate."""
    _released: threading.Event = field(default_factory=threading.Event)
    _seen: int = 0

    def release(self) -> None:
        """Let held requests go to the server, whether or not their clients still wait."""
        self._released.set()

    def takes(self, request: Request) -> bool:
        if not self.matches(request):
            return False
        self._seen += 1
        return self.nth <= self._seen < self.nth + self.times

    def wait_for_release(self) -> None:
        self._released.wait()


class FaultProxy:
    """`with FaultProxy(server_port) as proxy:` then talk to `proxy.endpoint`."""

    def __init__(self, server_port: int) -> None:
        self.requests: list[Request] = []
        self.rules: list[Rule] = []
        self._server_port = server_port
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._clients: set[socket.socket] = set()
        self._stopped = False

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def start(self) -> None:
        threading.Thread(target=self._accept, name="fault-proxy", daemon=True).start()

    def stop(self) -> None:
        self._stopped = True
        for rule in self.rules:
            rule.release()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            for client in self._clients:
                _shut(client)

    def __enter__(self) -> FaultProxy:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def add(self, rule: Rule) -> Rule:
        with self._lock:
            self.rules.append(rule)
        return rule

    def calm(self) -> None:
        """Forget the rules and the log; what is held goes on."""
        with self._lock:
            for rule in self.rules:
                rule.release()
            self.rules, self.requests = [], []

    def _accept(self) -> None:
        while not self._stopped:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                self._clients.add(client)
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        """Answer the requests of one connection, one after the other."""
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        wire = _Wire(client)
        try:
            while (message := wire.request()) is not None and self._answer(client, message):
                pass
        except OSError:
            pass
        finally:
            with self._lock:
                self._clients.discard(client)
            _shut(client)
            client.close()

    def _answer(self, client: socket.socket, message: _Message) -> bool:
        """Whether the connection stays open."""
        request, rule = self._noted(message)
        if rule is not None:
            rule.arrived.set()
            match rule.fate:
                case Fate.REFUSE:
                    return False
                case Fate.SAY_503:
                    client.sendall(_UNAVAILABLE)
                    return True
                case Fate.DELAY:
                    time.sleep(rule.delay_s)
                case Fate.HOLD:
                    rule.wait_for_release()
        answer = self._forwarded(message)
        request.status = answer.status
        if rule is not None:
            rule.passed_on.set()
            if rule.fate is Fate.LOSE_ANSWER:
                return False
        client.sendall(answer.raw)
        return not answer.closes and not message.closes

    def _noted(self, message: _Message) -> tuple[Request, Rule | None]:
        with self._lock:
            request = message.described(len(self.requests) + 1)
            self.requests.append(request)
            # Every rule counts every request, so that "the second one" means the same for all of them.
            taking = [rule for rule in self.rules if rule.takes(request)]
            if taking:
                request.fate = taking[0].fate.value
            return request, taking[0] if taking else None

    def _forwarded(self, message: _Message) -> _Message:
        with socket.create_connection(("127.0.0.1", self._server_port)) as server:
            server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            server.sendall(message.raw)
            return _Wire(server).answer(to_head=message.start.startswith("HEAD "))


@dataclass(frozen=True)
class _Message:
    """A request or an answer, whole, exactly as it came."""

    start: str
    headers: dict[str, str]
    raw: bytes

    @property
    def status(self) -> int:
        return int(self.start.split(" ")[1])

    @property
    def closes(self) -> bool:
        return self.headers.get("connection", "").lower() == "close"

    def described(self, number: int) -> Request:
        method, target, _ = self.start.split(" ", 2)
        path, _, query = target.partition("?")
        key = unquote(path).strip("/")
        if listed := _PREFIX.search(query):
            key = f"{key}/{unquote(listed[1])}"
        elif method == "POST" and (deleted := _FIRST_KEY.search(self.raw)):
            key = f"{key}/{deleted[1].decode()}"
        condition = "if-absent" if self.headers.get("if-none-match") == "*" else ""
        if "if-match" in self.headers:
            condition = "if-match"
        return Request(number, method, key, query, condition)


class _Wire:
    """Reads whole HTTP/1.1 messages from a socket."""

    def __init__(self, connection: socket.socket) -> None:
        self._file = connection.makefile("rb")

    def request(self) -> _Message | None:
        """The next request, or None when the client has gone."""
        first = self._file.readline()
        return self._rest(first, None) if first.strip() else None

    def answer(self, to_head: bool) -> _Message:
        while True:
            first = self._file.readline()
            if not first:
                raise ConnectionError("the server closed the connection without an answer")
            status = int(first.split(b" ")[1])
            message = self._rest(first, 0 if to_head or status in _NO_BODY or status < 200 else -1)
            if status >= 200:
                return message

    def _rest(self, first: bytes, length: int | None) -> _Message:
        """`length`: of the body where the headers do not say it; -1 for all until the end."""
        lines, headers = [first], {}
        while (line := self._file.readline()) not in (b"\r\n", b"\n", b""):
            lines.append(line)
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.strip().lower()] = value.strip()
        head = b"".join([*lines, b"\r\n"])
        return _Message(first.decode("latin-1").rstrip("\r\n"), headers, head + self._body(headers, length))

    def _body(self, headers: dict[str, str], length: int | None) -> bytes:
        if length == 0:
            return b""
        if "chunked" in headers.get("transfer-encoding", "").lower():
            return self._chunks()
        if "content-length" in headers:
            return self._file.read(int(headers["content-length"]))
        return self._file.read() if length == -1 else b""

    def _chunks(self) -> bytes:
        parts = []
        while True:
            size = self._file.readline()
            parts.append(size)
            length = int(size.split(b";")[0], 16)
            if length == 0:
                break
            parts.append(self._file.read(length + 2))
        while (line := self._file.readline()) not in (b"\r\n", b"\n", b""):
            parts.append(line)
        return b"".join([*parts, b"\r\n"])


def _shut(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
