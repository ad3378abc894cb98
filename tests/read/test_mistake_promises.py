"""What is wrong with a query is told with its place, its rule and what was meant; with a parameter, by its name."""

from __future__ import annotations

import pytest

import omnigraph as og
from omnigraph.settings import Settings

SCHEMA = """
node Person { name: String @key  age: I32?  tier: enum(free, paid)?  note: String?  bio: String? @index }
node Doc { slug: String @key  vec: Vector(2)?  tags: [String]? }
edge Follows: Person -> Person { weight: F64? }
edge WroteDoc: Person -> Doc
"""


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    place = str(tmp_path_factory.mktemp("mistakes") / "graph")
    return og.Graph.init(place, SCHEMA, settings=Settings(storage_durability="os"))


@pytest.mark.parametrize(
    ("written", "rule", "text", "hint"),
    [
        ("$p: ^Persn", "T1", "unknown node type 'Persn'", "Did you mean 'Person'?"),
        ('$p: Person { ^nam: "a" }', "T2", "has no property 'nam'", "Did you mean 'name'?"),
        ("$p: Person $p ^folows $q", "T4", "unknown edge 'folows'", "Did you mean 'follows'?"),
        ("$p: Person $p ^wroteDocs $q", "T4", "unknown edge 'wroteDocs'", "Did you mean 'wroteDoc'?"),
        ("$p: Person $p.^agee > 3", "T6", "has no property 'agee'", "Did you mean 'age'?"),
        ("$p: Person $p $w:follows $q $w.^wait > 1", "T6", "has no property 'wait'", ""),
        ("$p: Person $p $w:follows $q $w.^weigh > 1", "T6", "has no property 'weigh'", "Did you mean 'weight'?"),
        ("$p: Person ^$r.age > 3", "T6", "is not bound", ""),
        ('$p: Person { tier: ^"pad" }', "T3", "expects one of [free, paid]", ""),
        ('$p: Person search(^$p.note, "x")', "T25", "needs a property with @index or @key", "Declare it with @index"),
        ('$p: Person $d: Doc ^$p.age = "x"', "T7", "I32? and String cannot be compared", ""),
    ],
)
def test_a_mistake_is_told_with_its_place_its_rule_and_the_nearest_name(
    graph: og.Graph, written: str, rule: str, text: str, hint: str
) -> None:
    lines = ["query q() {", f"  match {{ {written} }}", "  return { $p }", "}"]
    column = lines[1].index("^") + 1
    lines[1] = lines[1].replace("^", "")

    for asked in (graph.query, graph.explain):
        with pytest.raises(og.TypeCheckError) as told:
            asked("\n".join(lines))
        error = told.value
        assert (error.line, error.column) == (2, column), str(error)
        assert str(error).startswith(f"type error: {rule}: 2:{column}: ")
        assert text in str(error)
        assert hint in error.hint


def test_a_mistake_in_the_syntax_is_told_with_its_place(graph: og.Graph) -> None:
    with pytest.raises(og.ParseError) as told:
        graph.query("query q() {\n  match { $p Person }\n  return { $p }\n}")
    assert told.value.line == 2


DECLARED = "query q($n: {}) {{ match {{ $p: Person }} return {{ $p.name }} }}"


@pytest.mark.parametrize(
    ("type_", "given", "text"),
    [
        ("String", {}, "parameter 'n' not provided"),
        ("String", {"n": None}, "'n': null is not accepted for non-nullable parameter"),
        ("String", {"n": 3}, "param 'n': expected string, got integer"),
        ("I32", {"n": "x"}, "param 'n': expected integer"),
        ("I32", {"n": 2**31}, "param 'n': "),
        ("U32", {"n": -1}, "param 'n': expected unsigned integer"),
        ("F64", {"n": "1"}, "param 'n': expected float"),
        ("Bool", {"n": 1}, "param 'n': expected boolean"),
        ("Date", {"n": "yesterday"}, "param 'n': expected date string"),
        ("DateTime", {"n": 5}, "param 'n': expected datetime string"),
        ("[I64]", {"n": 1}, "param 'n': expected array for [I64]"),
        ("Vector(2)", {"n": [1]}, "param 'n': expected 2 values for Vector(2), got 1"),
        ("Vector(2)", {"n": [1, "x"]}, "param 'n': vector element is not numeric"),
        ("String?", {"m": {}}, "'m': object is not supported"),
        ("String?", [], "parameters"),
    ],
)
def test_a_parameter_that_does_not_fit_is_named_before_anything_runs(
    graph: og.Graph, type_: str, given: object, text: str
) -> None:
    with pytest.raises(og.BadRequest) as told:
        graph.query(DECLARED.format(type_), given)  # type: ignore[arg-type]
    assert text in str(told.value)


def test_a_parameter_that_may_be_missing_is_null_and_one_nobody_declared_is_ignored(graph: og.Graph) -> None:
    assert graph.query(DECLARED.format("I32?")).rows == []
    assert graph.query(DECLARED.format("I32?"), {"m": 1}).rows == []


def test_a_query_that_writes_is_not_run(graph: og.Graph) -> None:
    with pytest.raises(og.BadRequest, match="query 'hire' changes data") as told:
        graph.query('query hire() { insert Person { name: "ana" } }')
    assert "mutate" in told.value.hint
    assert graph.query(DECLARED.format("I32?")).rows == []


def test_a_name_that_chooses_no_query_is_told_with_those_there_are(graph: og.Graph) -> None:
    both = DECLARED.format("I32?") + DECLARED.format("I32?").replace("query q", "query r")
    with pytest.raises(og.OmniError, match="query 'x' not found"):
        graph.query(both, name="x")
    with pytest.raises(og.OmniError, match=r"q, r|'q', 'r'") as told:
        graph.query(both)
    assert told.value.code in ("bad_request", "not_found")
