"""Every folder of fixtures is one rule of the type checker; the first line of a file says what must become of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from gq_sources import CATALOG, FIXTURES

from omnigraph.base.errors import TypeCheckError
from omnigraph.lang.gq import parse_queries, print_queries
from omnigraph.plan.check import compile_query

RULES = [f"T{number:02}" for number in range(1, 26)]
ACCEPTED, REFUSED = "// accepted", "// refused: "
PASSING = sorted(FIXTURES.glob("T*/pass_*.gq"))
FAILING = sorted(FIXTURES.glob("T*/fail_*.gq"))


def label(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_has_queries_it_lets_pass_and_queries_it_refuses(rule: str) -> None:
    assert len(list((FIXTURES / rule).glob("pass_*.gq"))) >= 2
    assert len(list((FIXTURES / rule).glob("fail_*.gq"))) >= 3


def test_no_fixture_is_left_aside() -> None:
    assert sorted(FIXTURES.rglob("*.gq")) == sorted(PASSING + FAILING)
    assert sorted(path.name for path in FIXTURES.iterdir() if path.is_dir()) == RULES


@pytest.mark.parametrize("case", PASSING, ids=label)
def test_query_is_accepted(case: Path) -> None:
    source = case.read_text(encoding="utf-8")
    assert source.splitlines()[0] == ACCEPTED
    compile_query(CATALOG, source)


@pytest.mark.parametrize("case", PASSING, ids=label)
def test_a_query_means_the_same_after_printing(case: Path) -> None:
    source = case.read_text(encoding="utf-8")
    printed = print_queries(parse_queries(source))
    assert compile_query(CATALOG, printed) == compile_query(CATALOG, source)


@pytest.mark.parametrize("case", FAILING, ids=label)
def test_query_is_refused_with_the_rule_its_text_and_place(case: Path) -> None:
    source = case.read_text(encoding="utf-8")
    first = source.splitlines()[0]
    assert first.startswith(f"{REFUSED}type error: T{int(case.parent.name[1:])}: ")
    with pytest.raises(TypeCheckError) as refused:
        compile_query(CATALOG, source)
    assert str(refused.value) == first.removeprefix(REFUSED)


@pytest.mark.parametrize("case", FAILING, ids=label)
def test_refusal_names_rule_file_and_a_place_inside_it(case: Path) -> None:
    source = case.read_text(encoding="utf-8")
    with pytest.raises(TypeCheckError) as refused:
        compile_query(CATALOG, source, file=case.name)
    error = refused.value
    assert error.rule == f"T{int(case.parent.name[1:])}"
    assert str(error).startswith(f"type error: {error.rule}: {case.name}:{error.line}:{error.column}: ")
    lines = source.split("\n")
    assert error.line is not None
    assert error.column is not None
    assert 1 < error.line <= len(lines)
    assert 1 <= error.column <= len(lines[error.line - 1])


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        ("match { $p: Persn } return { $p }", "Did you mean 'Person'?"),
        ("match { $p: Named } return { $p }", "It is an interface, and interfaces cannot be queried."),
        ("match { $p: Follows } return { $p }", "It is an edge type; write $a follows $b."),
        ("match { $p: Person { nmae: 1 } } return { $p }", "Did you mean 'name'?"),
        ("match { $p foollows $q } return { $p }", "Did you mean 'follows'?"),
        ("match { $person: Person } return { $persn }", "Did you mean '$person'?"),
        ("match { $p: Person } return { $p.agee }", "Did you mean 'age'?"),
        ("match { $p: Person $p.born = \"x\" } return { $p }", 'Write date("2024-01-31").'),
        ("match { $p: Person } return { $p.name as name } order { naem }", "Did you mean 'name'?"),
        ("update Folows set { weight: 1 } where id = \"x\"", "Did you mean 'Follows'?"),
        ("delete Follows where frmo = \"x\"", "Did you mean 'from'?"),
        ("match { $p: Person $p follows{2,} $q } return { $q }", "Give a maximum: {2,4}."),
    ],
)  # fmt: skip
def test_a_slip_is_answered_with_what_was_probably_meant(source: str, hint: str) -> None:
    with pytest.raises(TypeCheckError) as refused:
        compile_query(CATALOG, f"query q() {{ {source} }}")
    assert refused.value.hint == hint
