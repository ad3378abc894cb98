"""The sign of life of a bulk load."""

from __future__ import annotations

import logging
import os
import signal

import pytest
from ulid import ULID
from upkeep_children import load
from upkeep_scene import SCHEMA, WAIT_S, both, grow_old, ids, kept, outlast_slack, removed, running, sweep, until

import omnigraph as og
from faulty_objects import Fault, of_graph, on
from graph_places import DISK, Home, Place
from omnigraph.base.clock import now_us
from omnigraph.base.errors import Conflict, Unavailable
from omnigraph.base.ids import new_ulid
from omnigraph.commit.plan import LOAD
from omnigraph.commit.protocol import commit_plan
from omnigraph.commit.staging import list_heartbeats, staging_heartbeat
from omnigraph.engine.write.changes import Annotations, plan_changes
from omnigraph.engine.write.retry import writable

QUICK = {"staging_heartbeat_s": 1, "staging_lifetime_s": 6}


def in_staging(place: Place, home: Home) -> list[str]:
    return sorted(n for n in place.listing(home.uri) if n.startswith("__staging/"))


def test_a_load_gives_a_sign_of_life_from_its_start_to_its_end(place: Place, home: Home) -> None:
    ctx, operation = home.open().context, new_ulid()
    with staging_heartbeat(ctx, operation, None, "act-ana") as beat:
        (found,) = list_heartbeats(ctx)
        assert (found.operation_id, found.branch, found.actor, found.pid) == (operation, None, "act-ana", os.getpid())
        assert found.is_alive(now_us())
        assert found.started_us <= found.renewed_us
        ctx.objects.put(f"{beat.folder}part-1", b"mine")
        assert in_staging(place, home) == [f"__staging/{operation}.json", f"__staging/{operation}/part-1"]
    assert in_staging(place, home) == []
    assert list_heartbeats(ctx) == []


def test_a_load_that_fails_leaves_no_sign_of_life(place: Place, home: Home) -> None:
    ctx = home.open().context

    def failing() -> None:
        with staging_heartbeat(ctx, new_ulid(), None, None) as beat:
            ctx.objects.put(f"{beat.folder}part-1", b"mine")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        failing()
    assert in_staging(place, home) == []


def test_it_names_what_is_read_and_the_forks_that_are_staged_on(home: Home) -> None:
    graph = home.open()
    graph.branch_create("draft")
    ctx, view = graph.context, graph.view("draft")
    with staging_heartbeat(ctx, new_ulid(), "draft", None) as beat:
        forked = writable(ctx, view, ["node:Left"])
        beat.pin(forked)
        (found,) = list_heartbeats(ctx)
    told = [(p.table_key, p.location, p.table_branch, p.version) for p in found.pins]
    read = [(k, e.location, None, e.table_version) for k, e in view.entries.items()]
    fork = forked.forks["node:Left"]
    assert told == sorted(
        [*read, ("node:Left", fork.ref.location, "draft", fork.version)], key=lambda t: (t[0], t[2] or "")
    )


def test_started_at_is_no_later_than_the_time_of_any_file_staged_after_it(place: Place, home: Home) -> None:
    graph = home.open()
    with staging_heartbeat(graph.context, new_ulid(), None, None):
        (found,) = list_heartbeats(graph.context)
        before = set(place.listing(home.uri))
        graph.write(both("second"))
        fresh = [f for f in graph.context.objects.walk("nodes") if f.key not in before]
    assert fresh
    assert all(f.modified_us >= found.started_us - 20_000 for f in fresh)


def test_it_is_renewed_while_the_load_stages(home: Home) -> None:
    ctx = home.open(**QUICK).context
    with staging_heartbeat(ctx, new_ulid(), None, None):
        first = list_heartbeats(ctx)[0].renewed_us
        until(lambda: list_heartbeats(ctx)[0].renewed_us > first, "it was never renewed")


def test_a_renewal_that_fails_is_logged_and_fails_nothing(tmp_path, caplog) -> None:
    graph, faulty = of_graph(og.Graph.init(str(tmp_path / "g"), SCHEMA))
    with (
        caplog.at_level(logging.WARNING, "omnigraph"),
        staging_heartbeat(graph.context, new_ulid(), None, None) as beat,
    ):
        rule = faulty.when(Fault.BEFORE, on("put", key="__staging"), times=None)
        beat.pin(graph.view())
        graph.write(both("a"))
        faulty.heal()
    assert rule.fired
    assert "was not renewed" in caplog.text
    assert ids(graph) == ["a"]


def test_nothing_is_staged_when_the_first_sign_of_life_cannot_be_given(tmp_path) -> None:
    graph, faulty = of_graph(og.Graph.init(str(tmp_path / "g"), SCHEMA))
    faulty.when(Fault.BEFORE, on("put", key="__staging"))
    with pytest.raises(Unavailable), staging_heartbeat(graph.context, new_ulid(), None, None):
        pytest.fail("the load went on")


@pytest.mark.slow
def test_a_heartbeat_that_cannot_be_read_counts_as_alive_until_it_is_old(place: Place, home: Home) -> None:
    ctx, key = home.open().context, f"__staging/{new_ulid()}.json"
    ctx.objects.put(key, b"{not json")
    (found,) = list_heartbeats(ctx)
    assert (found.readable, found.is_alive(now_us()), found.started_us) == (False, True, 0)
    assert removed(sweep(home)) == []
    grow_old(place, home.uri)
    assert removed(sweep(home)) == [key]
    assert in_staging(place, home) == []


def test_a_write_prepared_long_ago_is_refused_when_cleanup_took_its_files_and_lands_otherwise(home: Home) -> None:
    graph = home.open(storage_durability="os")
    view, location = graph.view(), graph.view().entry("node:Left").location
    long_ago = str(ULID.from_timestamp(now_us() / 1e6 - 8 * 86_400))
    before = {f.key for f in graph.context.objects.walk(location)}
    plan = plan_changes(view, both("late"), LOAD, Annotations(), long_ago)
    lost = [f.key for f in graph.context.objects.walk(f"{location}/data") if f.key not in before]
    kept = {key: graph.context.objects.get(key).data for key in lost}
    graph.context.objects.delete_files(lost)
    with pytest.raises(Conflict, match="was removed by cleanup"):
        commit_plan(graph.context, plan)
    assert ids(home.open()) == ["first"]
    for key, data in kept.items():
        graph.context.objects.put(key, data)
    commit_plan(graph.context, plan)
    assert ids(home.open()) == ["first", "late"]


@pytest.mark.slow
def test_a_killed_load_is_dead_after_its_lifetime_and_its_folder_goes(place: Place, home: Home) -> None:
    ctx = home.open().context
    with running(load, home, None, "killed", QUICK) as (process, ready, _):
        assert ready.wait(WAIT_S)
        (living,) = list_heartbeats(ctx)
        outlast_slack()
        assert kept(sweep(home)) == {}
        assert removed(sweep(home)) == []
        process.kill()
        process.join()
        until(lambda: not list_heartbeats(ctx)[0].is_alive(now_us()), "it never died")
    done = sweep(home, ctx.settings.staging_grace)
    assert removed(done, "dead heartbeat") == [living.key]
    assert in_staging(place, home) == []


@pytest.mark.slow
@pytest.mark.parametrize("where", [DISK])
def test_a_stopped_load_counts_as_dead_yet_its_files_stay_and_its_commit_lands(place: Place, home: Home) -> None:
    graph = home.open()
    with running(load, home, None, "stopped", QUICK) as (process, ready, go):
        assert ready.wait(WAIT_S)
        os.kill(process.pid, signal.SIGSTOP)
        (told,) = list_heartbeats(graph.context)
        until(lambda: not list_heartbeats(graph.context)[0].is_alive(now_us()), "it counts as alive")
        done = sweep(home, graph.settings.staging_grace)
        assert removed(done) == [told.key]
        os.kill(process.pid, signal.SIGCONT)
        go.set()
        process.join(WAIT_S)
        assert process.exitcode == 0
    assert ids(home.open()) == ["first", "stopped"]
    assert in_staging(place, home) == []
