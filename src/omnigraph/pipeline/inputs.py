"""What a Spark load is given: frames in the words of the graph, each with a name for its errors."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame

FILE_COLUMN = "__file"
ROW_COLUMN = "__row"


@dataclass(frozen=True)
class FrameInput:
    """The rows for one table. Columns carry the stored names: properties, `id`, and `src` and `dst` of edges.

    An endpoint is a text, or the key of its node: a value of the key's type, or a struct of its members in the order
    of the key. `name` is what errors call the frame. With `is_located` the frame also has FILE_COLUMN (text) and
    ROW_COLUMN (a number from 1): where in its source each row stands.
    """

    table_key: str
    frame: DataFrame
    name: str
    is_located: bool = False
