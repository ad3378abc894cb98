"""The rules across rows, each one SQL text over named relations.

Every text keeps to what DuckDB and Spark SQL read alike: each engine registers its relations under the names used here
and gets the same rows. Columns are `id`, `position`, `source`, `endpoint` and, for the columns of a constraint,
`v0`, `v1`, … so that no property name has to be quoted. Python makes the messages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Rule:
    """A question. `keys` are the columns in which rows of the relations must agree to meet."""

    sql: str
    keys: Mapping[str, Sequence[str]]


REPEATED_IDS = Rule(
    """
SELECT i.id, i.position, r.times
FROM input i JOIN (SELECT id, count(*) AS times FROM input GROUP BY id HAVING count(*) > 1) r ON i.id = r.id
""",
    {"input": ["id"]},
)

SUPERSEDED = Rule(
    """
SELECT i.position
FROM input i JOIN (SELECT id, max(position) AS last FROM input GROUP BY id HAVING count(*) > 1) r ON i.id = r.id
WHERE i.position < r.last
""",
    {"input": ["id"]},
)

STORED_IDS = Rule(
    """
SELECT i.id, i.position FROM input i WHERE EXISTS (SELECT 1 FROM stored s WHERE s.id = i.id)
""",
    {"input": ["id"], "stored": ["id"]},
)

# `nodes` are those that exist after the write.
MISSING_ENDPOINTS = Rule(
    """
WITH nodes AS (
  SELECT id FROM fresh_nodes
  UNION ALL
  SELECT s.id FROM stored_nodes s WHERE NOT EXISTS (SELECT 1 FROM deleted_nodes d WHERE d.id = s.id)
)
SELECT e.id, e.position, e.endpoint FROM edges e WHERE NOT EXISTS (SELECT 1 FROM nodes n WHERE n.id = e.endpoint)
""",
    {"edges": ["endpoint"], "fresh_nodes": ["id"], "stored_nodes": ["id"], "deleted_nodes": ["id"]},
)

# Which of the missing nodes were left out of the write, and where they stand.
REFUSED_ENDPOINTS = Rule(
    """
SELECT m.id, m.position, m.endpoint, min(r.position) AS refused_at
FROM missing m LEFT JOIN refused r ON r.id = m.endpoint
GROUP BY m.id, m.position, m.endpoint
""",
    {"missing": ["endpoint"], "refused": ["id"]},
)


def surviving(columns: Sequence[str], survives: bool = True) -> Rule:
    """The stored rows that stay as they are, or those that do not; `gone` are the ids replaced or deleted."""
    names, which = ", ".join(f"s.{name}" for name in columns), "NOT EXISTS" if survives else "EXISTS"
    sql = f"SELECT {names} FROM stored s WHERE {which} (SELECT 1 FROM gone g WHERE g.id = s.id)"
    return Rule(sql, {"stored": ["id"], "gone": ["id"]})


def clashing_values(width: int) -> Rule:
    """The values of `width` columns that more than one row would hold, at least one of them new.

    `stored` are the stored rows that survive.
    """
    names = _names(width)
    sql = f"""
SELECT {names} FROM (
  SELECT {_columns("i", width)}, 1 AS fresh FROM input i WHERE {_complete("i", width)}
  UNION ALL
  SELECT {_columns("s", width)}, 0 AS fresh FROM stored s WHERE {_complete("s", width)}
) held
GROUP BY {names} HAVING count(*) > 1 AND max(fresh) = 1
"""
    return Rule(sql, {"input": _values(width), "stored": _values(width)})


def clashing_rows(width: int) -> Rule:
    """Each new row that holds one of the `clashing` values, with the id of the first other holder.

    Stored rows come before new ones, those in the order of their position.
    """
    names = _names(width)
    sql = f"""
WITH held AS (
  SELECT {_columns("i", width)}, i.id, i.position, 1 AS fresh FROM input i
  UNION ALL
  SELECT {_columns("s", width)}, s.id, CAST(-1 AS BIGINT) AS position, 0 AS fresh FROM stored s
),
ranked AS (
  SELECT {_columns("h", width)}, h.id, h.position, h.fresh,
         row_number() OVER (PARTITION BY {_columns("h", width)} ORDER BY h.fresh, h.position, h.id) AS place
  FROM held h JOIN clashing c ON {_equal("h", "c", width)}
),
firsts AS (
  SELECT {names}, max(CASE WHEN place = 1 THEN id END) AS first, max(CASE WHEN place = 2 THEN id END) AS second
  FROM ranked WHERE place <= 2 GROUP BY {names}
)
SELECT {_columns("r", width)}, r.id, r.position,
       f.first AS one, CASE WHEN r.place <= 2 THEN f.second ELSE r.id END AS other
FROM ranked r JOIN firsts f ON {_equal("r", "f", width)}
WHERE r.fresh = 1
"""
    return Rule(sql, {name: _values(width) for name in ("input", "stored", "clashing")})


def cardinality(lowest: int, highest: int | None) -> Rule:
    """Sources that the write touched and that end up with too few or too many edges.

    `kept` are the stored edges that survive, `lost` those that do not.
    """
    too_many = "" if highest is None else f" OR count(r.source) > {highest}"
    sql = f"""
WITH resulting AS (
  SELECT source, position FROM input
  UNION ALL
  SELECT source, CAST(NULL AS BIGINT) AS position FROM kept
),
touched AS (
  SELECT source FROM input
  UNION
  SELECT source FROM lost
)
SELECT t.source, count(r.source) AS edges, min(r.position) AS position
FROM touched t LEFT JOIN resulting r ON r.source = t.source
GROUP BY t.source HAVING count(r.source) < {lowest}{too_many}
"""
    return Rule(sql, {"input": ["source"], "kept": ["source"], "lost": ["source"]})


def _values(width: int) -> list[str]:
    return [f"v{k}" for k in range(width)]


def _names(width: int) -> str:
    return ", ".join(f"v{k}" for k in range(width))


def _columns(owner: str, width: int) -> str:
    return ", ".join(f"{owner}.v{k}" for k in range(width))


def _complete(owner: str, width: int) -> str:
    return " AND ".join(f"{owner}.v{k} IS NOT NULL" for k in range(width))


def _equal(left: str, right: str, width: int) -> str:
    return " AND ".join(f"{left}.v{k} = {right}.v{k}" for k in range(width))
