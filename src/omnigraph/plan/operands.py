"""What the operands of one run of a query stand for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from omnigraph.plan.typed import Constant, Operand, Parameter
from omnigraph.plan.values import Stored


@dataclass(frozen=True)
class Values:
    """`now` is fixed once for the run."""

    parameters: Mapping[str, Stored]
    now_ms: int

    def of(self, operand: Operand) -> Stored:
        match operand:
            case Constant():
                return operand.value
            case Parameter():
                return self.parameters[operand.name]
        return self.now_ms
