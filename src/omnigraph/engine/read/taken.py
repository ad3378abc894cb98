"""Values of an Arrow array at some places; Arrow's own way costs more than all else where only a few are taken."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_FEW = 16


def taken(values: pa.Array, places: npt.NDArray[np.int64]) -> pa.Array:
    if len(places) == 1:
        return values.slice(int(places[0]), 1)
    if 0 < len(places) <= _FEW:
        return pa.concat_arrays([values.slice(place, 1) for place in places.tolist()])
    return values.take(pa.array(places))
