"""A quarantine that leaves no row of a type has not touched the type: its rows stay, and so does what hangs on them."""

from __future__ import annotations

from pathlib import Path

import pytest
from write_scene import follows, lines_file, person, stored, team, town

from omnigraph.base.errors import InvalidData


def test_an_overwrite_whose_people_are_all_rejected_keeps_the_stored_ones_and_their_edges(tmp_path: Path) -> None:
    graph = town(tmp_path)
    path = lines_file(tmp_path, "in.jsonl", person("di", age=200), follows("ana", "cy", id="f2"))
    done = graph.load(path, mode="overwrite", on_error="quarantine")
    assert (done.rejected, done.total_entities) == (1, 1)
    assert stored(graph, "node:Person") == [("ana",), ("bo",), ("cy",)]
    assert stored(graph, "edge:Follows") == [("f2",)]
    assert stored(graph, "edge:MemberOf") == [("m1",)]


def test_an_overwrite_whose_edges_are_all_rejected_takes_none_away(tmp_path: Path) -> None:
    """ana must lead a team; she still does, as no edge was replaced."""
    graph = town(tmp_path)
    lead = {"edge": "Leads", "from": "di", "to": "core"}
    path = lines_file(tmp_path, "in.jsonl", person("di", age=200), lead)
    done = graph.load(path, mode="overwrite", on_error="quarantine")
    assert (done.rejected, done.total_entities) == (2, 0)
    assert stored(graph, "edge:Leads") == [("l1",)]


def test_edges_that_stay_because_none_was_accepted_must_still_have_their_nodes(tmp_path: Path) -> None:
    graph = town(tmp_path)
    lead = {"edge": "Leads", "from": "di", "to": "web"}
    path = lines_file(tmp_path, "in.jsonl", person("di", age=200), team("web"), lead)
    with pytest.raises(InvalidData, match="not found in Team"):
        graph.load(path, mode="overwrite", on_error="quarantine")
    assert stored(graph, "node:Team") == [("core",), ("web",)]
