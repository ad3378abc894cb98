"""A component is entered at a binding that names one row, wherever that binding was written.

Which nodes an edge connects, and at which distance, is the same seen from either end, so the answer stays.
"""

from __future__ import annotations

from dataclasses import replace

from omnigraph.plan.lower import tests_of
from omnigraph.plan.rules.find_by_key import id_wanted
from omnigraph.plan.steps import variables_of
from omnigraph.plan.typed import NodeBinding, Pattern, ReadQuery


def start_at_key(query: ReadQuery) -> ReadQuery:
    return replace(query, pattern=_reordered(query.pattern))


def _reordered(pattern: Pattern) -> Pattern:
    named = {v for test in pattern.filters if id_wanted(test) is not None for v in variables_of(test)}

    def names_one_row(binding: NodeBinding) -> bool:
        return binding.variable in named or any(id_wanted(test) is not None for test in tests_of(binding))

    bindings = tuple(sorted(pattern.bindings, key=lambda binding: not names_one_row(binding)))
    negations = tuple(replace(negation, pattern=_reordered(negation.pattern)) for negation in pattern.negations)
    return replace(pattern, bindings=bindings, negations=negations)
