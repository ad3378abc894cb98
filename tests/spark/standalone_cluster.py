"""A standalone Spark cluster on loopback: one master and one worker, each a process of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from connect_server import free_port, spark_environment

_WAIT_SECONDS_MAX = 150


class StandaloneCluster:
    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.url = f"spark://127.0.0.1:{self.port}"
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        place = ["--host", "127.0.0.1"]
        master = ["org.apache.spark.deploy.master.Master", *place, "--port", str(self.port), "--webui-port", "0"]
        self._run(master)
        self.wait_for(self._answers, self._processes[0])
        worker = ["org.apache.spark.deploy.worker.Worker", *place, "--webui-port", "0", "--cores", "1"]
        self._run([*worker, "--memory", "1500m", "--work-dir", str(self._folder / "work"), self.url])

    def _run(self, command: list[str]) -> None:
        environment = {**spark_environment(), "SPARK_DAEMON_MEMORY": "256m"}
        with (self._folder / "cluster.log").open("ab") as log:
            # A group of its own: executors are children of the worker and have to end with it.
            self._processes.append(
                subprocess.Popen(
                    [f"{environment['SPARK_HOME']}/bin/spark-class", *command],
                    env=environment,
                    cwd=self._folder,
                    stdout=log,
                    stderr=log,
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,
                )
            )

    def _answers(self) -> bool:
        with socket.socket() as attempt:
            return attempt.connect_ex(("127.0.0.1", self.port)) == 0

    def wait_for(self, is_so: Callable[[], bool], process: subprocess.Popen) -> None:
        """Wait for something that the process brings about."""
        until = time.monotonic() + _WAIT_SECONDS_MAX
        while not is_so():
            assert process.poll() is None, "it ended before"
            assert time.monotonic() < until, "it took too long"
            time.sleep(0.1)

    def kill(self) -> None:
        for process in self._processes:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
