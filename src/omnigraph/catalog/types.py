"""Property types and the one place that says how each is stored.

Holds for every PropertyType:
  1. Enum values are sorted and belong to a String; a dimension belongs to a Vector; no list holds Vectors or Blobs.
  2. `str(type)` is the type as the schema language writes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import pyarrow as pa


class ScalarType(Enum):
    STRING = "String"
    BLOB = "Blob"
    BOOL = "Bool"
    I32 = "I32"
    I64 = "I64"
    U32 = "U32"
    U64 = "U64"
    F32 = "F32"
    F64 = "F64"
    DATE = "Date"
    DATETIME = "DateTime"
    VECTOR = "Vector"


INTEGER_RANGES: dict[ScalarType, tuple[int, int]] = {
    ScalarType.I32: (-(2**31), 2**31 - 1),
    ScalarType.I64: (-(2**63), 2**63 - 1),
    ScalarType.U32: (0, 2**32 - 1),
    ScalarType.U64: (0, 2**64 - 1),
}
FLOATS = frozenset({ScalarType.F32, ScalarType.F64})
NUMERICS = FLOATS | INTEGER_RANGES.keys()

_ARROW: dict[ScalarType, pa.DataType] = {
    ScalarType.STRING: pa.string(),
    ScalarType.BOOL: pa.bool_(),
    ScalarType.I32: pa.int32(),
    ScalarType.I64: pa.int64(),
    ScalarType.U32: pa.uint32(),
    ScalarType.U64: pa.uint64(),
    ScalarType.F32: pa.float32(),
    ScalarType.F64: pa.float64(),
    ScalarType.DATE: pa.date32(),
    ScalarType.DATETIME: pa.timestamp("ms", tz="UTC"),
    ScalarType.BLOB: pa.large_binary(),
}


@dataclass(frozen=True)
class PropertyType:
    scalar: ScalarType
    nullable: bool = False
    is_list: bool = False
    enum_values: tuple[str, ...] = ()
    dimension: int | None = None

    @property
    def is_enum(self) -> bool:
        return bool(self.enum_values)

    @property
    def is_vector(self) -> bool:
        return self.scalar is ScalarType.VECTOR

    @property
    def is_blob(self) -> bool:
        return self.scalar is ScalarType.BLOB

    @property
    def is_string(self) -> bool:
        """A single text, enum or not."""
        return self.scalar is ScalarType.STRING and not self.is_list

    @property
    def is_numeric(self) -> bool:
        return self.scalar in NUMERICS and not self.is_list

    @property
    def is_integer(self) -> bool:
        return self.scalar in INTEGER_RANGES and not self.is_list

    def __str__(self) -> str:
        if self.is_enum:
            core = f"enum({', '.join(self.enum_values)})"
        elif self.is_vector:
            core = f"Vector({self.dimension})"
        else:
            core = self.scalar.value
        core = f"[{core}]" if self.is_list else core
        return f"{core}?" if self.nullable else core


def arrow_type(type_: PropertyType) -> pa.DataType:
    """The Arrow type of the property's column."""
    if type_.is_vector:
        assert type_.dimension is not None
        return pa.list_(pa.float32(), type_.dimension)
    element = _ARROW[type_.scalar]
    # Elements are never null, but saying so here would make every list that DuckDB or Spark hands back another type.
    return pa.list_(element) if type_.is_list else element


def arrow_field(name: str, type_: PropertyType) -> pa.Field:
    return pa.field(name, arrow_type(type_), nullable=type_.nullable)
