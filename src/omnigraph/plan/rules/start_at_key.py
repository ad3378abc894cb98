"""A component is entered at a binding that names one row, wherever that binding was written.

Which nodes an edge connects, and at which distance, is the same seen from either end, so the answer stays.
"""

from __future__ import annotations

from dataclasses import replace

from omnigraph.catalog.catalog import NodeType
from omnigraph.plan.lower import tests_of
from omnigraph.plan.rules.find_by_key import id_wanted
from omnigraph.plan.steps import variables_of
from omnigraph.plan.typed import NodeBinding, Pattern, ReadQuery


def start_at_key(query: ReadQuery) -> ReadQuery:
    return replace(query, pattern=_reordered(_bound(query.pattern)))


def _bound(pattern: Pattern) -> Pattern:
    """With a binding of its own for each variable that only edges bind and a filter names: its type is known."""
    known = {binding.variable for binding in pattern.bindings}
    named = _named(pattern) - known
    types = {variable.name: variable.type for variable in pattern.variables}
    more = [NodeBinding(name, found) for name in sorted(named) if isinstance(found := types.get(name), NodeType)]
    return replace(pattern, bindings=(*pattern.bindings, *more))


def _named(pattern: Pattern) -> set[str]:
    return {v for test in pattern.filters if id_wanted(test) is not None for v in variables_of(test)}


def _reordered(pattern: Pattern) -> Pattern:
    named = _named(pattern)

    def names_one_row(binding: NodeBinding) -> bool:
        return binding.variable in named or any(id_wanted(test) is not None for test in tests_of(binding))

    bindings = tuple(sorted(pattern.bindings, key=lambda binding: not names_one_row(binding)))
    negations = tuple(replace(negation, pattern=_reordered(negation.pattern)) for negation in pattern.negations)
    return replace(pattern, bindings=bindings, negations=negations)
