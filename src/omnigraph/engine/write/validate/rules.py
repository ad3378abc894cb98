"""The rules across rows, each one SQL text over named relations.

Every text keeps to what DuckDB and Spark SQL read alike: each engine registers its relations under the names used here
and gets the same rows. Columns are `id`, `position`, `source`, `endpoint` and, for the columns of a constraint,
`v0`, `v1`, … so that no property name has to be quoted. Python makes the messages.
"""

from __future__ import annotations

REPEATED_IDS = """
SELECT i.id, i.position, r.times
FROM input i JOIN (SELECT id, count(*) AS times FROM input GROUP BY id HAVING count(*) > 1) r ON i.id = r.id
"""

SUPERSEDED = """
SELECT i.position
FROM input i JOIN (SELECT id, max(position) AS last FROM input GROUP BY id HAVING count(*) > 1) r ON i.id = r.id
WHERE i.position < r.last
"""

STORED_IDS = """
SELECT i.id, i.position FROM input i WHERE EXISTS (SELECT 1 FROM stored s WHERE s.id = i.id)
"""

# `nodes` are those that exist after the write.
MISSING_ENDPOINTS = """
WITH nodes AS (
  SELECT id FROM fresh_nodes
  UNION ALL
  SELECT s.id FROM stored_nodes s WHERE NOT EXISTS (SELECT 1 FROM deleted_nodes d WHERE d.id = s.id)
)
SELECT e.id, e.position, e.endpoint FROM edges e WHERE NOT EXISTS (SELECT 1 FROM nodes n WHERE n.id = e.endpoint)
"""

# `gone` are the ids whose stored rows do not survive the write: replaced or deleted.
SURVIVING_EDGES = """
SELECT s.id, CAST(NULL AS BIGINT) AS position, s.endpoint
FROM stored s WHERE NOT EXISTS (SELECT 1 FROM gone g WHERE g.id = s.id)
"""

# Which of the missing nodes were left out of the write, and where they stand.
REFUSED_ENDPOINTS = """
SELECT m.id, m.position, m.endpoint, min(r.position) AS refused_at
FROM missing m LEFT JOIN refused r ON r.id = m.endpoint
GROUP BY m.id, m.position, m.endpoint
"""


def clashing_values(width: int) -> str:
    """The values of `width` columns that more than one row would hold, at least one of them new."""
    names, input_, stored = _names(width), _columns("i", width), _columns("s", width)
    return f"""
SELECT {names} FROM (
  SELECT {input_}, 1 AS fresh FROM input i WHERE {_complete("i", width)}
  UNION ALL
  SELECT {stored}, 0 AS fresh FROM stored s
  WHERE {_complete("s", width)} AND NOT EXISTS (SELECT 1 FROM gone g WHERE g.id = s.id)
) held
GROUP BY {names} HAVING count(*) > 1 AND max(fresh) = 1
"""


def clashing_rows(width: int) -> str:
    """Each new row that holds one of the `clashing` values, with the id of the first other holder.

    Stored rows come before new ones, those in the order of their position.
    """
    names = _names(width)
    return f"""
WITH held AS (
  SELECT {_columns("i", width)}, i.id, i.position, 1 AS fresh FROM input i
  UNION ALL
  SELECT {_columns("s", width)}, s.id, CAST(-1 AS BIGINT) AS position, 0 AS fresh FROM stored s
  WHERE NOT EXISTS (SELECT 1 FROM gone g WHERE g.id = s.id)
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


def cardinality(lowest: int, highest: int | None) -> str:
    """Sources that the write touched and that end up with too few or too many edges.

    `gone` are the ids of stored edges that do not survive.
    """
    too_many = "" if highest is None else f" OR count(r.source) > {highest}"
    return f"""
WITH kept AS (
  SELECT s.source FROM stored s WHERE NOT EXISTS (SELECT 1 FROM gone g WHERE g.id = s.id)
),
resulting AS (
  SELECT source, position FROM input
  UNION ALL
  SELECT source, CAST(NULL AS BIGINT) AS position FROM kept
),
touched AS (
  SELECT source FROM input
  UNION
  SELECT s.source FROM stored s WHERE EXISTS (SELECT 1 FROM gone g WHERE g.id = s.id)
)
SELECT t.source, count(r.source) AS edges, min(r.position) AS position
FROM touched t LEFT JOIN resulting r ON r.source = t.source
GROUP BY t.source HAVING count(r.source) < {lowest}{too_many}
"""


def _names(width: int) -> str:
    return ", ".join(f"v{k}" for k in range(width))


def _columns(owner: str, width: int) -> str:
    return ", ".join(f"{owner}.v{k}" for k in range(width))


def _complete(owner: str, width: int) -> str:
    return " AND ".join(f"{owner}.v{k} IS NOT NULL" for k in range(width))


def _equal(left: str, right: str, width: int) -> str:
    return " AND ".join(f"{left}.v{k} = {right}.v{k}" for k in range(width))
