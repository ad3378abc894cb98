"""What a checked query says about itself, so that nobody has to look up a name again."""

from __future__ import annotations

import pytest
from gq_sources import CATALOG, compiled, mutation, read

from omnigraph.catalog.build import compile_source
from omnigraph.catalog.catalog import EdgeType, NodeType
from omnigraph.catalog.types import PropertyType, ScalarType
from omnigraph.lang.gq.ast import Function
from omnigraph.plan.check import compile_query
from omnigraph.plan.typed import (
    Aggregate,
    Bm25,
    ColumnPredicate,
    ColumnRef,
    Comparator,
    Comparison,
    Constant,
    CurrentTime,
    Direction,
    EntityId,
    InsertRow,
    MutationQuery,
    Nearest,
    Parameter,
    ParamSpec,
    PropertyValue,
    Rrf,
    TextSearch,
    UpdateRows,
)

STRING, I64, F64 = PropertyType(ScalarType.STRING), PropertyType(ScalarType.I64), PropertyType(ScalarType.F64)


def node(name: str) -> NodeType:
    found = CATALOG.find_node(name)
    assert found is not None
    return found


def edge(name: str) -> EdgeType:
    found = CATALOG.find_edge(name)
    assert found is not None
    return found


PERSON, TEAM, FOLLOWS, MEMBER_OF = node("Person"), node("Team"), edge("Follows"), edge("MemberOf")


@pytest.mark.parametrize(
    ("clauses", "direction", "left", "right"),
    [
        ("$a: Person $a memberOf $b", Direction.OUT, "Person", "Team"),
        ("$b: Team $a memberOf $b", Direction.OUT, "Person", "Team"),
        ("$a memberOf $b", Direction.OUT, "Person", "Team"),
        ("$a: Team $a memberOf $b", Direction.IN, "Team", "Person"),
        ("$a memberOf $b $b: Person", Direction.IN, "Team", "Person"),
        ("$a: Team $b: Person $a memberOf $b", Direction.IN, "Team", "Person"),
        ("$a: Person $a follows $b", Direction.OUT, "Person", "Person"),
        ("$b: Person $a follows $b", Direction.OUT, "Person", "Person"),
        ("$a <follows> $b", Direction.BOTH, "Person", "Person"),
    ],
)
def test_the_direction_follows_from_the_types_of_the_ends(
    clauses: str, direction: Direction, left: str, right: str
) -> None:
    (expansion,) = read(f"match {{ {clauses} }} return {{ $a, $b }}").pattern.expansions
    assert expansion.direction is direction
    assert (expansion.left.node.name, expansion.right.node.name) == (left, right)
    outer = f"$x: Person $a: {left} $b: {right} not {{ {clauses} }}"
    (negation,) = read(f"match {{ {outer} }} return {{ $x }}").pattern.negations
    assert negation.pattern.expansions == (expansion,)


def test_every_variable_has_its_type_and_nothing_is_anonymous() -> None:
    pattern = read("match { $p $w:follows $q $q memberOf{1,3} $_ } return { $p }").pattern
    assert [(v.name, v.type) for v in pattern.variables] == [("p", PERSON), ("q", PERSON), ("w", FOLLOWS)]
    first, second = pattern.expansions
    assert (first.edge, first.edge_variable, first.min_hops, first.max_hops) == (FOLLOWS, "w", 1, 1)
    assert (second.right.variable, second.right.node) == (None, TEAM)
    assert (second.edge, second.edge_variable, second.min_hops, second.max_hops) == (MEMBER_OF, None, 1, 3)


def test_expansions_stay_in_the_order_written() -> None:
    pattern = read("match { $a follows $b $c follows $a $c: Person } return { $a }").pattern
    assert [(e.left.variable, e.right.variable) for e in pattern.expansions] == [("a", "b"), ("c", "a")]


def test_a_long_chain_is_typed_from_its_only_binding() -> None:
    chain = " ".join(f"$v{i} memberOf $v{i + 1} $v{i + 2} memberOf $v{i + 1}" for i in range(0, 40, 2))
    pattern = read(f"match {{ {chain} $v40: Team }} return {{ $v0 }}").pattern
    kinds = {variable.name: variable.type.name for variable in pattern.variables}
    assert kinds == {f"v{i}": "Team" if i % 2 == 0 else "Person" for i in range(41)}


def test_bindings_compare_scalars_and_look_into_lists() -> None:
    (binding,) = read(
        'match { $p: Person { name: $n, tags: "red", id: "x" } } return { $p }', "$n: String"
    ).pattern.bindings
    name, tags, id_ = binding.matches
    assert (name.comparator, name.value) == (Comparator.EQ, Parameter("n", STRING))
    assert (tags.comparator, tags.value) == (Comparator.MEMBER, Constant(STRING, "red"))
    assert (id_.name, id_.type) == ("id", STRING)


def test_filters_know_their_operands_and_what_contains_means() -> None:
    source = 'match { $p: Person $p.tags contains $n $p.name contains "a" $p.age < 2.5 $p.seen <= now() } return { $p }'
    tags, name, age, seen = read(source, "$n: String").pattern.filters
    tags_type = PropertyType(ScalarType.STRING, nullable=True, is_list=True)
    assert tags == Comparison(PropertyValue("p", PERSON, "tags", tags_type), Comparator.MEMBER, Parameter("n", STRING))
    assert isinstance(name, Comparison)
    assert name.comparator is Comparator.SUBSTRING
    assert isinstance(age, Comparison)
    assert age.right == Constant(F64, 2.5)
    assert isinstance(seen, Comparison)
    assert seen.right == CurrentTime()


@pytest.mark.parametrize(
    ("literal", "type_", "value"),
    [
        ('date("1970-01-02")', ScalarType.DATE, 1),
        ('date("1969-12-31")', ScalarType.DATE, -1),
        ('datetime("1970-01-01T00:00:01.5Z")', ScalarType.DATETIME, 1_500),
        ('datetime("1970-01-01 02:00:00+02:00")', ScalarType.DATETIME, 0),
        ("9223372036854775807", ScalarType.I64, 2**63 - 1),
        ("9223372036854775808", ScalarType.U64, 2**63),
        ("-0.5", ScalarType.F64, -0.5),
        ("true", ScalarType.BOOL, True),
    ],
)
def test_constants_are_values_as_the_engine_holds_them(literal: str, type_: ScalarType, value: object) -> None:
    (column,) = read(f"match {{ $p: Person }} return {{ {literal} }}").columns
    assert column.value == Constant(PropertyType(type_), value)  # type: ignore[arg-type]
    assert column.name == "literal"


@pytest.mark.parametrize(
    ("literal", "element", "value"),
    [
        ("[]", ScalarType.STRING, ()),
        ("[1, 2]", ScalarType.I64, (1, 2)),
        ("[1, 2.5]", ScalarType.F64, (1.0, 2.5)),
        ("[1, 18446744073709551615]", ScalarType.U64, (1, 2**64 - 1)),
        ('[date("1970-01-02")]', ScalarType.DATE, (1,)),
    ],
)
def test_a_list_has_one_element_type(literal: str, element: ScalarType, value: object) -> None:
    (column,) = read(f"match {{ $p: Person }} return {{ {literal} }}").columns
    assert column.value == Constant(PropertyType(element, is_list=True), value)  # type: ignore[arg-type]


def test_columns_are_named_and_typed() -> None:
    source = """match { $p $w:follows $q } return { $p, $p.name, $q.age as age, $n, 3, $w.weight, now(),
      search($p.bio, "x") as s, bm25($p.bio, "x") as b, nearest($p.vec, "x") as d,
      rrf(bm25($p.bio, "x"), nearest($p.vec, "x")) as r } limit 3"""
    columns = read(source, "$n: I32?").columns
    assert [(column.name, str(column.type)) for column in columns] == [
        ("p", "String"), ("p.name", "String"), ("age", "I32?"), ("n", "I32?"), ("literal", "I64"), ("w.weight", "F64?"),
        ("now", "DateTime"), ("s", "Bool"), ("b", "F64?"), ("d", "F64?"), ("r", "F64"),
    ]  # fmt: skip
    assert columns[0].value == EntityId("p", PERSON)


def test_aggregates_are_named_after_their_argument_and_change_the_type() -> None:
    source = """match { $p: Person } return { $p.tier, count($p), avg($p.age), sum($p.visits), min($p.born) as first,
      max($p.name) as last, count($p.tags) as tagged }"""
    found = read(source)
    assert [(column.name, str(column.type)) for column in found.columns] == [
        ("p.tier", "enum(free, paid)?"), ("p", "I64"), ("p.age", "F64?"), ("p.visits", "F64?"), ("first", "Date?"),
        ("last", "String?"), ("tagged", "I64"),
    ]  # fmt: skip
    assert found.aggregated
    assert isinstance(found.columns[1].value, Aggregate)
    assert not read("match { $p: Person } return { $p }").aggregated


def test_searches_know_field_query_and_numbers() -> None:
    source = 'match { $p: Person fuzzy($p.bio, $t) fuzzy($p.bio, "x", 0) fuzzy($p.bio, "x", $n) } return { $p }'
    first, second, third = read(source, "$t: String, $n: I32").pattern.filters
    bio = PropertyValue("p", PERSON, "bio", PropertyType(ScalarType.STRING, nullable=True))
    assert first == TextSearch(Function.FUZZY, bio, Parameter("t", STRING), 2)
    assert second == TextSearch(Function.FUZZY, bio, Constant(STRING, "x"), 0)
    assert isinstance(third, TextSearch)
    assert third.max_edits == Parameter("n", PropertyType(ScalarType.I32))


def test_the_query_of_nearest_is_rounded_to_what_a_vector_holds() -> None:
    found = read("match { $p: Person } return { $p } order { nearest($p.vec, [1, 0.1, -2]) } limit 1").ranking
    assert isinstance(found, Nearest)
    vector = PropertyType(ScalarType.VECTOR, dimension=3)
    assert found.query == Constant(vector, (1.0, 0.10000000149011612, -2.0))


def test_ordering_keys_are_properties_columns_or_rankings() -> None:
    found = read("match { $p: Person } return { $p.name, $p.age as a } order { a desc, $p.name }")
    alias, name = found.order
    assert alias.value == ColumnRef(1, PropertyType(ScalarType.I32, nullable=True))
    assert alias.descending
    assert name.value == PropertyValue("p", PERSON, "name", STRING)
    assert found.ranking is None


def test_groups_are_ordered_by_their_columns() -> None:
    (key,) = read("match { $p: Person } return { count($p) as n, $p.age as a } order { $p.age }").order
    assert key.value == ColumnRef(1, PropertyType(ScalarType.I32, nullable=True))


def test_the_ranking_is_seen_through_its_alias() -> None:
    source = 'match { $p: Person } return { bm25($p.bio, "x") as s, rrf(bm25($p.bio, "x"), bm25($p.bio, "y")) as r }'
    assert isinstance(read(f"{source} order {{ s }} limit 1").ranking, Bm25)
    fused = read(f"{source} order {{ r, $p.name }} limit 1").ranking
    assert isinstance(fused, Rrf)
    assert fused.k == 60


def test_negations_know_what_they_take_from_outside() -> None:
    source = "match { $p $w:follows $q not { $q memberOf $t not { $t contains $_ $w.weight > 0.5 } } } return { $p }"
    (outer,) = read(source).pattern.negations
    assert outer.outer == ("q", "w")
    assert [variable.name for variable in outer.pattern.variables] == ["t"]
    (inner,) = outer.pattern.negations
    assert inner.outer == ("t", "w")
    assert inner.pattern.variables == ()


def test_headers_are_carried_over() -> None:
    header = 'query q($a: I32?, $v: Vector(3)) @description("d") @instruction("i") @exact'
    found = compile_query(CATALOG, f"{header} {{ match {{ $p: Person }} return {{ $p }} }}")
    vector = PropertyType(ScalarType.VECTOR, dimension=3)
    assert found.params == (ParamSpec("a", PropertyType(ScalarType.I32, nullable=True)), ParamSpec("v", vector))
    assert (found.name, found.description, found.instruction) == ("q", "d", "i")
    assert not isinstance(found, MutationQuery)
    assert found.exact


def test_assigned_constants_are_the_values_to_store() -> None:
    source = """insert Person { name: "ana" age: null score: 0.1 rating: 3 vec: [1, 0.1, 2] marks: [1] tags: []
      photo: "base64:aGk=" born: date("1970-01-02") seen: $s }"""
    (change,) = mutation(source, "$s: DateTime").changes
    assert isinstance(change, InsertRow)
    stored = {value.property.name: value.value for value in change.values}
    values = {name: value.value for name, value in stored.items() if isinstance(value, Constant)}
    assert values == {
        "name": "ana", "age": None, "score": 0.10000000149011612, "rating": 3.0, "vec": (1.0, 0.10000000149011612, 2.0),
        "marks": (1,), "tags": (), "photo": b"hi", "born": 1,
    }  # fmt: skip
    assert stored["seen"] == Parameter("s", PropertyType(ScalarType.DATETIME))
    assert type(values["rating"]) is float


def test_the_ends_of_an_edge_are_its_stored_columns() -> None:
    insert, update = mutation(
        """insert MemberOf { from: $a, to: "core", role: "x" }
        update Follows set { weight: 1 } where from = $a and to != "b" """,
        "$a: String",
    ).changes
    assert isinstance(insert, InsertRow)
    assert (insert.table, insert.source, insert.target) == (MEMBER_OF, Parameter("a", STRING), Constant(STRING, "core"))
    assert [value.property.name for value in insert.values] == ["role"]
    assert isinstance(update, UpdateRows)
    assert update.where == (
        ColumnPredicate("src", STRING, Comparator.EQ, Parameter("a", STRING)),
        ColumnPredicate("dst", STRING, Comparator.NE, Constant(STRING, "b")),
    )


def test_a_mutation_knows_whether_it_deletes() -> None:
    assert mutation('delete Person where name = "x"').deletes
    assert not mutation('insert Person { name: "x" }').deletes


def test_where_a_node_and_an_edge_share_a_name_the_ends_tell_them_apart() -> None:
    shared = compile_source("node Tie { name: String @key }  edge Tie: Tie -> Tie { weight: F64? }")

    def kinds(body: str) -> list[str]:
        found = compile_query(shared, f"query q() {{ {body} }}")
        assert isinstance(found, MutationQuery)
        return [change.table.kind for change in found.changes]

    assert kinds('insert Tie { name: "a" } insert Tie { from: "a", to: "b" }') == ["node", "edge"]
    assert kinds('delete Tie where name = "a" delete Tie where from = "a" delete Tie where id = "a"') == [
        "node",
        "edge",
        "node",
    ]


def test_checking_twice_gives_equal_queries() -> None:
    source = "match { $p $w:follows $q not { $q memberOf $_ } } return { $p.name } order { $w.weight }"
    assert compiled(source) == compiled(source)
