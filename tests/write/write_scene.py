"""A small graph of people, teams and what joins them, and words to change it with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from omnigraph import api
from omnigraph.engine.view import View
from omnigraph.engine.write import parted
from omnigraph.engine.write.changes import Append
from omnigraph.engine.write.changeset import ChangeSet, TableChange
from omnigraph.engine.write.load import LoadResult
from omnigraph.engine.write.spool import RowSpool
from omnigraph.engine.write.validate import check
from omnigraph.engine.write.validate import stored as stored_side
from omnigraph.engine.write.validate.check import Check
from omnigraph.engine.write.validate.ids import drop_superseded
from omnigraph.engine.write.validate.stages import validate
from omnigraph.graph import Graph
from omnigraph.records.decode import POSITION
from omnigraph.records.violations import Findings
from omnigraph.sets.scratch import Scratch
from omnigraph.settings import Settings

SCHEMA = """
node Person {
  name: String @key
  email: String? @unique
  age: I32?
  @range(age, 0..150)
}
node Team {
  code: String @key
}
node Note {
  text: String
  slug: String?
  lang: String?
  @unique(slug, lang)
}
edge Follows: Person -> Person {
  weight: F64?
}
edge MemberOf: Person -> Team @card(0..1)
edge Leads: Person -> Team @card(1..2)
"""

PEOPLE = {"ana": "a@x", "bo": "b@x", "cy": None}


def people(rows: dict[str, str | None], age: int | None = None) -> pa.Table:
    return pa.table(
        {"id": list(rows), "name": list(rows), "email": pa.array(list(rows.values()), pa.string())}
        | {"age": pa.array([age] * len(rows), pa.int32())}
    )


def teams(*codes: str) -> pa.Table:
    return pa.table({"id": list(codes), "code": list(codes)})


def edges(**ends: tuple[str, str]) -> pa.Table:
    return pa.table({"id": list(ends), "src": [e[0] for e in ends.values()], "dst": [e[1] for e in ends.values()]})


def town(folder: Path, settings: Settings | None = None) -> Graph:
    """ana, bo and cy; core and web; ana follows bo, bo is a member of core and ana leads it."""
    graph = Graph.init(str(folder / "town"), SCHEMA, settings=settings)
    graph.write(
        {
            "node:Person": Append(people(PEOPLE)),
            "node:Team": Append(teams("core", "web")),
            "edge:Follows": Append(edges(f1=("ana", "bo"))),
            "edge:MemberOf": Append(edges(m1=("bo", "core"))),
            "edge:Leads": Append(edges(l1=("ana", "core"))),
        }
    )
    return graph


class OnSpark(api.Graph):
    """A graph whose loads go through Spark."""

    def load(self, files: Any, **options: Any) -> LoadResult:
        return super().load(files, engine="spark", **options)


ON_SPARK = pytest.param("on spark", marks=[pytest.mark.spark, pytest.mark.slow])


def spool_of(view: View, table_key: str, rows: pa.Table, first: int = 1, scratch: Scratch | None = None) -> RowSpool:
    """Rows as a decoder would hand them over: whole columns, and a position for each."""
    wanted = view.catalog.arrow_schema(table_key)
    columns = [
        rows.column(f.name).cast(f.type) if f.name in rows.column_names else pa.nulls(rows.num_rows, f.type)
        for f in wanted
    ]
    positions = pa.array(range(first, first + rows.num_rows), pa.int64())
    schema = wanted.append(pa.field(POSITION, pa.int64(), nullable=False))
    table = pa.table([*columns, positions], schema=schema)
    if scratch is None:
        return RowSpool.of(table)
    return RowSpool(schema, scratch).extend(table.to_batches())


def change(view: View, table_key: str, rows: pa.Table | None = None, **how: Any) -> TableChange:
    first = how.pop("first", 1)
    deletes = pa.array(how.pop("delete", []), pa.string())
    spool = None if rows is None else spool_of(view, table_key, rows, first)
    return TableChange(table_key, spool, deletes, **how)


def problems(graph: Graph, *changes: TableChange, merge: bool = False) -> list[str]:
    """What validation says, as `position reason message`."""
    return findings(graph, *changes, merge=merge)[0]


def findings(
    graph: Graph, *changes: TableChange, merge: bool = False, listed: int = 20
) -> tuple[list[str], frozenset[str]]:
    found = Findings(listed)
    changeset = ChangeSet({c.table_key: c for c in changes})
    with Scratch(graph.settings) as scratch:
        if merge:
            drop_superseded(Check(graph.view(), changeset, scratch, found))
        read = validate(Check(graph.view(), changeset, scratch, found))
    stage = found.first_stage()
    told = [] if stage is None else found.listed(stage)
    return [f"{v.position if v.position < 1 << 60 else '-'} {v.reason}: {v.message}" for v in told], read


def notes(*rows: tuple[str, str | None, str | None]) -> pa.Table:
    """`(id, slug, lang)` each."""
    ids, slugs, langs = (list(column) for column in zip(*rows, strict=True))
    texts = pa.array(["…"] * len(ids))
    return pa.table(
        {"id": ids, "text": texts, "slug": pa.array(slugs, pa.string()), "lang": pa.array(langs, pa.string())}
    )


WAYS = ("looked-up", "scanned", "spilled", "in parts")


def take_way(patch: pytest.MonkeyPatch, way: str) -> Settings:
    """Rows looked up one by one, tables read whole, everything on disk as well, or compared part by part."""
    if way != "looked-up":
        patch.setattr(check, "LOOKUP_BY_FILTER_MAX", -1)
        patch.setattr(stored_side, "LOOKUP_BY_FILTER_MAX", -1)
    if way == "in parts":
        patch.setattr(parted, "_BYTES_PER_ROW", 1 << 40)
    return Settings.resolve(limits_memory_bytes=1 if way in ("spilled", "in parts") else None)


def person(name: str, **data: Any) -> dict[str, Any]:
    return {"type": "Person", "data": {"name": name, **data}}


def team(code: str) -> dict[str, Any]:
    return {"type": "Team", "data": {"code": code}}


def follows(src: str, dst: str, **data: Any) -> dict[str, Any]:
    return {"edge": "Follows", "from": src, "to": dst, "data": data}


def lines_file(folder: Path, name: str, *lines: dict[str, Any] | str) -> str:
    """A file of these lines; a text stands for itself."""
    path = folder / name
    path.write_text("".join((x if isinstance(x, str) else json.dumps(x)) + "\n" for x in lines), encoding="utf-8")
    return str(path)


def stored(graph: Graph, table_key: str, *columns: str, branch: str | None = None) -> list[tuple[Any, ...]]:
    """The rows of a table, sorted."""
    rows = graph.view(branch).table(table_key).read(list(columns) or ["id"]).to_pylist()
    return sorted(tuple(row.values()) for row in rows)
