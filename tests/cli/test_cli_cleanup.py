"""`omnigraph cleanup`, and running loads in `omnigraph status`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from omnigraph.base.ids import new_ulid
from omnigraph.commit.staging import StagingPin, staging_heartbeat

pytestmark = pytest.mark.slow


def files() -> dict[str, int]:
    found = [Path(folder, name) for folder, _, names in os.walk("library") for name in names]
    return {str(path): path.stat().st_mtime_ns for path in found}


def test_a_limit_is_required(cli, graph):
    done = cli("cleanup", "library")
    assert done.code == 1
    assert "cleanup needs a limit" in done.err
    assert "--keep N" in done.err


@pytest.mark.parametrize("text", ["soon", "-1d", "3y", "1.5h", ""])
def test_what_is_no_duration_is_refused_with_the_units_there_are(cli, graph, text):
    done = cli("cleanup", "library", "--older-than", text)
    assert done.code == 1
    assert f"'{text}' is not a duration" in done.err
    assert "s, m, h, d or w" in done.err


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("90s", 90), ("15m", 900), ("2h", 7_200), ("2w", 1_209_600)])
def test_a_duration_has_a_unit_or_is_seconds(cli, graph, text, seconds):
    done = cli("cleanup", "library", "--older-than", text, "--json")
    assert json.loads(done.out)["older_than_secs"] == seconds


def test_a_preview_says_what_would_go_and_touches_nothing(cli, graph):
    before = files()
    done = cli("cleanup", "library", "--keep", "1")
    assert done.code == 0
    assert done.lines[0].startswith(f"cleanup {Path('library').absolute()} — would remove ")
    assert any(line.startswith("node:Person versions ") for line in done.lines)
    assert "add --confirm" in done.err
    assert files() == before


def test_what_was_told_is_done_with_confirm_and_old_commits_are_refused(cli, graph):
    first = graph.list_commits()[1].graph_commit_id
    told = cli("cleanup", "library", "--keep", "1", "--json").json
    done = cli("cleanup", "library", "--keep", "1", "--confirm", "--json").json
    assert (told["confirm"], done["confirm"]) == (False, True)
    assert done["tables"] == told["tables"]
    assert sum(t["old_versions_removed"] for t in done["tables"]) > 0
    refused = cli("export", "library", "--snapshot", first)
    assert refused.code != 0
    assert "was reclaimed" in refused.err
    assert cli("export", "library").code == 0


def test_json_has_every_member_of_the_result(cli, graph):
    body = cli("cleanup", "library", "--keep", "5", "--older-than", "30d", "--json").json
    assert list(body) == [
        "uri",
        "confirm",
        "keep_commits",
        "older_than_secs",
        "tables",
        "orphans_removed",
        "orphans_kept",
    ]
    assert (body["keep_commits"], body["older_than_secs"]) == (5, 30 * 86_400)
    assert {t["table_key"] for t in body["tables"]} >= {"node:Person", "node:Book", "edge:Wrote"}


def test_a_shared_graph_is_not_cleaned_without_a_confirmation(cli):
    done = cli("cleanup", "s3://bucket/graph", "--keep", "1", "--confirm")
    assert done.code == 1
    assert "--yes" in done.err


def test_status_lists_running_loads_with_their_last_sign_of_life(cli, graph):
    operation = new_ulid()
    with staging_heartbeat(graph.context, operation, "draft", "act-ana") as beat:
        beat.pin([StagingPin("node:Person", "nodes/1", None, 3)])
        text = cli("status", "library").out
        (load,) = cli("status", "library", "--json").json["loads"]
    assert f"load {operation} branch=draft actor=act-ana process=" in text
    assert "renewed 0s ago" in text
    assert (load["operation_id"], load["alive"], load["pid"]) == (operation, True, os.getpid())
    assert load["pins"] == [{"table_key": "node:Person", "location": "nodes/1", "table_branch": None, "version": 3}]
    assert cli("status", "library", "--json").json["loads"] == []


def test_status_tells_a_load_that_looks_dead(cli, graph):
    operation = new_ulid()
    graph.context.objects.put(
        f"__staging/{operation}.json",
        b'{"branch":null,"host":"h","pid":1,"started_at":"2024-05-01T10:00:00Z",'
        b'"renewed_at":"2024-05-01T10:00:00Z","pins":[]}',
    )
    assert ", looks dead; omnigraph cleanup" in cli("status", "library").out
    done = cli("cleanup", "library", "--keep", "100", "--confirm")
    assert f"removed dead heartbeat __staging/{operation}.json" in done.lines
    assert "load " not in cli("status", "library").out
