"""Every file under cases/ is a schema that must be refused; its first line says with which text."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.base.errors import CatalogError, ParseError, SourceError
from omnigraph.catalog.build import compile_source

CASES = sorted((Path(__file__).parent / "cases").glob("*.pg"))
MARK = "// refused: "


def test_there_are_cases() -> None:
    assert len(CASES) > 150


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_schema_is_refused_with_its_text_and_place(case: Path) -> None:
    source = case.read_text(encoding="utf-8")
    first = source.splitlines()[0]
    assert first.startswith(MARK)
    with pytest.raises(SourceError) as refused:
        compile_source(source)
    assert str(refused.value) == first.removeprefix(MARK)
    assert isinstance(refused.value, ParseError | CatalogError)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_refusal_names_the_file_and_a_place_inside_it(case: Path) -> None:
    source = case.read_text(encoding="utf-8")
    with pytest.raises(SourceError) as refused:
        compile_source(source, case.name)
    error = refused.value
    assert error.file == case.name
    assert error.line is not None
    assert error.column is not None
    lines = source.split("\n")
    assert 1 < error.line <= len(lines)
    assert 1 <= error.column <= len(lines[error.line - 1]) + 1


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        ("node A { x: Strng }", "Did you mean 'String'?"),
        ("node A { x: datetime }", "Did you mean 'DateTime'?"),
        ("interface Named {}\nnode A implements Name {}", "Did you mean 'Named'?"),
        ("node Author {}\nedge E: Auther -> Author", "Did you mean 'Author'?"),
        ("node A { title: String @unique(titel) }", "Did you mean 'title'?"),
        ('node A { title: String v: Vector(2) @embed("titel") }', "Did you mean 'title'?"),
    ],
)
def test_a_misspelt_name_is_answered_with_the_nearest_one(source: str, hint: str) -> None:
    with pytest.raises(SourceError) as refused:
        compile_source(source)
    assert refused.value.hint == hint
