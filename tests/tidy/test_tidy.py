"""The style that is a test stays: lengths, borders, one place that reads the environment."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(p for top in ("src", "tests", "benchmarks", "demo") for p in (ROOT / top).rglob("*.py"))
PRODUCT = sorted((ROOT / "src").rglob("*.py"))
LINES_MAX, FUNCTION_LINES_MAX = 400, 70


def label(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", SOURCES, ids=label)
def test_files_and_functions_stay_short(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= LINES_MAX
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            assert length <= FUNCTION_LINES_MAX, f"{node.name} has {length} lines"


def reads_environment(tree: ast.AST) -> bool:
    """Whether a module takes a value out of os.environ; setting one for a child process is not reading."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "getenv":
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = node.func.value
            if node.func.attr == "get" and isinstance(owner, ast.Attribute) and owner.attr == "environ":
                return True
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            owner = node.value
            if isinstance(owner, ast.Attribute) and owner.attr == "environ":
                return True
    return False


def test_only_the_settings_module_reads_the_environment() -> None:
    readers = {label(p) for p in PRODUCT if reads_environment(ast.parse(p.read_text(encoding="utf-8")))}
    puts_back_what_it_overwrote_for_the_jvm = {"src/omnigraph/pipeline/session.py"}
    assert readers - puts_back_what_it_overwrote_for_the_jvm == {"src/omnigraph/settings.py"}


def test_no_module_imports_itself_in_a_circle() -> None:
    graph = grimp.build_graph("omnigraph")
    reached = {m: graph.find_downstream_modules(m) for m in graph.modules}
    circles = sorted(m for m in graph.modules for other in reached[m] if m in reached[other] and m < other)
    assert circles == []


def test_importing_omnigraph_loads_neither_spark_nor_a_server() -> None:
    code = "import sys, omnigraph; print([m for m in ('pyspark', 'fastapi', 'typer', 'duckdb') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_comments_carry_no_history() -> None:
    history = re.compile(r"#.*\b(TODO|FIXME|XXX|MR-\d+|moved from|20\d\d-\d\d-\d\d)\b")
    found = [
        f"{label(p)}:{n}"
        for p in PRODUCT
        for n, line in enumerate(p.read_text(encoding="utf-8").splitlines(), 1)
        if history.search(line)
    ]
    assert found == []


def test_the_lock_names_no_host_and_hashes_everything() -> None:
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    assert "://" not in text
    pins = re.findall(r"^[A-Za-z0-9_.-]+==.*\\$", text, re.MULTILINE)
    assert len(pins) > 30
    assert len(pins) == len(re.findall(r"^[A-Za-z0-9_.\[\]-]+\s*[=@]", text, re.MULTILINE))
