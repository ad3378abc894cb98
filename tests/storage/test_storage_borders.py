"""Only the storage room speaks to Lance, and in it only three files move a table: a check of the source itself."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2] / "src" / "omnigraph"
MODULES = sorted(ROOT.rglob("*.py"))
MAY_COMMIT = {"storage/apply.py", "storage/ledger.py", "storage/refs.py"}
# Names that only a Lance dataset, its builders or its helpers have.
LANCE_ONLY = {
    "add_columns",
    "alter_columns",
    "cleanup_old_versions",
    "commit_batch",
    "compact_files",
    "create_branch",
    "create_index",
    "create_scalar_index",
    "merge_insert",
    "optimize_indices",
    "replace_field_metadata",
    "replace_schema_metadata",
    "update_config",
    "update_field_metadata",
    "update_schema_metadata",
    "write_dataset",
}
# Names others have too; they count where the receiver is a dataset, its branches or tags, or Lance itself.
SHARED = {"commit", "create", "delete", "drop_columns", "execute", "insert", "merge", "restore", "update"}
SHARED_RECEIVERS = ("dataset", "branches", "tags", "lance", "LanceDataset", "Compaction", "optimize")


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def committing(tree: ast.AST) -> list[str]:
    """Every use of a method that moves a Lance table, called or only named, with its line."""
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute):
            continue
        if node.attr in LANCE_ONLY or (node.attr in SHARED and last_name(node.value) in SHARED_RECEIVERS):
            found.append(f"line {node.lineno}: {ast.unparse(node)}")
    return found


def last_name(receiver: ast.expr) -> str:
    """`dataset` for `dataset`, `open_table(ref).dataset` and `self.dataset`; a call counts by what is called."""
    match receiver:
        case ast.Call():
            return last_name(receiver.func)
        case ast.Attribute():
            return receiver.attr
        case ast.Name():
            return receiver.id
    return ""


def imports_lance(tree: ast.AST) -> bool:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and any(a.name.split(".")[0] == "lance" for a in node.names):
            return True
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "lance":
            return True
    return False


def parsed(path: Path) -> ast.AST:
    return ast.parse(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", [p for p in MODULES if not name(p).startswith("storage/")], ids=name)
def test_no_module_outside_storage_knows_lance(path: Path):
    assert not imports_lance(parsed(path))
    assert committing(parsed(path)) == []


@pytest.mark.parametrize("path", [p for p in MODULES if name(p).startswith("storage/")], ids=name)
def test_only_three_files_of_the_storage_room_move_a_table(path: Path):
    if name(path) not in MAY_COMMIT:
        assert committing(parsed(path)) == []


def test_the_three_files_do_commit_so_the_check_sees_what_it_looks_for():
    assert {name(p) for p in MODULES if committing(parsed(p))} == MAY_COMMIT


@pytest.mark.parametrize(
    "source",
    [
        "table.dataset.delete('true')",
        "open_table(ref, None).dataset.update({'a': '1'})",
        "ds.merge_insert('id').when_not_matched_insert_all()",
        "_commit = lance.LanceDataset.commit",
        "table.dataset.create_scalar_index('id', 'BTREE')",
        "table.dataset.restore()",
        "table.dataset.optimize.compact_files()",
        "lance.write_dataset(rows, uri)",
        "Compaction.commit(dataset, rewrites)",
        "dataset.branches.delete('draft')",
    ],
)
def test_check_finds_each_way_to_move_a_table(source: str):
    assert committing(ast.parse(source))


@pytest.mark.parametrize("source", ["objects.delete(key)", "values.update(more)", "commit_staged(staged)", "t.read()"])
def test_check_leaves_other_calls_alone(source: str):
    assert committing(ast.parse(source)) == []
