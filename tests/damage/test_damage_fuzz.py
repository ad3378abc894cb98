"""Whatever happens to whatever file: verify answers, and a graph it calls whole reads as before."""

from __future__ import annotations

import os
import random

import pytest
from damage_scene import insert, reopened, repair, verify

import omnigraph as og

HARMS_PER_RUN = 8
ONE = 'query one() { match { $p: Person { name: "p07" } } return { $p.age } }'


def noise(data: bytes) -> bytes:
    third = len(data) // 3
    return data[:third] + bytes(byte ^ 0x5A for byte in data[third : third + 40]) + data[third + 40 :]


HARMS = {"lose": None, "empty": lambda data: b"", "cut": lambda data: data[: len(data) // 2], "noise": noise}


def told(graph: og.Graph) -> tuple[bytes, bytes, object]:
    reader = reopened(graph, "r")
    return (*(b"".join(reader.export(branch=b)) for b in ("main", "draft")), reader.query(ONE).to_json()["rows"])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_no_harm_to_a_file_passes_for_a_whole_graph(graph: og.Graph, seed: int) -> None:
    graph.branch_create("draft")
    insert(graph, "mine", "draft")
    graph.tag_create("then")
    graph.mutate('query gone() { delete Person where name = "later" }')
    graph.close()
    before = told(graph)
    files = sorted(os.path.join(folder, name) for folder, _, names in os.walk(graph.uri) for name in names)
    draw = random.Random(seed)
    for name in draw.sample([file for file in files if os.path.getsize(file)], HARMS_PER_RUN):
        harm = draw.choice(sorted(HARMS))
        with open(name, "rb") as file:
            data = file.read()
        change = HARMS[harm]
        if change is None:
            os.unlink(name)
        else:
            with open(name, "wb") as file:
                file.write(change(data))
        result = verify(graph)
        repair(graph)
        if result.is_whole:
            assert told(graph) == before, (harm, name)
        with open(name, "wb") as file:
            file.write(data)
    assert verify(graph).is_whole
