"""Sources on S3 without any jar: executors read the objects in Python, and Spark's own parsers make rows of lines.

Local and S3 files give the same rows: the schema is inferred by Spark's reader from the lines, and each line is parsed
by the function that shares its parser. Options that this way cannot honour are refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, cast
from urllib.parse import urlsplit

import obstore
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import ArrayType, StructType

from omnigraph.base.errors import BadRequest, NotFound
from omnigraph.pipeline.failures import spark_failures
from omnigraph.pipeline.inputs import FILE_COLUMN, ROW_COLUMN
from omnigraph.pipeline.job.definition import Source
from omnigraph.pipeline.worker.s3_columns import PART_COLUMNS, file_schema, list_parts, read_parts
from omnigraph.pipeline.worker.s3_lines import (
    COUNT_COLUMNS,
    LINE_COLUMNS,
    RANGE_COLUMNS,
    LineRange,
    LineRules,
    count_ranges,
    is_compressed,
    numbered_lines,
    read_ranges,
)
from omnigraph.storage.s3 import S3Access, store_failures

FORMATS = ("csv", "json", "text", "parquet", "orc")
_PARTITIONS_MAX = 512
_COMMON = "mode columnNameOfCorruptRecord dateFormat timestampFormat timestampNTZFormat locale timeZone samplingRatio "
_COMMON += "enableDateTimeParsingFallback"
_CSV = "sep delimiter quote escape comment header inferSchema preferDate ignoreLeadingWhiteSpace nullValue nanValue "
_CSV += "ignoreTrailingWhiteSpace positiveInf negativeInf maxColumns maxCharsPerColumn charToEscapeQuoteEscaping "
_CSV += "emptyValue unescapedQuoteHandling maxMalformedLogPerPartition"
_JSON = "primitivesAsString prefersDecimal allowComments allowUnquotedFieldNames allowSingleQuotes dropFieldIfAllNull "
_JSON += "allowNumericLeadingZeros allowBackslashEscapingAnyCharacter allowUnquotedControlChars allowNonNumericNumbers"
_HONOURED = {"csv": f"{_COMMON} {_CSV}", "json": f"{_COMMON} {_JSON}"}
# What a reader does anyway may be said.
_DEFAULTS = {"multiline": ("false",), "encoding": ("utf-8", "utf8"), "charset": ("utf-8", "utf8")}
_DEFAULTS |= {"mergeschema": ("false",), "recursivefilelookup": ("false",), "wholetext": ("false",)}


def refused_option(source: Source) -> str | None:
    """Why the source's options cannot be honoured on S3; None when they can."""
    honoured = {name.lower() for name in _HONOURED.get(source.format, "").split()}
    for name, value in source.options.items():
        is_default = value.lower() in _DEFAULTS.get(name.lower(), ())
        drops = name.lower() == "mode" and value.upper() == "DROPMALFORMED"
        if drops and name.lower() in honoured:
            return f"option '{name}: {value}' is not supported for {source.format} on s3"
        if name.lower() not in honoured and not is_default:
            return f"option '{name}' is not supported for {source.format} on s3"
    return None


@dataclass(frozen=True)
class S3Object:
    uri: str
    size: int


def find_objects(paths: Sequence[str], access: S3Access) -> tuple[S3Object, ...]:
    """The objects that paths name: an object, all objects directly in a folder, or what a glob matches; by name."""
    found: dict[str, S3Object] = {}
    for path in paths:
        matched = _matching(path, access)
        if not matched:
            raise NotFound(f"'{path}' names no object", "Check the bucket, the prefix and the credentials.")
        found |= {each.uri: each for each in matched}
    return tuple(found[uri] for uri in sorted(found))


def _matching(path: str, access: S3Access) -> list[S3Object]:
    bucket, _, key = path.split("://", 1)[1].partition("/")
    wanted = re.compile(_glob(key.rstrip("/")) + r"(?P<below>/.*)?")
    literal = re.split(r"[*?\[{]", key, maxsplit=1)[0]
    # A listing is by whole segments.
    prefix = literal if literal == key.rstrip("/") else literal.rpartition("/")[0]
    with store_failures(f"list {prefix}", f"s3://{bucket}"):
        store = access.open(bucket, "")
        listed: list[Any] = [o for batch in obstore.list(store, prefix or None) for o in batch]
        if literal == key and not key.endswith("/"):
            listed += _single(store, key)
    found = []
    for each in {str(o["path"]): o for o in listed}.values():
        name = str(each["path"])
        matched = wanted.fullmatch(name)
        if matched is None or name.rpartition("/")[2].startswith((".", "_")) or not each["size"]:
            continue
        below = (matched["below"] or "/").split("/")[1:-1]
        if any("=" in folder for folder in below):
            raise BadRequest(
                f"'{path}' has folders by value ('{below[0]}'), which are not read as columns on s3",
                "Name the folder of one value, or give the files with a glob.",
            )
        if not below:
            found.append(S3Object(f"s3://{bucket}/{name}", int(each["size"])))
    return found


def _single(store: Any, key: str) -> list[Any]:
    try:
        return [obstore.head(store, key)] if key else []
    except FileNotFoundError:
        return []


def _glob(text: str) -> str:
    """A path pattern as Hadoop knows it, as a regular expression: `*`, `?`, `[…]` and `{a,b}` within one segment."""
    found, braces = "", 0
    for character in text:
        if character == "{":
            found, braces = f"{found}(?:", braces + 1
        elif character == "}" and braces:
            found, braces = f"{found})", braces - 1
        elif character == "," and braces:
            found += "|"
        else:
            found += {"*": "[^/]*", "?": "[^/]", "[": "[", "]": "]"}.get(character) or re.escape(character)
    return found


class S3Source:
    """One source whose files lie on S3."""

    def __init__(self, spark: SparkSession, source: Source, paths: Sequence[str], access: S3Access) -> None:
        refused = refused_option(source)
        if refused is not None:
            raise BadRequest(refused, "Leave it out, or copy the files to a disk that the executors see.")
        self._spark = spark
        self._source = source
        self._access = access
        self._objects = find_objects(paths, access)
        self._schema: StructType | None = None

    def frame(self, located: bool) -> DataFrame:
        """The rows; with `located` after FILE_COLUMN and ROW_COLUMN, which then are true."""
        with spark_failures(f"reading source '{self._source.name}'"):
            if self._source.format in ("parquet", "orc"):
                rows = self._columnar(cast(Literal["parquet", "orc"], self._source.format))
            else:
                rows = self._parsed(self._lines(self._ranges(located), self._rules))
        return rows if located else rows.drop(FILE_COLUMN, ROW_COLUMN)

    def _columnar(self, format_: Literal["parquet", "orc"]) -> DataFrame:
        schema = file_schema(self._objects[0].uri, format_, self._access)
        columns = StructType().add(FILE_COLUMN, "string").add(ROW_COLUMN, "long")
        for field in from_arrow_schema(schema, prefer_timestamp_ntz=True):
            columns = columns.add(field)
        files = self._spread([(each.uri,) for each in self._objects], f"{FILE_COLUMN} string")
        parts = files.mapInArrow(partial(list_parts, format_=format_, access=self._access), PART_COLUMNS)
        read = partial(read_parts, format_=format_, access=self._access, schema=schema)
        return parts.repartition(_partitions(len(self._objects) * 4)).mapInArrow(read, columns)

    @property
    def _rules(self) -> LineRules:
        options = {name.lower(): value for name, value in self._source.options.items()}
        if self._source.format == "csv":
            return LineRules(True, options.get("comment", ""), options.get("header", "false").lower() == "true")
        return LineRules(skips_blank=self._source.format == "json")

    def _ranges(self, located: bool) -> list[LineRange]:
        size = _range_bytes(self._spark)
        ranges = [
            LineRange(each.uri, start, min(start + size, each.size))
            if not is_compressed(each.uri)
            else LineRange(each.uri, 0, 1 << 62)
            for each in self._objects
            for start in (range(0, each.size, size) if not is_compressed(each.uri) else (0,))
        ]
        several = [each for each in ranges if located and (each.start or each.end < self._size(each.uri))]
        if not several:
            return ranges
        # Only objects of several ranges are read a first time, to know where the numbers of each range begin.
        count = partial(count_ranges, access=self._access, rules=self._rules)
        counted = self._spread_ranges(several).mapInArrow(count, COUNT_COLUMNS).collect()
        rows = {(row[FILE_COLUMN], row["start"]): row["rows"] for row in counted}
        numbered: list[LineRange] = []
        for each in ranges:  # by object, then by start
            is_next = bool(numbered) and numbered[-1].uri == each.uri
            first = numbered[-1].first_row + rows[each.uri, numbered[-1].start] if is_next else 1
            numbered.append(replace(each, first_row=first))
        return numbered

    def _size(self, uri: str) -> int:
        return next(each.size for each in self._objects if each.uri == uri)

    def _lines(self, ranges: Sequence[LineRange], rules: LineRules) -> DataFrame:
        read = partial(read_ranges, access=self._access, rules=rules)
        return self._spread_ranges(ranges).mapInArrow(read, LINE_COLUMNS)

    def _spread_ranges(self, ranges: Sequence[LineRange]) -> DataFrame:
        return self._spread([(r.uri, r.start, r.end, r.first_row) for r in ranges], RANGE_COLUMNS)

    def _spread(self, rows: Sequence[tuple[Any, ...]], columns: str) -> DataFrame:
        return self._spark.createDataFrame(rows, columns).repartition(_partitions(len(rows)))

    def _parsed(self, lines: DataFrame) -> DataFrame:
        places = (FILE_COLUMN, ROW_COLUMN)
        if self._source.format == "text":
            return lines
        schema = self._schema = self._schema or self._inferred()
        options = dict(self._source.options)
        if self._source.format == "csv":
            parsed = sf.from_csv("value", schema.toDDL(), options)
            return lines.select(*places, parsed.alias("row")).select(*places, "row.*")
        one = sf.from_json("value", schema, options)
        # Spark's reader takes a line that is an array for as many rows.
        several = sf.from_json("value", ArrayType(schema), options)
        is_array = sf.ltrim("value").startswith("[")
        rows = sf.when(is_array & several.isNotNull(), several).otherwise(sf.array(one))
        return lines.select(*places, sf.explode(rows).alias("row")).select(*places, "row.*")

    def _inferred(self) -> StructType:
        reader = self._spark.read.options(**cast(dict[str, Any], dict(self._source.options)))
        lines = self._lines(self._ranges(False), replace(self._rules, header=False)).select("value")
        if self._source.format == "json":
            return reader.json(lines).schema
        # The reader takes the first line for the names, so that line must come first.
        first = self._spark.createDataFrame([(line,) for line in self._first_line()], "value string")
        infers = any(n.lower() == "inferschema" and v.lower() == "true" for n, v in self._source.options.items())
        return reader.csv(first.union(lines) if infers else first).schema

    def _first_line(self) -> list[str]:
        for each in self._objects:
            wanted = LineRange(each.uri, 0, 1 << 62)
            for _, line in numbered_lines(wanted, self._access, replace(self._rules, header=False)):
                return [line.decode("utf-8", errors="replace")]
        return []


def is_on_s3(path: str) -> bool:
    return urlsplit(path).scheme.lower() == "s3"


def _partitions(count: int) -> int:
    return max(1, min(count, _PARTITIONS_MAX))


def _range_bytes(spark: SparkSession) -> int:
    """As large as Spark's own ranges of files."""
    digits = re.match(r"[0-9]+", str(spark.conf.get("spark.sql.files.maxPartitionBytes", "134217728")))
    return max(1, int(digits[0])) if digits else 128 << 20
