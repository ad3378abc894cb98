"""A plan as text: one line per step, with the rows it is expected to give and, once run, those it gave."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from omnigraph.plan.steps import Connect, Cross, Expand, Filter, Given, Plan, Scan, Step, Test, Without, inputs
from omnigraph.plan.typed import (
    Aggregate,
    Bm25,
    ColumnRef,
    Comparator,
    Comparison,
    Constant,
    CurrentTime,
    Direction,
    EntityId,
    Nearest,
    Parameter,
    PropertyValue,
    Rrf,
    Selected,
    SortKey,
    TextSearch,
)

# Guesses, good enough to see which step is the large one.
_EQUAL_SHARE, _OTHER_SHARE = 0.05, 0.4
_ARROWS = {Direction.OUT: "-{}->", Direction.IN: "<-{}-", Direction.BOTH: "<-{}->"}
Seen = Mapping[int, tuple[int, float]]


@dataclass(frozen=True)
class Estimates:
    """Rows of each table, by its key."""

    counts: Mapping[str, int]

    def of(self, step: Step) -> float:
        match step:
            case Scan():
                rows = float(self.counts.get(step.node.table_key, 0))
                return _tested(min(rows, 1.0) if step.id is not None else rows, step.tests)
            case Given():
                return 1.0
            case Expand():
                before = self.of(step.input)
                if step.any:
                    return before
                return _tested(_tested(before * self._fan_out(step), step.tests), step.edge_tests)
            case Connect():
                nodes = max(self.counts.get(f"node:{step.edge.dst_type}", 0), 1)
                return self.of(step.input) * min(1.0, self._fan_out(step) / nodes)
            case Cross():
                return self.of(step.left) * self.of(step.right)
            case Filter():
                return _tested(self.of(step.input), step.tests)
            case Without():
                return self.of(step.input) * _OTHER_SHARE

    def _fan_out(self, step: Expand | Connect) -> float:
        edges = self.counts.get(step.edge.table_key, 0)
        if step.direction is Direction.BOTH:
            edges *= 2
        origin = step.edge.dst_type if step.direction is Direction.IN else step.edge.src_type
        nodes = max(self.counts.get(f"node:{origin}", 0), 1)
        once = edges / nodes
        reach = sum(once**hop for hop in range(step.min_hops, step.max_hops + 1))
        return min(reach, float(max(nodes, 1))) if step.max_hops > 1 else once


def explained(
    plan: Plan, estimates: Estimates, seen: Seen | None = None, rows: int | None = None, seconds: float = 0.0
) -> str:
    """`seen` has what each step gave and took, `rows` and `seconds` the same of the whole."""
    lines = [*_output(plan), *_tree(plan.step, estimates, seen or {}, 1)]
    if rows is not None:
        lines.append(f"{rows} rows in {seconds * 1000:.2f} ms")
    return "\n".join(lines)


def _output(plan: Plan) -> Iterator[str]:
    columns = ", ".join(f"{column.name}: {_shown(column.value)}" for column in plan.columns)
    verb = "Aggregate" if plan.aggregated else "Return"
    yield f"{verb} {columns}"
    if plan.order:
        yield f"  Order by {', '.join(_key(key, plan) for key in plan.order)}"
    if plan.limit is not None:
        yield f"  Limit {plan.limit}{' before reading columns' if plan.late else ''}"


def _key(key: SortKey, plan: Plan) -> str:
    value = plan.columns[key.value.index].name if isinstance(key.value, ColumnRef) else _shown(key.value)
    return f"{value} {'desc' if key.descending else 'asc'}"


def _tree(step: Step, estimates: Estimates, seen: Seen, depth: int) -> Iterator[str]:
    told = f"~{_rounded(estimates.of(step))} rows"
    if id(step) in seen:
        rows, seconds = seen[id(step)]
        below = sum(seen[id(before)][1] for before in inputs(step) if id(before) in seen)
        told += f", was {rows} in {max(seconds - below, 0.0) * 1000:.2f} ms"
    yield f"{'  ' * depth}{_line(step)}  [{told}]"
    for before in inputs(step):
        yield from _tree(before, estimates, seen, depth + 1)


def _line(step: Step) -> str:
    match step:
        case Scan() if step.id is not None:
            return f"Find ${step.variable}: {step.node.name} by id = {_shown(step.id)}{_where(step.tests)}"
        case Scan():
            return f"Scan ${step.variable}: {step.node.name}{_where(step.tests)}"
        case Given():
            return f"Rows of the block around: {', '.join('$' + name for name in step.variables)}"
        case Expand() | Connect():
            target = f"${step.target}" if step.target is not None else "$_"
            name = f"${step.edge_variable}:{step.edge.name}" if step.edge_variable is not None else step.edge.name
            hops = f"{{{step.min_hops},{step.max_hops}}}" if (step.min_hops, step.max_hops) != (1, 1) else ""
            tests = (*(step.tests if isinstance(step, Expand) else ()), *step.edge_tests)
            verb = "Connect" if isinstance(step, Connect) else "Has any" if step.any else "Expand"
            return f"{verb} ${step.origin} {_ARROWS[step.direction].format(name + hops)} {target}{_where(tests)}"
        case Cross():
            return "Cross"
        case Filter():
            return f"Filter{_where(step.tests)}"
        case Without():
            return "Without"


def _where(tests: tuple[Test, ...]) -> str:
    return f" where {' and '.join(map(_test, tests))}" if tests else ""


def _test(test: Test) -> str:
    if isinstance(test, TextSearch):
        return _shown(test)
    word = {Comparator.SUBSTRING: "contains", Comparator.MEMBER: "contains"}.get(test.comparator, test.comparator.value)
    return f"{_shown(test.left)} {word} {_shown(test.right)}"


def _shown(value: Selected | ColumnRef) -> str:
    match value:
        case Constant():
            return f'"{value.value}"' if isinstance(value.value, str) else repr(value.value)
        case Parameter():
            return f"${value.name}"
        case CurrentTime():
            return "now()"
        case PropertyValue():
            return f"${value.variable}.{value.name}"
        case EntityId():
            return f"${value.variable}"
        case TextSearch():
            return f"{value.function.value}({_shown(value.field)}, {_shown(value.query)})"
        case Bm25():
            return f"bm25({_shown(value.field)}, {_shown(value.query)})"
        case Nearest():
            return f"nearest({_shown(value.field)}, {_shown(value.query)})"
        case Rrf():
            return f"rrf({_shown(value.first)}, {_shown(value.second)})"
        case Aggregate():
            return f"{value.function.value}({_shown(value.argument)})"
        case ColumnRef():
            return f"column {value.index + 1}"


def _tested(rows: float, tests: tuple[Test, ...]) -> float:
    for test in tests:
        equal = isinstance(test, Comparison) and test.comparator in (Comparator.EQ, Comparator.MEMBER)
        rows *= _EQUAL_SHARE if equal else _OTHER_SHARE
    return rows


def _rounded(rows: float) -> int:
    return max(1, round(rows)) if rows > 0 else 0
