"""Stored queries and a new schema: what it would break is named, what was broken before is not its doing."""

from __future__ import annotations

import pickle

import pytest

from omnigraph.base.errors import BreaksQueries
from omnigraph.catalog.build import compile_source
from omnigraph.plan.stored import broken_queries, refuse_broken

BEFORE = compile_source("node Person { name: String @key  age: I32? }")
WITHOUT_AGE = compile_source("node Person { name: String @key }")
AGES = "query ages() { match { $p: Person } return { $p.age } }\n"
NAMES = "query names() { match { $p: Person } return { $p.name } }\n"
BIRTHDAY = "query birthday($n: String) {\n  update Person set { age: 1 } where name = $n\n}\n"


def test_queries_that_fit_are_not_mentioned() -> None:
    assert broken_queries(BEFORE, {"a.gq": AGES + NAMES, "b.gq": BIRTHDAY}) == ()
    refuse_broken(BEFORE, WITHOUT_AGE, {"a.gq": NAMES})


def test_every_broken_query_is_named_with_file_line_and_reason() -> None:
    with pytest.raises(BreaksQueries) as caught:
        refuse_broken(BEFORE, WITHOUT_AGE, {"a.gq": NAMES + AGES, "b.gq": BIRTHDAY})
    places = [(found["file"], found["line"], found["query"]) for found in caught.value.broken]
    assert places == [("a.gq", 2, "ages"), ("b.gq", 2, "birthday")]
    assert all("'age'" in found["message"] for found in caught.value.broken)
    assert str(caught.value).startswith("the new schema breaks 2 stored queries: type error: ")
    assert "a.gq:2:" in str(caught.value)
    assert pickle.loads(pickle.dumps(caught.value)).broken == caught.value.broken


def test_a_query_that_was_broken_before_does_not_stand_in_the_way() -> None:
    stale = "query stale() { match { $x: Gone } return { $x.y } }\n"
    refuse_broken(BEFORE, WITHOUT_AGE, {"a.gq": stale + NAMES, "b.gq": "query oops("})


def test_a_query_written_for_the_new_schema_is_welcome() -> None:
    refuse_broken(WITHOUT_AGE, BEFORE, {"a.gq": AGES + BIRTHDAY})


def test_a_file_that_does_not_parse_is_one_finding() -> None:
    [found] = broken_queries(BEFORE, {"a.gq": "query oops("})
    assert found.name is None
    assert found.to_json()["file"] == "a.gq"
