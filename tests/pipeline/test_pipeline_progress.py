"""Progress handlers keep their promises to Spark: the keywords of Connect, and counts that never fall."""

from __future__ import annotations

from types import SimpleNamespace

from omnigraph.pipeline.progress import connect_handler, is_connect


def stage(done: int, total: int) -> SimpleNamespace:
    return SimpleNamespace(num_completed_tasks=done, num_tasks=total)


def test_a_connect_handler_takes_the_keywords_of_spark_and_adds_up_operations():
    told: list[tuple[int, int]] = []
    handle = connect_handler(lambda done, total: told.append((done, total)))
    handle(stages=[stage(1, 4)], inflight_tasks=2, operation_id="a", done=False)
    handle(stages=[stage(4, 4), stage(0, 2)], inflight_tasks=2, operation_id="a", done=False)
    handle(stages=None, inflight_tasks=0, operation_id="a", done=True)
    handle(stages=[stage(3, 3)], inflight_tasks=0, operation_id="b", done=True)
    assert told == [(1, 4), (4, 6), (7, 9)]


def test_a_session_is_told_by_where_its_class_comes_from():
    class Client:
        __module__ = "pyspark.sql.connect.session"

    assert is_connect(Client())
    assert not is_connect(SimpleNamespace())
