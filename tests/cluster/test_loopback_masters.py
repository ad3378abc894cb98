"""A session on a cluster of this machine is told what only holds there; one on real machines is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.pipeline.session import SparkSettings, spark_conf

_OURS = ("spark.driver.host", "spark.driver.bindAddress", "spark.executorEnv.PYTHONPATH")


@pytest.mark.parametrize("master", ["local[2]", "spark://127.0.0.1:7077", "spark://localhost:1,127.0.0.2:2"])
def test_executors_on_this_machine_find_the_driver_and_this_copy_of_the_package(master: str, tmp_path: Path) -> None:
    conf = spark_conf(SparkSettings(master=master), tmp_path)
    assert all(conf.contains(name) for name in _OURS)
    named = spark_conf(SparkSettings(master=master, conf={"spark.driver.host": "elsewhere"}), tmp_path)
    assert named.get("spark.driver.host") == "elsewhere"


@pytest.mark.parametrize(
    "master", ["spark://10.0.0.5:7077", "spark://127.0.0.1:7077,10.0.0.5:7077", "k8s://https://127.0.0.1:6443", "yarn"]
)
def test_executors_on_other_machines_are_left_to_their_own_settings(master: str, tmp_path: Path) -> None:
    conf = spark_conf(SparkSettings(master=master), tmp_path)
    assert not any(conf.contains(name) for name in _OURS)
