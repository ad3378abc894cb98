"""A real embedding provider on loopback: it writes down what it is asked and lets chosen requests go wrong.

Its vectors are not of length one, differ for every text, and are the same for the same text.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from zlib import crc32

import numpy as np

KEY = "sk-secret-0123456789abcdef"
Fate = Callable[[Any], None]
_DRIPS = 100


@dataclass
class Asked:
    path: str
    headers: dict[str, str]
    body: Any


def raw_vector(text: str, dimension: int) -> list[float]:
    return (np.random.default_rng(crc32(text.encode())).normal(size=dimension) * 3).tolist()


def unit(values: list[float]) -> np.ndarray:
    vector = np.array(values, np.float32)
    return vector / np.float32(np.sqrt((vector.astype(np.float64) ** 2).sum()))


def expected(text: str, dimension: int) -> np.ndarray:
    return unit(raw_vector(text, dimension))


def says(status: int, body: Any = b"", **headers: str) -> Fate:
    """An answer as it is; what is no bytes becomes JSON."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()

    def fate(handler: Any) -> None:
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(data)

    return fate


def hangs_up(handler: Any) -> None:
    handler.close_connection = True


def breaks_off(handler: Any) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"data":')
    handler.close_connection = True


class Provider:
    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.fates: deque[Fate | None] = deque()
        """What becomes of the next requests; None is an answer as it should be. Afterwards all is well."""
        self.always: Fate | None = None
        self.released = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    @property
    def texts(self) -> list[list[str]]:
        """The texts of each request."""
        return [a.body["input"] if "input" in a.body else [a.body["content"]["parts"][0]["text"]] for a in self.asked]

    def stop(self) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()

    def stays_silent(self, handler: Any) -> None:
        self.released.wait(30)
        handler.close_connection = True

    def drips(self, handler: Any) -> None:
        """The right answer, a byte now and then before it, so that no single wait is long but all together are."""
        handler.close_connection = True
        handler.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        asked = handler.asked.body
        vectors = [{"index": i, "embedding": raw_vector(t, asked["dimensions"])} for i, t in enumerate(asked["input"])]
        answer = json.dumps({"data": vectors}).encode()
        with suppress(OSError):
            handler.send_response(200)
            handler.send_header("Content-Length", str(_DRIPS + len(answer)))
            handler.end_headers()
            for _ in range(_DRIPS):
                handler.wfile.write(b" ")
                time.sleep(0.005)
            handler.wfile.write(answer)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        provider = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            asked: Asked

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self.asked = Asked(self.path, dict(self.headers), body)
                provider.asked.append(self.asked)
                fate = provider.fates.popleft() if provider.fates else provider.always
                (fate or answers)(self)

            def log_message(self, *_: object) -> None:
                return

        return Handler


def answers(handler: Any) -> None:
    asked = handler.asked.body
    if "input" not in asked:
        text = asked["content"]["parts"][0]["text"]
        says(200, {"embedding": {"values": raw_vector(text, asked["outputDimensionality"])}})(handler)
        return
    vectors = [
        {"object": "embedding", "index": index, "embedding": raw_vector(text, asked["dimensions"])}
        for index, text in enumerate(asked["input"])
    ]
    # Nobody promised an order.
    says(200, {"data": vectors[::-1]})(handler)
