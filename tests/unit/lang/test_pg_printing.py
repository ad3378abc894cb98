"""How a schema looks when we write it."""

from __future__ import annotations

import pytest

from omnigraph.lang.pg import parse_schema, print_schema
from omnigraph.lang.pg.printer import print_value

UNTIDY = """
interface Named{name:String@index}  // who
node Author @description("A \\"writer\\"") implements Named , Other {
  handle: String @key  tier: enum(gold,silver) @range(rating,0.0 .. 5.0)
  vec: Vector(8)? @embed("bio",model="m") @index }
edge Wrote:Author->Book @card(0..) { year: I32? @unique(src,dst) }
edge Likes: Author -> Book @note(x)
node Empty{}
"""

TIDY = """\
interface Named {
  name: String @index
}

node Author @description("A \\"writer\\"") implements Named, Other {
  handle: String @key
  tier: enum(gold, silver)
  vec: Vector(8)? @embed("bio", model="m") @index
  @range(rating, 0.0..5.0)
}

edge Wrote: Author -> Book @card(0..) {
  year: I32?
  @unique(src, dst)
}

edge Likes: Author -> Book @note(x)

node Empty {}
"""


def test_a_schema_is_written_one_declaration_after_the_other() -> None:
    assert print_schema(parse_schema(UNTIDY)) == TIDY


def test_an_empty_schema_is_an_empty_text() -> None:
    assert print_schema(parse_schema("// nothing")) == ""


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (1e16, "10000000000000000.0"), (1e-7, "0.0000001"), (-0.0, "-0.0"), (5.0, "5.0"), (True, "true"), (3, "3"),
        ('a"\\\n\r\t', '"a\\"\\\\\\n\\r\\t"'),
    ],
)  # fmt: skip
def test_values_are_written_without_exponents_and_with_escapes(value: str | float, written: str) -> None:
    assert print_value(value) == written
