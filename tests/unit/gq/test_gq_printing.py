"""How a query looks when we write it."""

from __future__ import annotations

from omnigraph.lang.gq import parse_queries, print_queries

UNTIDY = """
query team_mates ($n:String,$min :F64?, $v: Vector(3), $l:[I32]?) @exact @instruction("say \\"hi\\"")
  @description("Who") { match{$p:Person{name:$n,age:-3,} $p $w:follows $q $w.weight>=$min $p<follows>{1,3}$z
  $a contains $b  $p.tags contains"x" search($p.bio , "x") fuzzy($p.bio,$n,2)
  not{$q memberOf $_ not{$q.limit=1.50}} ["a","b"] contains $q.name $b.born>date("2024-01-31") } // why
  return{$q.name $w.weight as strength,count($p) as order now() as t}order{order desc,$q.name asc}limit 10 }
query m(){insert Person{name:"x" age:null tags:[]}update Person set{seen:now()}where set=3 and and=true insert X{}}
query d(){delete Person where name!=$n}
"""

TIDY = """\
query team_mates($n: String, $min: F64?, $v: Vector(3), $l: [I32]?) @description("Who") @instruction("say \\"hi\\"") @exact {
  match {
    $p: Person { name: $n, age: -3 }
    $p $w:follows $q
    $w.weight >= $min
    $p <follows>{1,3} $z
    $a contains $b
    $p.tags contains "x"
    search($p.bio, "x")
    fuzzy($p.bio, $n, 2)
    not {
      $q memberOf $_
      not {
        $q.limit = 1.5
      }
    }
    ["a", "b"] contains $q.name
    $b.born > date("2024-01-31")
  }
  return { $q.name, $w.weight as strength, count($p) as order, now() as t }
  order { order desc, $q.name }
  limit 10
}

query m() {
  insert Person { name: "x", age: null, tags: [] }
  update Person set { seen: now() } where set = 3 and and = true
  insert X {}
}

query d() {
  delete Person where name != $n
}
"""  # noqa: E501


def test_queries_are_written_one_after_the_other() -> None:
    assert print_queries(parse_queries(UNTIDY)) == TIDY


def test_an_empty_file_is_an_empty_text() -> None:
    assert print_queries(parse_queries("// nothing")) == ""
