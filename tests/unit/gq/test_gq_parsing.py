"""What the query language accepts, and what the tree then says."""

from __future__ import annotations

import logging
from importlib.resources import files

import pytest
from lark import Lark, logger

from omnigraph.base.errors import BadRequest, NotFound
from omnigraph.lang.diagnostics import Position
from omnigraph.lang.gq import ast, parse_queries, select_query
from omnigraph.lang.gq.ast import Function, LiteralKind, Op
from omnigraph.lang.gq.lexer import GqLexer
from omnigraph.lang.pg.ast import TypeExpr, TypeForm, TypeRef


def parse_read(body: str) -> ast.Read:
    (query,) = parse_queries(f"query q() {{ {body} }}").queries
    assert isinstance(query.body, ast.Read)
    return query.body


def parse_clauses(source: str) -> tuple[ast.Clause, ...]:
    return parse_read(f"match {{ {source} }} return {{ 1 }}").clauses


def parse_clause(source: str) -> ast.Clause:
    (clause,) = parse_clauses(source)
    return clause


def parse_expr(source: str) -> ast.Expr:
    (item,) = parse_read(f"match {{ $p: P }} return {{ {source} }}").projections
    return item.expr


def parse_statements(body: str) -> tuple[ast.Statement, ...]:
    (query,) = parse_queries(f"query q() {{ {body} }}").queries
    assert isinstance(query.body, ast.Mutation)
    return query.body.statements


def integer(value: int) -> ast.Literal:
    return ast.Literal(LiteralKind.INTEGER, value)


def text(value: str) -> ast.Literal:
    return ast.Literal(LiteralKind.STRING, value)


def directed(left: str, edge: str, right: str) -> ast.Traversal:
    return ast.Traversal(ast.Var(left), ast.EdgeRef(edge), ast.Var(right))


def test_the_grammar_is_unambiguous(caplog: pytest.LogCaptureFixture) -> None:
    source = files("omnigraph.lang.gq").joinpath("grammar.lark").read_text(encoding="utf-8")
    with caplog.at_level(logging.DEBUG, logger=logger.name):
        Lark(source, parser="lalr", lexer=GqLexer, maybe_placeholders=True, debug=True)
    assert [record.message for record in caplog.records if "onflict" in record.message] == []


@pytest.mark.parametrize("source", ["", " \t\r\n", "// only a comment", "/* a */ /* b\n */"])
def test_a_text_without_queries_is_an_empty_file(source: str) -> None:
    assert parse_queries(source).queries == ()


def test_comments_and_blanks_separate_tokens_anywhere() -> None:
    spread = "query/*a*/q//b\n($n:\r\nI32\t?)/**/{match{$p/* x */:P{a:$n}}return{$p . a,1}limit/**/3}"
    tidy = "query q($n: I32?) { match { $p: P { a: $n } } return { $p.a, 1 } limit 3 }"
    assert parse_queries(spread) == parse_queries(tidy)


def test_the_example_of_the_language_reads_as_it_looks() -> None:
    source = """query team_mates($n: String, $min: F64) @description("Who $n follows, strongest first") {
      match { $p: Person { name: $n }
              $p $w:follows $q
              $w.weight >= $min
              not { $q memberOf $_ } }
      return { $q.name, $w.weight as strength } order { strength desc } limit 10
    }"""
    (query,) = parse_queries(source).queries
    string, f64 = TypeExpr(TypeForm.SCALAR, "String"), TypeExpr(TypeForm.SCALAR, "F64")
    assert query == ast.Query(
        "team_mates",
        (ast.Param("n", string), ast.Param("min", f64)),
        ast.Read(
            (
                ast.Binding(ast.Var("p"), TypeRef("Person"), (ast.Assignment("name", ast.Var("n")),)),
                ast.Traversal(ast.Var("p"), ast.EdgeRef("follows"), ast.Var("q"), ast.Var("w")),
                ast.Filter(ast.PropertyRef("w", "weight"), Op.GE, ast.Var("min")),
                ast.Negation((directed("q", "memberOf", "_"),)),
            ),
            (
                ast.Projection(ast.PropertyRef("q", "name")),
                ast.Projection(ast.PropertyRef("w", "weight"), "strength"),
            ),
            (ast.OrderKey(ast.Ident("strength"), descending=True),),
            10,
        ),
        "Who $n follows, strongest first",
    )


def test_annotations_may_stand_in_any_order() -> None:
    (one,) = parse_queries(
        'query q() @exact @instruction("i") @description("d") { match { $p: P } return { 1 } }'
    ).queries
    assert (one.description, one.instruction, one.exact) == ("d", "i", True)


@pytest.mark.parametrize(
    ("source", "type_"),
    [
        ("String", TypeExpr(TypeForm.SCALAR, "String")),
        ("U64?", TypeExpr(TypeForm.SCALAR, "U64", nullable=True)),
        ("[Date]", TypeExpr(TypeForm.LIST, "Date")),
        ("[Date]?", TypeExpr(TypeForm.LIST, "Date", nullable=True)),
        ("Vector(8)", TypeExpr(TypeForm.VECTOR, dimension=8)),
        ("Vector ( 8 ) ?", TypeExpr(TypeForm.VECTOR, dimension=8, nullable=True)),
        ("Blob", TypeExpr(TypeForm.SCALAR, "Blob")),
    ],
)
def test_parameters_have_a_type_and_may_be_nullable(source: str, type_: TypeExpr) -> None:
    (query,) = parse_queries(f"query q($x: {source}) {{ match {{ $p: P }} return {{ 1 }} }}").queries
    assert query.params == (ast.Param("x", type_),)


@pytest.mark.parametrize(
    "word", ["contains", "starts_with", "follows", "match", "order", "as", "true", "null", "count"]
)
def test_a_word_between_two_bare_variables_is_an_edge(word: str) -> None:
    assert parse_clause(f"$q {word} $m") == directed("q", word, "m")


@pytest.mark.parametrize("word", ["contains", "follows", "limit"])
def test_an_edge_may_be_undirected_named_and_walked_several_times(word: str) -> None:
    plain = ast.Traversal(ast.Var("a"), ast.EdgeRef(word, True), ast.Var("b"))
    assert parse_clause(f"$a <{word}> $b") == plain
    assert parse_clause(f"$a<{word}>$b") == plain
    hops = ast.Traversal(ast.Var("a"), ast.EdgeRef(word), ast.Var("b"), None, ast.Hops(1, 3))
    assert parse_clause(f"$a {word}{{1,3}} $b") == hops
    full = ast.Traversal(ast.Var("a"), ast.EdgeRef(word, True), ast.Var("b"), ast.Var("w"), ast.Hops(2, None))
    assert parse_clause(f"$a $w:<{word}> {{ 2 , }} $b") == full


@pytest.mark.parametrize("op", list(Op))
def test_every_operator_compares_a_property_with_any_expression(op: Op) -> None:
    left = ast.PropertyRef("p", "name")
    for source, right in (
        ("$x", ast.Var("x")),
        ("$q.name", ast.PropertyRef("q", "name")),
        ('"a"', text("a")),
        ("word", ast.Ident("word")),
        ("now()", ast.Now()),
    ):
        assert parse_clause(f"$p.name {op.value} {source}") == ast.Filter(left, op, right)


@pytest.mark.parametrize("op", list(Op))
def test_a_parameter_may_stand_on_the_left_of_anything_but_a_bare_variable(op: Op) -> None:
    assert parse_clause(f"$x {op.value} $p.name") == ast.Filter(ast.Var("x"), op, ast.PropertyRef("p", "name"))
    assert parse_clause(f'$x {op.value} "a"') == ast.Filter(ast.Var("x"), op, text("a"))


def test_less_than_a_name_is_no_undirected_edge() -> None:
    assert parse_clauses("$a < word $b: P") == (
        ast.Filter(ast.Var("a"), Op.LT, ast.Ident("word")),
        ast.Binding(ast.Var("b"), TypeRef("P")),
    )


def test_clauses_need_no_separator() -> None:
    source = '$a: P $a.x = $b $a knows $b $a.x contains $c not { $a < 3 } search($a.x, "y") 1 = $d "x" = word $e: Q'
    kinds = [type(clause) for clause in parse_clauses(source)]
    assert kinds == [
        ast.Binding, ast.Filter, ast.Traversal, ast.Filter, ast.Negation, ast.TextMatch, ast.Filter, ast.Filter,
        ast.Binding,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("source", "expr"),
    [
        ("-3", integer(-3)),
        ("-0.5", ast.Literal(LiteralKind.FLOAT, -0.5)),
        ("18446744073709551615", integer(2**64 - 1)),
        ("true", ast.Literal(LiteralKind.BOOL, True)),
        ("null", ast.Literal(LiteralKind.NULL, None)),
        ('date("2024-01-31")', ast.Literal(LiteralKind.DATE, "2024-01-31")),
        ('datetime ( "x" )', ast.Literal(LiteralKind.DATETIME, "x")),
        ("[]", ast.ListLiteral(())),
        ('[1, -2, "a"]', ast.ListLiteral((integer(1), integer(-2), text("a")))),
        ("[[1], []]", ast.ListLiteral((ast.ListLiteral((integer(1),)), ast.ListLiteral(())))),
        ('[date("x")]', ast.ListLiteral((ast.Literal(LiteralKind.DATE, "x"),))),
        ("now()", ast.Now()),
        ("now", ast.Ident("now")),
        ("count", ast.Ident("count")),
        ("count($p)", ast.Call(Function.COUNT, (ast.Var("p"),))),
        ("order", ast.Ident("order")),
        ("matchX", ast.Ident("matchX")),
        ("$match.return", ast.PropertyRef("match", "return")),
        ("$p.not", ast.PropertyRef("p", "not")),
        ('fuzzy($p.a, "x", 1)', ast.Call(Function.FUZZY, (ast.PropertyRef("p", "a"), text("x"), integer(1)))),
    ],
)
def test_expressions(source: str, expr: ast.Expr) -> None:
    assert parse_expr(source) == expr


def test_literals_of_different_kinds_are_different() -> None:
    found = [parse_expr(source) for source in ("1", "1.0", "true", '"1"', 'date("1")', 'datetime("1")')]
    assert all(a != b for i, a in enumerate(found) for b in found[i + 1 :])


def test_string_escapes_are_those_of_the_schema_language() -> None:
    assert parse_expr(r'"a\"b\\c\nd\re\tf"') == text('a"b\\c\nd\re\tf')


def test_returned_items_and_assignments_need_no_commas() -> None:
    spaced = parse_read("match { $p: P } return { $p.a $p.b as x count($p) as n 3 }")
    assert spaced == parse_read("match { $p: P } return { $p.a, $p.b as x, count($p) as n, 3 }")
    assert parse_statements("insert P { a: 1 b: true c: $x d: now() e: [] }") == parse_statements(
        "insert P { a: 1, b: true, c: $x, d: now(), e: [] }"
    )


def test_a_binding_may_end_its_map_with_a_comma() -> None:
    assert parse_clause("$p: P { a: 1, b: 2, }") == parse_clause("$p: P { a: 1, b: 2 }")


def test_ascending_is_the_default_order() -> None:
    body = parse_read("match { $p: P } return { 1 } order { a asc, b, $p.c desc, count }")
    assert [key.descending for key in body.order] == [False, False, True, False]


def test_statements_read_as_they_look() -> None:
    assert parse_statements('update P set { a: null, b: $x } where a >= 3 and from = "x" insert E { from: $x }') == (
        ast.Update(
            TypeRef("P"),
            (ast.Assignment("a", ast.Literal(LiteralKind.NULL, None)), ast.Assignment("b", ast.Var("x"))),
            (ast.Predicate("a", Op.GE, integer(3)), ast.Predicate("from", Op.EQ, text("x"))),
        ),
        ast.Insert(TypeRef("E"), (ast.Assignment("from", ast.Var("x")),)),
    )
    assert parse_statements("delete P where and = 1 and and < 2 delete P where delete != now()") == (
        ast.Delete(TypeRef("P"), (ast.Predicate("and", Op.EQ, integer(1)), ast.Predicate("and", Op.LT, integer(2)))),
        ast.Delete(TypeRef("P"), (ast.Predicate("delete", Op.NE, ast.Now()),)),
    )


def test_positions_count_lines_and_columns_from_one() -> None:
    source = "// one\nquery q() {\n\tmatch { $p: P { a: 1 }\n  $p $w:knows{1,2} $q\n  not { $q.a > 3 } }\n"
    source += "  return { $p.b as x } }"
    (query,) = parse_queries(source).queries
    assert query.at == Position(2, 7)
    assert isinstance(query.body, ast.Read)
    binding, traversal, negation = query.body.clauses
    assert isinstance(binding, ast.Binding)
    assert isinstance(traversal, ast.Traversal)
    assert isinstance(negation, ast.Negation)
    assert (binding.at, binding.type.at, binding.properties[0].at) == (
        Position(3, 10),
        Position(3, 14),
        Position(3, 18),
    )
    assert traversal.edge_variable is not None
    assert traversal.hops is not None
    found = traversal.left.at, traversal.edge_variable.at, traversal.edge.at, traversal.hops.at, traversal.right.at
    assert found == (Position(4, 3), Position(4, 6), Position(4, 9), Position(4, 15), Position(4, 20))
    assert (negation.at, negation.clauses[0].at) == (Position(5, 3), Position(5, 9))
    (item,) = query.body.projections
    assert isinstance(item.expr, ast.PropertyRef)
    assert (item.at, item.expr.name_at, item.alias_at) == (Position(6, 12), Position(6, 15), Position(6, 20))


TWO = "query one() { match { $p: P } return { 1 } } query two() { delete P where a = 1 }"


def test_a_query_is_found_by_its_name() -> None:
    assert select_query(parse_queries(TWO), "two").name == "two"
    assert select_query(parse_queries("query only() { delete P where a = 1 }")).name == "only"


def test_an_unknown_query_is_named_with_the_nearest_one() -> None:
    with pytest.raises(NotFound, match=r"(?m)^query 'tow' not found$") as refused:
        select_query(parse_queries(TWO), "tow")
    assert refused.value.hint == "Did you mean 'two'?"


def test_several_queries_and_no_name_list_the_names() -> None:
    with pytest.raises(BadRequest, match="several queries: one, two"):
        select_query(parse_queries(TWO))


def test_no_query_at_all_is_said() -> None:
    with pytest.raises(BadRequest, match="holds no query"):
        select_query(parse_queries("// nothing"))
