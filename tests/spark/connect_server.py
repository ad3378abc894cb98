"""A real Spark Connect server on loopback, in a process of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pyspark

from omnigraph.pipeline.java import bundled_java, find_java

SRC = str(Path(__file__).parents[2] / "src")
_START_SECONDS_MAX = 120


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def spark_environment() -> dict[str, str]:
    """What a Spark of the installed wheel needs, and nothing that would send it elsewhere."""
    java = find_java(None, os.environ["PATH"], bundled=bundled_java())
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_", "OMNIGRAPH_"))
    }
    home = str(Path(pyspark.__file__).parent)
    return {
        **kept,
        "JAVA_HOME": java.home,
        "SPARK_HOME": home,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": SRC,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


class ConnectServer:
    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.url = f"sc://127.0.0.1:{self.port}"
        self._log = folder / "server.log"
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        environment = spark_environment()
        conf = {
            "spark.master": "local[2]",
            "spark.ui.enabled": "false",
            "spark.driver.memory": "1g",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
            "spark.sql.shuffle.partitions": "2",
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": str(self.port),
        }
        command = [f"{environment['SPARK_HOME']}/bin/spark-submit"]
        for name, value in conf.items():
            command += ["--conf", f"{name}={value}"]
        command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command, env=environment, cwd=self._folder, stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )
        until = time.monotonic() + _START_SECONDS_MAX
        while not self._answers():
            assert self._process.poll() is None, self._log.read_text()[-2000:]
            assert time.monotonic() < until, self._log.read_text()[-2000:]
            time.sleep(0.2)

    def _answers(self) -> bool:
        with socket.socket() as attempt:
            return attempt.connect_ex(("127.0.0.1", self.port)) == 0

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
