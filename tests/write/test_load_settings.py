"""The settings of loads and limits: where they come from and how bytes are written."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.base.errors import BadRequest
from omnigraph.settings import Settings


def test_the_defaults_are_those_of_the_documentation() -> None:
    chosen = Settings()
    assert (chosen.load_max_errors, chosen.load_batch_rows, chosen.write_retries) == (20, 8192, 32)
    assert (chosen.load_max_line_bytes, chosen.limits_memory_bytes) == (32 << 20, 512 << 20)
    assert chosen.limits_spill_dir is None


@pytest.mark.parametrize(
    ("text", "size"),
    [("64 KiB", 64 << 10), ("3MiB", 3 << 20), ("2 GiB", 2 << 30), ("1_000", 1000), ("12 345", 12345)],
)
def test_bytes_take_units(monkeypatch: pytest.MonkeyPatch, text: str, size: int) -> None:
    monkeypatch.setenv("OMNIGRAPH_MEMORY_BYTES", text)
    assert Settings.resolve().limits_memory_bytes == size


@pytest.mark.parametrize("text", ["2 GB", "-1", "1.5 MiB", "much"])
def test_other_bytes_are_refused_by_name(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("OMNIGRAPH_MAX_LINE_BYTES", text)
    with pytest.raises(BadRequest, match=r"OMNIGRAPH_MAX_LINE_BYTES: load.max_line_bytes expects bytes"):
        Settings.resolve()


def test_the_file_knows_the_blocks_and_the_environment_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "omnigraph.yaml"
    file.write_text("load: {max_errors: 5, batch_rows: 100}\nlimits: {memory_bytes: 1 GiB}\nwrite: {retries: 3}\n")
    monkeypatch.setenv("OMNIGRAPH_BATCH_ROWS", "200")
    chosen = Settings.resolve(str(file))
    assert (chosen.load_max_errors, chosen.load_batch_rows) == (5, 200)
    assert (chosen.limits_memory_bytes, chosen.write_retries) == (1 << 30, 3)
