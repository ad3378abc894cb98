"""`omnigraph lock list` and `omnigraph lock break`, and the lock in `omnigraph status`."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.base.clock import iso_us, now_us
from omnigraph.commit import context
from omnigraph.commit.lease import LeaseLocks
from omnigraph.commit.locks import holder_name
from omnigraph.manifest import layout
from omnigraph.manifest.branches import create_manifest_branch
from omnigraph.settings import Settings
from omnigraph.storage.places import Root

pytestmark = pytest.mark.slow

ELSEWHERE = "another-host:4711:99"


@pytest.fixture
def leased(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every graph of this test has leases for locks, as on an object store."""

    def leases(root: Root, settings: Settings) -> LeaseLocks:
        return LeaseLocks(root.objects, 0, settings.write_lease_lifetime_ms, settings.write_lease_heartbeat_ms)

    monkeypatch.setattr(context, "locks_of", leases)


def put_lease(holder: str = ELSEWHERE, renewed_s_ago: int = 5, branch: str | None = None) -> Path:
    """The lease of a writer that took it a minute before it last renewed it."""
    renewed = now_us() - renewed_s_ago * 1_000_000
    path = Path("library", layout.LOCK_DIR, f"{layout.lock_name(branch)}.json")
    path.parent.mkdir(exist_ok=True)
    members = {
        "branch": branch or "main",
        "holder": holder,
        "token": 40,
        "nonce": "theirs",
        "since": iso_us(renewed - 60_000_000),
        "renewed_at": iso_us(renewed),
        "lifetime_ms": 30_000,
    }
    path.write_text(json.dumps(members))
    return path


def gone_process() -> str:
    host, _, started = holder_name().split(":")
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait(timeout=60)
    return f"{host}:{child.pid}:{started}"


@pytest.fixture
def living() -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock of main on a local disk."""
    code = (
        "import omnigraph as og, sys\n"
        "with og.Graph.open('library').context.locks.hold(None):\n"
        "    print('held', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "held\n"
    yield child
    child.kill()
    child.wait(timeout=60)


def test_free_locks_are_listed_as_free(cli, graph):
    create_manifest_branch(graph.context.manifest, None, "draft")
    done = cli("lock", "list", "library")
    assert (done.code, done.lines) == (0, ["main free", "draft free"])
    assert cli("lock", "list", "-s", "library").lines == done.lines


LOOKS = {
    "alive": (lambda: put_lease(), "for 1m, renewed Ns ago, looks alive"),
    "stale": (lambda: put_lease(renewed_s_ago=120), "for 3m, renewed 2m ago, not renewed for a lifetime"),
    "gone": (lambda: put_lease(gone_process()), "for 1m, renewed Ns ago, its process is gone"),
}


def without_seconds(lines: list[str]) -> list[str]:
    """Seconds pass between two commands, and on a busy machine many."""
    return [re.sub(r"\b\d+s ago", "Ns ago", line) for line in lines]


@pytest.mark.parametrize("looks", sorted(LOOKS))
def test_a_lease_is_shown_with_holder_token_age_and_whether_it_looks_alive(cli, leased, graph, looks):
    prepare, words = LOOKS[looks]
    prepare()
    [line] = without_seconds(cli("lock", "list", "library").lines)
    assert line.startswith("main held by ")
    assert line.endswith(f", token 40, {words}")
    assert f"  lock: {line.removeprefix('main ')}" in without_seconds(cli("status", "library").lines)
    body = cli("lock", "list", "library", "--json").json["locks"][0]
    assert (body["held"], body["token"], body["looks"]) == (True, 40, looks)
    assert cli("status", "library", "--json").json["branches"][0]["lock"]["looks"] == looks


@pytest.mark.parametrize("how", ["table", "kv", "csv", "jsonl"])
def test_locks_come_in_every_row_format(cli, leased, graph, how):
    put_lease()
    done = cli("lock", "list", "library", "--format", how)
    assert done.code == 0
    assert ELSEWHERE in done.out


def test_listing_and_status_survive_a_lock_object_that_is_no_lease(cli, leased, graph):
    put_lease().write_bytes(b"\x00 not a lease")
    assert cli("lock", "list", "library").lines == ["main free"]
    assert "  lock: free" in cli("status", "library").lines


def test_what_a_lock_says_about_itself_cannot_colour_the_terminal(cli, leased, graph):
    put_lease("evil\x1b[31m:1:1")
    assert "\x1b" not in cli("lock", "list", "library").out


def test_without_confirm_breaking_is_only_described(cli, leased, graph):
    path = put_lease()
    before = path.read_bytes()
    done = cli("lock", "break", "library", "--branch", "main")
    assert done.code == 0
    assert done.lines[0].startswith(f"would break the lock of branch main: held by {ELSEWHERE}, token 40, ")
    assert done.err == "nothing was changed; add --confirm to break it\n"
    assert path.read_bytes() == before
    body = cli("lock", "break", "library", "--json").json
    assert (body["confirm"], body["broken"], body["lock"]["holder"]) == (False, False, ELSEWHERE)


def test_with_confirm_the_lease_is_free_and_the_next_write_lands(cli, leased, graph, add_people):
    put_lease()
    with pytest.raises(og.Conflict, match="is locked by another-host"):
        add_people(og.Graph.open("library"), "dot")
    done = cli("lock", "break", "library", "--branch", "main", "--confirm")
    assert done.code == 0
    assert done.lines[0].startswith(f"broke the lock of branch main: it was held by {ELSEWHERE}, token 40, ")
    assert done.err.startswith("omnigraph lock break → library\n")
    assert cli("lock", "list", "library").lines == ["main free"]
    add_people(og.Graph.open("library"), "dot")
    assert og.Graph.open("library", "r").list_commits()[0].lock_token == 42


def test_breaking_names_what_it_broke_as_json(cli, leased, graph):
    put_lease()
    body = cli("lock", "break", "library", "--confirm", "--json").json
    assert (body["branch"], body["confirm"], body["broken"]) == ("main", True, True)
    assert (body["lock"]["holder"], body["lock"]["token"]) == (ELSEWHERE, 40)


@pytest.mark.parametrize("confirm", [(), ("--confirm",)])
def test_a_free_lock_is_nothing_to_break(cli, graph, confirm):
    done = cli("lock", "break", "library", *confirm)
    assert (done.code, done.out) == (0, "the lock of branch main is free; nothing to break\n")
    assert cli("lock", "break", "library", *confirm, "--json").json["broken"] is False


@pytest.mark.parametrize("confirm", [(), ("--confirm",)])
def test_on_a_local_disk_a_living_holder_is_refused_with_its_pid_and_what_to_do(cli, graph, living, confirm):
    done = cli("lock", "break", "library", *confirm)
    assert (done.code, done.out) == (3, "")
    assert f"is held by process {living.pid} on " in done.err
    assert f"end process {living.pid} there" in done.err
    assert "looks alive" in cli("lock", "list", "library").out
    living.kill()
    living.wait(timeout=60)
    done = cli("lock", "break", "library", *confirm)
    assert (done.code, done.out) == (0, "the lock of branch main is free; nothing to break\n")


def test_a_branch_that_is_not_there_is_named(cli, graph):
    done = cli("lock", "break", "library", "--branch", "nowhere", "--confirm")
    assert done.code == 1
    assert "branch 'nowhere' not found" in done.err


def test_the_lock_of_another_branch_is_left_alone(cli, leased, graph):
    create_manifest_branch(graph.context.manifest, None, "draft")
    put_lease()
    put_lease(branch="draft")
    assert cli("lock", "break", "library", "--branch", "draft", "--confirm").code == 0
    main, draft = cli("lock", "list", "library").lines
    assert main.startswith("main held by ")
    assert draft == "draft free"


def test_the_lock_of_branch_control_is_shown_while_it_is_held_and_can_be_broken(cli, leased, graph):
    name = layout.BRANCH_CONTROL_LOCK
    put_lease(branch=name)
    assert cli("lock", "list", "library").lines[-1].startswith(f"{name} held by {ELSEWHERE}")
    assert cli("lock", "break", "library", "--branch", name, "--confirm").code == 0
    assert cli("lock", "list", "library").lines == ["main free"]


def test_a_read_only_handle_breaks_nothing(leased, graph):
    path = put_lease()
    before = path.read_bytes()
    with pytest.raises(og.BadRequest, match="read-only"):
        og.Graph.open("library", "r").break_lock()
    assert path.read_bytes() == before
    assert og.Graph.open("library", "r").breakable_lock().holder == ELSEWHERE


def test_a_server_url_is_refused_by_name(cli):
    done = cli("lock", "list", "http://localhost:8080")
    assert done.code == 1
    assert "works on storage only" in done.err
    assert os.listdir(".") == ["schema.pg"]
