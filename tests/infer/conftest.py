"""A fresh folder to write files in, and what infer makes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from omnigraph.catalog.build import compile_source
from omnigraph.catalog.catalog import Catalog
from omnigraph.pipeline.infer.infer import Inferred, infer

Inferring = Callable[..., Inferred]


@pytest.fixture(autouse=True)
def _session_of_all_is_active_again(request: pytest.FixtureRequest) -> Iterator[None]:
    """A pipeline has a session of its own, and other suites look for the shared one."""
    yield
    if "spark" in request.fixturenames:
        request.getfixturevalue("spark").createDataFrame([], "nothing int")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def inferred(folder: Path) -> Inferring:
    """Writes the files given as texts, infers from all of them, and gives the draft."""

    def run(sample: int | None = None, out: str = "draft", **files: str) -> Inferred:
        paths = []
        for name, text in files.items():
            stem, _, ending = name.rpartition("_")
            path = folder / f"{stem}.{ending}"
            path.write_text(text, encoding="utf-8", newline="")
            paths.append(path.name)
        return infer(paths, out=out, sample=sample)

    return run


@pytest.fixture
def types_of(inferred: Inferring) -> Callable[..., dict[str, str]]:
    """The property types of the one node type that a text in csv becomes."""

    def types(text: str) -> dict[str, str]:
        catalog: Catalog = compile_source(inferred(table_csv=text).schema)
        return {p.name: str(p.type) for p in catalog.nodes[0].properties}

    return types
