"""The parts of the naive evaluator that know no query: values, comparisons, walks, aggregates, tokens."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction
from typing import Any

from omnigraph.catalog.types import PropertyType, ScalarType
from omnigraph.catalog.values import as_float, datetime_text
from omnigraph.lang.gq.ast import Function
from omnigraph.plan.typed import Comparator
from omnigraph.plan.values import date_days, datetime_ms

JSON_SAFE = 2**53 - 1


def stored(type_: PropertyType, value: Any) -> Any:
    """A value of a load as the engine holds it: dates are integers, lists tuples, an F32 what 32 bits hold."""
    if isinstance(value, list | tuple):
        inner = PropertyType(ScalarType.F32 if type_.is_vector else type_.scalar)
        return tuple(stored(inner, item) for item in value)
    if type_.scalar is ScalarType.DATE and isinstance(value, str):
        return date_days(value)
    if type_.scalar is ScalarType.DATETIME and isinstance(value, str):
        return datetime_ms(value)
    if type_.scalar in (ScalarType.F32, ScalarType.F64) and value is not None:
        return as_float(type_.scalar, value)
    return value


def shown(type_: PropertyType, value: Any) -> Any:
    """A value as JSON rows have it."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, tuple):
        inner = PropertyType(ScalarType.F32 if type_.is_vector else type_.scalar)
        return [shown(inner, item) for item in value]
    if type_.scalar is ScalarType.DATE:
        return (date(1970, 1, 1) + timedelta(days=value)).isoformat()
    if type_.scalar is ScalarType.DATETIME:
        return datetime_text(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return str(value) if isinstance(value, int) and abs(value) > JSON_SAFE else value


def compare(comparator: Comparator, left: Any, right: Any) -> bool:
    """Whether the comparison is TRUE; with NULL it never is. Python compares int with float exactly."""
    if left is None or right is None:
        return False
    match comparator:
        case Comparator.MEMBER:
            return any(item is not None and item == right for item in left)
        case Comparator.SUBSTRING:
            return right in left
        case Comparator.STARTS_WITH:
            return left.startswith(right)
        case Comparator.EQ:
            return left == right
        case Comparator.NE:
            return left != right
        case Comparator.LT:
            return rank(left) < rank(right)
        case Comparator.LE:
            return rank(left) <= rank(right)
        case Comparator.GT:
            return rank(left) > rank(right)
        case Comparator.GE:
            return rank(left) >= rank(right)


def rank(value: Any) -> tuple[Any, ...]:
    """Something that orders as the value does: NULL first, texts by their UTF-8 bytes."""
    return () if value is None else (value.encode() if isinstance(value, str) else value,)


def aggregate(function: Function, present: Sequence[Any]) -> Any:
    """Of the values that are not NULL."""
    if function is Function.COUNT:
        return len(present)
    if not present:
        return None
    match function:
        case Function.MIN:
            return min(present, key=rank)
        case Function.MAX:
            return max(present, key=rank)
    total = sum(Fraction(value) for value in present)
    exact = total / len(present) if function is Function.AVG else total
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


Pair = tuple[str, str]


def reached(start: str, steps: set[Pair], hops: tuple[int, int], *, chains: bool) -> set[str]:
    """The ends of a walk from `start`: breadth-first, each node at the hop where it is first discovered.

    Between different types there is no second hop. Between equal types the start counts as visited from the beginning,
    so only a self-loop, which is seen at hop 1, gives the start itself.
    """
    found: set[str] = set()
    frontier, visited = {start}, {start}
    for hop in range(1, hops[1] + 1):
        if not frontier or (hop > 1 and not chains):
            break
        met = {end for begin, end in steps if begin in frontier}
        if hop >= hops[0]:
            found |= met if hop == 1 else met - visited
        frontier = met - visited
        visited |= met
    return found


def cosine_distance(vector: Sequence[float] | None, query: Sequence[float]) -> float | None:
    """Between 0 and 2; None where there is no vector or it has no direction."""
    size = math.sqrt(math.fsum(q * q for q in query))
    if size == 0:
        raise ValueError("a zero-norm query vector is an error")
    norm = math.sqrt(math.fsum(v * v for v in vector)) if vector is not None else 0.0
    if vector is None or norm == 0:
        return None
    return 1 - math.fsum(v * q for v, q in zip(vector, query, strict=True)) / (norm * size)


@dataclass(frozen=True)
class Search:
    """What the evaluator has to be told about text and vectors."""

    matches: Callable[[Function, str, str, int], bool]
    scores: Callable[[dict[str, str], str], dict[str, float]]
    """bm25: texts by id and a query to scores by id, of those that match."""
    embed: Callable[[str, int], Sequence[float]]


def searching_by(
    tokens: Callable[[str], Sequence[str]], words: Callable[[str], Sequence[str]], embed: Callable[..., Any]
) -> Search:
    """The text functions over a tokenizer: `tokens` are stemmed and without stop words, `words` only lower-cased."""

    def matches(function: Function, text: str, query: str, edits: int) -> bool:
        if function is Function.FUZZY:
            return any(distance(one, other) <= edits for one in words(query) for other in words(text))
        have, wanted = list(tokens(text)), list(tokens(query))
        if function is Function.SEARCH:
            return not set(have).isdisjoint(wanted)
        places = range(len(have) - len(wanted) + 1)
        return bool(wanted) and any(have[k : k + len(wanted)] == wanted for k in places)

    def scores(texts: dict[str, str], query: str) -> dict[str, float]:
        documents = {id_: list(tokens(text)) for id_, text in texts.items()}
        return bm25_scores(documents, set(tokens(query)))

    return Search(matches, scores, embed)


def bm25_scores(documents: dict[str, list[str]], query: Iterable[str]) -> dict[str, float]:
    """Okapi BM25 with k1 = 1.2 and b = 0.75, of the documents that hold a word of the query."""
    average = sum(map(len, documents.values())) / max(len(documents), 1)
    found: dict[str, float] = {}
    for word in query:
        holders = [id_ for id_, words in documents.items() if word in words]
        weight = math.log(1 + (len(documents) - len(holders) + 0.5) / (len(holders) + 0.5))
        for id_ in holders:
            often = Counter(documents[id_])[word]
            damped = often + 1.2 * (0.25 + 0.75 * len(documents[id_]) / average)
            found[id_] = found.get(id_, 0.0) + weight * often * 2.2 / damped
    return found


def distance(one: str, other: str) -> int:
    """Levenshtein's."""
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        above, row = row, [i]
        for j, b in enumerate(other, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (a != b)))
    return row[-1]


def lower_words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def no_embedding(_text: str, _dimension: int) -> Sequence[float]:
    raise AssertionError("this graph embeds no texts")


WORDS = searching_by(lower_words, lower_words, no_embedding)
