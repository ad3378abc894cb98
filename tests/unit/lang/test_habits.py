"""What is written as in another language is answered with how it is written here."""

from __future__ import annotations

import pytest

from omnigraph.base.errors import ParseError
from omnigraph.lang.gq import parse_queries
from omnigraph.lang.pg import parse_schema


def hint_of_query(text: str) -> str:
    with pytest.raises(ParseError) as refused:
        parse_queries(text)
    return refused.value.hint


def hint_of_schema(text: str) -> str:
    with pytest.raises(ParseError) as refused:
        parse_schema(text)
    return refused.value.hint


@pytest.mark.parametrize(
    ("clause", "said"),
    [
        ('$p.tier = "a" or $p.tier = "b"', "there is no or"),
        ("$p.age > 3 and $p.age < 9", "without and"),
        ('$p.tier in ["a", "b"]', "ask once for each"),
        ('$p.name like "a%"', "contains or starts_with"),
        ("$p.age is null", "IS NULL"),
        ("$p.age == 3", "Equal is written =."),
        ("$p.age <> 3", "Not equal is written !=."),
        ("$p.age => 3", "Write >= or <=."),
        ("$p.name = 'ana'", "double quotes"),
        ("$p follows*1..3 $q", "edge{1,3}"),
        ("($p)-[:follows]->($q)", "A step is written $a edge $b"),
        ("# people", "A comment begins with //."),
    ],
)
def test_a_clause_as_in_another_language_is_answered_with_ours(clause: str, said: str) -> None:
    text = f"// lines count\nquery q() {{\n  match {{ $p: Person\n    {clause} }}\n  return {{ $p.name }}\n}}"
    assert said in hint_of_query(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("match { $p: P } return { $p.a }", "Write query name() { … } around it."),
        ("select name from p", "omnigraph sql"),
        ("query q() { match { $p: P } return { count(*) } }", "count($v)"),
        ("query q() { match { $p: P } return { $p.a } order by $p.a }", "order { name desc }"),
        ("query q() { match { $p: P } return { $p.a } limit 2 offset 4 }", "There is no offset"),
        ("query q() { match { $p: P } where $p.a = 1 return { $p.a } }", "inside match"),
    ],
)
def test_a_query_as_in_another_language_is_answered_with_ours(text: str, said: str) -> None:
    assert said in hint_of_query(text)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("List<String>", "A list is written [String]."),
        ("list(String)", "A list is written [String]."),
        ("String[]", "A list is written [String]."),
        ("Vector[4]", "Write Vector(4)."),
        ("Enum(a, b)", "Write enum(small, large)"),
        ('enum("a", "b")', "without quotes"),
        ("enum{a, b}", "Write enum(small, large)."),
        ("String | null", "String?"),
        ("Int", "Write I32."),
        ("timestamp", "Write DateTime."),
        ("Thing", "There are String, Blob"),
        ("Strng", "Did you mean 'String'?"),
        ("String, b: I32", "separated by blanks"),
        ("String # a name", "A comment begins with //."),
    ],
)
def test_a_property_as_in_another_language_is_answered_with_ours(written: str, said: str) -> None:
    assert said in hint_of_schema(f"node P {{\n  k: String @key\n  a: {written}\n}}\n")


def test_a_step_whose_name_was_torn_apart_is_not_taken_for_a_comparison() -> None:
    assert hint_of_query("query q() { match { $p used in $q } return { $p } }") == ""
