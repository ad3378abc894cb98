"""A standalone Spark cluster on the loopback device: a master and workers, each a process that can be killed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyspark
from bulk_scene import until

from omnigraph.pipeline.java import bundled_java, find_java

_SMALL = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
_END_S_MAX = 30


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def descendants(pid: int) -> list[int]:
    """A process and all it started, the eldest first."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            # The name in brackets may hold anything; the parent is the second word after it.
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            parents.setdefault(parent, []).append(int(entry.name))
    found = [pid]
    for one in found:
        found += parents.get(one, [])
    return found


@dataclass
class Process:
    """A JVM of the cluster; it dies with everything it started, as a machine does."""

    popen: subprocess.Popen[bytes]
    host: str

    def owns(self, pid: int) -> bool:
        return pid in descendants(self.popen.pid)

    def kill(self) -> int:
        """SIGKILL for it, its executors and their Python processes; how many died."""
        killed = 0
        for pid in descendants(self.popen.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                killed += 1
        self.popen.wait(_END_S_MAX)
        return killed


@dataclass
class Cluster:
    folder: Path
    port: int = field(default_factory=free_port)
    ui_port: int = field(default_factory=free_port)
    workers: list[Process] = field(default_factory=list)
    master: Process | None = None

    @property
    def url(self) -> str:
        return f"spark://127.0.0.1:{self.port}"

    @property
    def settings(self) -> dict[str, Any]:
        """For drivers of this cluster."""
        conf = {"spark.executor.memory": "512m", "spark.executor.extraJavaOptions": _SMALL, "spark.cores.max": "2"}
        return {"spark_master": self.url, "spark_conf": conf}

    def start(self, *hosts: str) -> None:
        self.master = self._launched("master.Master", "127.0.0.1", "--port", self.port, "--webui-port", self.ui_port)
        until(lambda: self._workers() is not None, "the master does not answer")
        for host in hosts:
            self._add(host)
        self._wait()

    def replace(self, worker: Process) -> None:
        """Another worker in the place of a dead one."""
        self.workers.remove(worker)
        self._add(worker.host)
        self._wait()

    def stop(self) -> None:
        for process in (*self.workers, *([self.master] if self.master else [])):
            process.kill()

    def worker_of(self, pid: int) -> Process:
        return next(worker for worker in self.workers if worker.owns(pid))

    def _add(self, host: str) -> None:
        options = ("--cores", 1, "--memory", "1g", "--port", 0, "--webui-port", 0, "--work-dir", self.folder / "work")
        self.workers.append(self._launched("worker.Worker", host, *options, self.url))

    def _wait(self) -> None:
        until(lambda: self._workers() == len(self.workers), "a worker does not come up")

    def _workers(self) -> int | None:
        """How many live workers the master knows; None if it does not answer."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.ui_port}/json/", timeout=5) as answer:
                return sum(worker["state"] == "ALIVE" for worker in json.load(answer)["workers"])
        except (OSError, ValueError):  # it listens before it has anything to say
            return None

    def _launched(self, name: str, host: str, *arguments: object) -> Process:
        home = Path(pyspark.__file__).parent
        java = find_java(None, os.environ["PATH"], bundled=bundled_java())
        more = {"SPARK_HOME": str(home), "JAVA_HOME": java.home, "SPARK_LOCAL_IP": host, "LANCE_LOG": "error"}
        more |= {"SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": _SMALL}
        program = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", "--host", host]
        with (self.folder / f"{name}.log").open("ab") as log:
            popen = subprocess.Popen(
                [*program, *map(str, arguments)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **more},
                cwd=self.folder,
            )
        return Process(popen, host)
